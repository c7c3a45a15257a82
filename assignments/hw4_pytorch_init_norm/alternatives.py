"""Right answers written another way: each must get full marks."""

import math

import torch
from torch import nn

from autograder.authoring import alternative


@alternative("he_init", "scaled-draws-copied-in")
def he_normal(tensor, generator=None):
    fan_out, fan_in = tensor.size()
    std = (2 / fan_in) ** 0.5
    draws = std * torch.randn(fan_out, fan_in, generator=generator, dtype=tensor.dtype)
    with torch.no_grad():
        tensor.copy_(draws)
    return tensor


@alternative("he_init", "through-data")
def he_uniform(tensor, generator=None):
    b = math.sqrt(3) * math.sqrt(2 / tensor.size(-1))
    tensor.data.uniform_(-b, b, generator=generator)
    return tensor


@alternative("xavier_init", "one-entry-at-a-time")
def xavier_normal(tensor, generator=None):
    rows, columns = tensor.shape
    with torch.no_grad():
        for i in range(rows):
            row = torch.empty(columns, dtype=torch.float64).normal_(generator=generator)
            tensor[i] = row / math.sqrt((rows + columns) / 2)
    return tensor


@alternative("xavier_init", "stretched-unit-interval")
def xavier_uniform(tensor, generator=None):
    bound = math.sqrt(3.0 / ((tensor.shape[0] + tensor.shape[1]) / 2))
    flat = tensor.detach()
    flat[...] = bound * (2 * torch.rand(tensor.shape, generator=generator) - 1)
    return tensor


@alternative("preactivation_stds", "tensor-of-stds")
def preactivation_stds(weights, x, activation):
    stds = torch.empty(len(weights), dtype=x.dtype)
    z = x.detach()
    for i, weight in enumerate(weights):
        a = nn.functional.linear(z, weight.detach())
        stds[i] = a.flatten().std()
        z = activation(a)
    return stds


@alternative("preactivation_stds", "by-hand")
def preactivation_stds(weights, x, activation):
    stds = []
    for weight in weights:
        a = (weight @ x.T).T
        centred = a - a.mean()
        stds.append(math.sqrt((centred**2).sum() / (a.numel() - 1)))
        x = activation(a)
    return stds


@alternative("batch_norm", "var-mean")
def batch_norm(a, gamma, beta, eps=1e-5):
    var, mean = torch.var_mean(a, dim=0, correction=0, keepdim=True)
    return torch.addcmul(beta, gamma, (a - mean) * torch.rsqrt(var + eps))


@alternative("batch_norm", "einsum")
def batch_norm(a, gamma, beta, eps=1e-5):
    rows = a.shape[0]
    deviation = a - torch.einsum("km->m", a) / rows
    variance = torch.einsum("km,km->m", deviation, deviation) / rows
    return torch.einsum("km,m->km", deviation, gamma / (variance + eps).sqrt()) + beta


@alternative("batch_norm", "column-by-column")
def batch_norm(a, gamma, beta, eps=1e-5):
    columns = []
    for i in range(a.shape[1]):
        column = a[:, i]
        std = torch.sqrt(torch.var(column, unbiased=False) + eps)
        columns.append((column - column.mean()) / std * gamma[i] + beta[i])
    return torch.stack(columns, dim=1)


@alternative("batch_norm", "second-pass-over-the-mean")
def batch_norm(a, gamma, beta, eps=1e-5):
    centred = a - a.mean(0)
    centred = centred - centred.mean(0)
    return beta + gamma * centred / (centred.pow(2).sum(0) / len(a) + eps).pow(0.5)


@alternative("running_stats", "lerp")
def update_running_stats(running_mean, running_var, a, momentum=0.1):
    var, mean = torch.var_mean(a.detach(), dim=0)
    return torch.lerp(running_mean, mean, momentum), torch.lerp(running_var, var, momentum)


@alternative("running_stats", "biased-times-correction")
def update_running_stats(running_mean, running_var, a, momentum=0.1):
    a = a.detach()
    rows = a.size(0)
    mean = a.sum(axis=0) / rows
    biased = ((a - mean) ** 2).sum(axis=0) / rows
    new_mean, new_var = running_mean.clone(), running_var.clone()
    new_mean += momentum * (mean - running_mean)
    new_var += momentum * (biased * rows / (rows - 1) - running_var)
    return [new_mean, new_var]


@alternative("batch_norm_module", "in-place-and-counting")
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.weight = nn.Parameter(torch.ones(num_features))
        self.num_features, self.eps, self.momentum = num_features, eps, momentum

    def forward(self, a):
        if self.training:
            if a.size(0) == 1:
                raise ValueError("one row has no variance")
            mean = a.mean(0)
            var = a.var(0, unbiased=False)
            with torch.no_grad():
                rows = a.size(0)
                self.running_mean.mul_(1 - self.momentum).add_(mean, alpha=self.momentum)
                self.running_var.mul_(1 - self.momentum).add_(var * rows / (rows - 1), alpha=self.momentum)
                self.num_batches_tracked += 1
        else:
            mean, var = self.running_mean, self.running_var
        scale = self.weight / (var + self.eps).sqrt()
        return a * scale + (self.bias - mean * scale)


@alternative("batch_norm_module", "copied-into-the-buffers")
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        nn.Module.__init__(self)
        self.weight = torch.nn.parameter.Parameter(torch.full((num_features,), 1.0))
        self.bias = torch.nn.parameter.Parameter(torch.full((num_features,), 0.0))
        for name, start in (("running_mean", 0.0), ("running_var", 1.0)):
            self.register_buffer(name, torch.full((num_features,), start))
        self.settings = {"eps": eps, "momentum": momentum}

    def forward(self, a):
        if not self.training:
            a_hat = (a - self.running_mean) * (self.running_var + self.settings["eps"]) ** -0.5
            return torch.addcmul(self.bias, self.weight, a_hat)
        if a.shape[0] < 2:
            raise ValueError(f"a mini-batch of {a.shape[0]} has no spread")
        out = batch_norm(a, self.weight, self.bias, eps=self.settings["eps"])
        new = update_running_stats(self.running_mean, self.running_var, a.detach(), self.settings["momentum"])
        self.running_mean.copy_(new[0])
        self.running_var.copy_(new[1])
        return out


@alternative("layer_norm", "var-mean")
def layer_norm(a, gamma, beta, eps=1e-5):
    var, mean = torch.var_mean(a, dim=-1, correction=0, keepdim=True)
    return (a - mean) * torch.rsqrt(var + eps) * gamma + beta


@alternative("layer_norm", "axes-turned-around")
def layer_norm(a, gamma, beta, eps=1e-5):
    shape = a.shape
    units = a.reshape(-1, shape[-1]).T
    deviation = units - units.mean(0)
    normalized = deviation / (deviation.square().mean(0) + eps).sqrt()
    return (normalized.T * gamma + beta).reshape(shape)


@alternative("layer_norm", "unsqueezed")
def layer_norm(a, gamma, beta, eps=1e-5):
    mean = a.mean(-1).unsqueeze(-1)
    std = (a.std(-1, correction=0) ** 2 + eps).sqrt().unsqueeze(-1)
    return torch.mul((a - mean) / std, gamma).add(beta)


@alternative("rms_norm", "vector-norm")
def rms_norm(a, gamma, eps=1e-5):
    length = torch.linalg.vector_norm(a, dim=-1, keepdim=True)
    return a / (length.pow(2) / a.shape[-1] + eps).sqrt() * gamma


@alternative("rms_norm", "rsqrt-einsum")
def rms_norm(a, gamma, eps=1e-5):
    mean_square = torch.einsum("...m,...m->...", a, a)[..., None] / a.size(-1)
    return gamma * (a * torch.rsqrt(mean_square + eps))


@alternative("norm_mlp", "zipped")
class NormMLP(nn.Module):
    def __init__(self, dims, activation="tanh", norm="none"):
        super().__init__()
        try:
            self.h = {"tanh": nn.Tanh, "relu": nn.ReLU}[activation]()
            make = {"none": None, "batch": BatchNorm, "layer": nn.LayerNorm}[norm]
        except KeyError as error:
            raise ValueError(f"unknown name {error}") from None
        self.norms = nn.ModuleList([] if make is None else [make(d) for d in dims[1:-1]])
        layers, before = [], dims[0]
        for after in dims[1:]:
            layers.append(nn.Linear(before, after))
            before = after
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        *hidden, last = self.layers
        norms = self.norms if len(self.norms) else [lambda a: a] * len(hidden)
        for layer, norm in zip(hidden, norms, strict=True):
            x = self.h(norm(layer(x)))
        return last(x)


@alternative("training", "data-loader")
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    data = torch.utils.data.TensorDataset(x, t)
    loader = torch.utils.data.DataLoader(data, batch_size=batch_size, shuffle=True, generator=generator)
    optimizer = torch.optim.SGD(model.parameters(), lr)
    losses = []
    for _ in range(n_epochs):
        model.train()
        total, count = 0.0, 0
        for inputs, targets in loader:
            optimizer.zero_grad(set_to_none=False)
            loss = nn.functional.binary_cross_entropy_with_logits(model(inputs), targets)
            loss.backward()
            optimizer.step()
            total += float(loss) * inputs.size(0)
            count += inputs.size(0)
        losses.append(total / count)
    return losses


@alternative("training", "steps-by-hand")
def train_classifier(model, x, t, n_epochs, lr, batch_size, generator=None):
    model.train()
    parameters = list(model.parameters())
    count = x.shape[0]
    losses = []
    for _ in range(n_epochs):
        order = torch.randperm(count, generator=generator)
        inputs, targets = x[order], t[order]
        each = []
        for start in range(0, count, batch_size):
            logits, target = model(inputs[start : start + batch_size]), targets[start : start + batch_size]
            per_point = torch.relu(logits) - logits * target + torch.log1p(torch.exp(-logits.abs()))
            for parameter, gradient in zip(parameters, torch.autograd.grad(per_point.mean(), parameters), strict=True):
                parameter.data -= lr * gradient
            each.append(per_point.detach())
        losses.append(torch.cat(each).mean().item())
    return losses
