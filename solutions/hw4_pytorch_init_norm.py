"""Reference solutions: initialization, batch/layer/RMS normalization, and a network that uses them.

The docstrings are the specification handed to the students. Equation numbers refer to Bishop and Bishop,
*Deep Learning: Foundations and Concepts* (2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


def he_normal(tensor: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Fills a weight matrix with He-initialized normal values, for layers followed by ReLU.

    The entries are independent draws from N(0, σ²) with variance σ² = 2 / fan_in, so that the variance of the
    pre-activations is the same in every ReLU layer (He et al., 2015; Bishop, Section 7.2.5).

    Args:
        tensor: weight matrix of shape (fan_out, fan_in), any floating dtype; it may require gradients.
        generator: source of all the draws; None means PyTorch's global one, which is otherwise left alone.

    Returns:
        The same tensor object, overwritten in place. The filling is not recorded for differentiation, and
        `requires_grad` stays as it was. Every call draws new values.

    Write it yourself: `nn.init` is not allowed.
    """
    # BEGIN SOLUTION
    fan_in = tensor.shape[1]
    with torch.no_grad():
        return tensor.normal_(0.0, math.sqrt(2.0 / fan_in), generator=generator)
    # END SOLUTION


def he_uniform(tensor: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Fills a weight matrix with He-initialized uniform values, for layers followed by ReLU.

    The entries are independent draws from U(-b, b), with b chosen so that their variance is that of `he_normal`,
    2 / fan_in. (The variance of U(-b, b) is b²/3.)

    Args:
        tensor: weight matrix of shape (fan_out, fan_in), any floating dtype; it may require gradients.
        generator: source of all the draws; None means PyTorch's global one, which is otherwise left alone.

    Returns:
        The same tensor object, overwritten in place. The filling is not recorded for differentiation, and
        `requires_grad` stays as it was. Every call draws new values.

    Write it yourself: `nn.init` is not allowed.
    """
    # BEGIN SOLUTION
    fan_in = tensor.shape[1]
    bound = math.sqrt(6.0 / fan_in)
    with torch.no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)
    # END SOLUTION


def xavier_normal(tensor: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Fills a weight matrix with Xavier-initialized normal values, for layers followed by tanh.

    The entries are independent draws from N(0, σ²) with variance σ² = 2 / (fan_in + fan_out): the compromise
    between preserving the variance of the signals going forward and that of the gradients going backward
    (Glorot and Bengio, 2010). No further gain is applied.

    Args:
        tensor: weight matrix of shape (fan_out, fan_in), any floating dtype; it may require gradients.
        generator: source of all the draws; None means PyTorch's global one, which is otherwise left alone.

    Returns:
        The same tensor object, overwritten in place. The filling is not recorded for differentiation, and
        `requires_grad` stays as it was. Every call draws new values.

    Write it yourself: `nn.init` is not allowed.
    """
    # BEGIN SOLUTION
    fan_out, fan_in = tensor.shape
    with torch.no_grad():
        return tensor.normal_(0.0, math.sqrt(2.0 / (fan_in + fan_out)), generator=generator)
    # END SOLUTION


def xavier_uniform(tensor: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Fills a weight matrix with Xavier-initialized uniform values, for layers followed by tanh.

    The entries are independent draws from U(-b, b), with b chosen so that their variance is that of
    `xavier_normal`, 2 / (fan_in + fan_out). No further gain is applied.

    Args:
        tensor: weight matrix of shape (fan_out, fan_in), any floating dtype; it may require gradients.
        generator: source of all the draws; None means PyTorch's global one, which is otherwise left alone.

    Returns:
        The same tensor object, overwritten in place. The filling is not recorded for differentiation, and
        `requires_grad` stays as it was. Every call draws new values.

    Write it yourself: `nn.init` is not allowed.
    """
    # BEGIN SOLUTION
    fan_out, fan_in = tensor.shape
    bound = math.sqrt(6.0 / (fan_in + fan_out))
    with torch.no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)
    # END SOLUTION


def preactivation_stds(weights: list[Tensor], x: Tensor, activation: Callable[[Tensor], Tensor]) -> list[float]:
    """Standard deviation of the pre-activations in every layer of a deep network without biases.

    Layer l computes the pre-activations a = z Wᵀ from the previous layer's outputs z (the inputs x for the first
    layer) and passes on activation(a); Bishop, Eqs. 7.19 and 7.20. The standard deviation is taken *before* the
    activation, over all N · M_l entries of a together, about their mean, and is the sample one: 1/(n - 1) under
    the root, as `torch.std` computes it.

    Args:
        weights: one matrix of shape (M_l, M_{l-1}) per layer, first layer first; they may require gradients.
        x: inputs of shape (N, M_0), one data point per row.
        activation: elementwise function, such as `torch.tanh` or `torch.relu`; applied after every layer.

    Returns:
        One number per layer, in order. The inputs are not an entry of the list.
    """
    # BEGIN SOLUTION
    stds = []
    z = x
    with torch.no_grad():
        for weight in weights:
            a = z @ weight.T
            stds.append(a.std().item())
            z = activation(a)
    return stds
    # END SOLUTION


def batch_norm(a: Tensor, gamma: Tensor, beta: Tensor, eps: float = 1e-5) -> Tensor:
    """Batch normalization of a mini-batch (Ioffe and Szegedy, 2015; Bishop, Eqs. 7.52 to 7.55).

    Every column (unit) is normalized with the mean and variance of its own entries over the K rows (data points),
    then scaled and shifted: γ · (a - μ) / √(σ² + eps) + β.

    Args:
        a: pre-activations of shape (K, M), K ≥ 2; any M, also 1. Left unchanged.
        gamma: scale, shape (M,).
        beta: shift, shape (M,), added after scaling.
        eps: added to the variance, *inside* the square root.

    Returns:
        Shape (K, M), dtype of `a`. The variance is the *biased* one, 1/K, computed from the deviations a - μ (so
        that it stays accurate when the mean is large). Gradients flow to `a`, through μ and σ² as well, and to
        `gamma` and `beta`.

    Write it yourself: PyTorch's normalization functions and modules are not allowed.
    """
    # BEGIN SOLUTION
    mean = a.mean(dim=0)
    deviation = a - mean
    variance = (deviation**2).mean(dim=0)
    return gamma * deviation / torch.sqrt(variance + eps) + beta
    # END SOLUTION


def update_running_stats(
    running_mean: Tensor, running_var: Tensor, a: Tensor, momentum: float = 0.1
) -> tuple[Tensor, Tensor]:
    """One step of the moving averages that batch normalization uses in evaluation mode (Bishop, Eqs. 7.56, 7.57).

    new average = (1 - momentum) · old average + momentum · statistic of this batch. That is PyTorch's side of the
    momentum: it weighs the *new* batch (Bishop's α is 1 - momentum).

    Args:
        running_mean: average of the batch means so far, shape (M,). Left unchanged.
        running_var: average of the batch variances so far (variances, not standard deviations), shape (M,).
            Left unchanged.
        a: mini-batch of shape (K, M), K ≥ 2; it may require gradients. Left unchanged.
        momentum: weight of this batch's statistics, between 0 and 1.

    Returns:
        (new mean, new variance): new tensors of shape (M,), which carry no graph (`requires_grad` is False). The
        batch variance is the *unbiased* one, 1/(K - 1), with no eps in it.
    """
    # BEGIN SOLUTION
    with torch.no_grad():
        mean = a.mean(dim=0)
        variance = a.var(dim=0, correction=1)
        return (
            (1.0 - momentum) * running_mean + momentum * mean,
            (1.0 - momentum) * running_var + momentum * variance,
        )
    # END SOLUTION


class BatchNorm(nn.Module):
    """Batch normalization as a layer: batch statistics while training, running statistics in evaluation.

    Args:
        num_features: number of units M.
        eps: added to the variance inside the square root, in both modes.
        momentum: weight of the newest batch in the running averages, as in `update_running_stats`.

    Parameters (trained): `weight`, the scale γ, starts at 1; `bias`, the shift β, starts at 0; shape (M,) each.
    Buffers (saved in the state_dict, not trained): `running_mean`, starts at 0; `running_var`, starts at 1; shape
    (M,) each.
    """

    weight: nn.Parameter
    bias: nn.Parameter
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        # BEGIN SOLUTION
        self.eps = eps
        self.momentum = momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        # END SOLUTION

    def forward(self, a: Tensor) -> Tensor:
        """Normalizes pre-activations `a` of shape (K, M); the result has the same shape and dtype, `a` is unchanged.

        Training mode (`self.training`): normalizes with the batch's mean and *biased* variance, exactly like
        `batch_norm`, gradients included; then updates the running statistics once, exactly like
        `update_running_stats` (*unbiased* variance, no graph kept). A single row is refused with a ValueError, and
        then no running statistic changes.

        Evaluation mode: γ · (a - running mean) / √(running variance + eps) + β. Any K, also 1. The running
        statistics do not change, and gradients flow to `a`, γ and β.
        """
        # BEGIN SOLUTION
        if not self.training:
            return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias
        if a.shape[0] < 2:
            raise ValueError(f"batch normalization needs more than one row while training, got shape {tuple(a.shape)}")
        self.running_mean, self.running_var = update_running_stats(
            self.running_mean, self.running_var, a, self.momentum
        )
        return batch_norm(a, self.weight, self.bias, self.eps)
        # END SOLUTION


def layer_norm(a: Tensor, gamma: Tensor, beta: Tensor, eps: float = 1e-5) -> Tensor:
    """Layer normalization (Ba, Kiros and Hinton, 2016; Bishop, Eqs. 7.58 to 7.60).

    Every data point is normalized with the mean and variance of its own M entries, those along the *last* axis,
    then scaled and shifted unit by unit: γ · (a - μ) / √(σ² + eps) + β.

    Args:
        a: pre-activations of shape (M,), (K, M), or with further axes in front, such as (B, T, M): the statistics
            are taken over the last axis only. Any number of rows, also 1. Left unchanged.
        gamma: scale, shape (M,).
        beta: shift, shape (M,), added after scaling.
        eps: added to the variance, *inside* the square root.

    Returns:
        Shape and dtype of `a`. The variance is the *biased* one, 1/M, computed from the deviations a - μ. Gradients
        flow to `a`, through μ and σ² as well, and to `gamma` and `beta`.

    Write it yourself: PyTorch's normalization functions and modules are not allowed.
    """
    # BEGIN SOLUTION
    mean = a.mean(dim=-1, keepdim=True)
    deviation = a - mean
    variance = (deviation**2).mean(dim=-1, keepdim=True)
    return gamma * deviation / torch.sqrt(variance + eps) + beta
    # END SOLUTION


def rms_norm(a: Tensor, gamma: Tensor, eps: float = 1e-5) -> Tensor:
    """Root-mean-square normalization (Zhang and Sennrich, 2019).

    Every data point is divided by the root mean square of its own M entries, those along the *last* axis, and scaled
    unit by unit: γ · a / √(mean of a² + eps). Nothing is subtracted and there is no shift.

    Args:
        a: pre-activations of shape (M,), (K, M), or with further axes in front, such as (B, T, M): the statistic is
            taken over the last axis only. Any number of rows, also 1. Left unchanged.
        gamma: scale, shape (M,).
        eps: added to the mean square, *inside* the square root.

    Returns:
        Shape and dtype of `a`. Gradients flow to `a`, through the root mean square as well, and to `gamma`.

    Write it yourself: PyTorch's normalization functions and modules are not allowed.
    """
    # BEGIN SOLUTION
    mean_square = (a**2).mean(dim=-1, keepdim=True)
    return gamma * a / torch.sqrt(mean_square + eps)
    # END SOLUTION


class NormMLP(nn.Module):
    """A fully connected network that normalizes the pre-activations of its hidden layers.

    A hidden layer is linear, then normalization (if any), then activation; the last layer is linear and nothing
    else, so the network returns logits.

    Args:
        dims: sizes of all layers, input first: [2, 64, 64, 1] has two hidden layers of width 64. At least two.
        activation: "tanh" or "relu".
        norm: "none", "batch" (your own `BatchNorm`) or "layer" (PyTorch's `nn.LayerNorm`), with their default
            settings: a separate one for every hidden layer.

    Any other `activation` or `norm` is a ValueError.

    Two attributes, both `nn.ModuleList`: `layers`, the len(dims) - 1 `nn.Linear` layers (with bias, initialized as
    PyTorch does), first layer first; `norms`, the normalization of each hidden layer in the same order, empty for
    "none".
    """

    layers: nn.ModuleList
    norms: nn.ModuleList

    def __init__(self, dims: list[int], activation: str = "tanh", norm: str = "none") -> None:
        super().__init__()
        # BEGIN SOLUTION
        activations = {"tanh": torch.tanh, "relu": torch.relu}
        if activation not in activations:
            raise ValueError(f"activation must be 'tanh' or 'relu', not {activation!r}")
        self.activation = activations[activation]
        self.layers = nn.ModuleList(nn.Linear(dims[i], dims[i + 1]) for i in range(len(dims) - 1))
        if norm == "none":
            self.norms = nn.ModuleList()
        elif norm == "batch":
            self.norms = nn.ModuleList(BatchNorm(width) for width in dims[1:-1])
        elif norm == "layer":
            self.norms = nn.ModuleList(nn.LayerNorm(width) for width in dims[1:-1])
        else:
            raise ValueError(f"norm must be 'none', 'batch' or 'layer', not {norm!r}")
        # END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        """Logits of shape (N, dims[-1]) for inputs `x` of shape (N, dims[0])."""
        # BEGIN SOLUTION
        last = len(self.layers) - 1
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i < last:
                if self.norms:
                    x = self.norms[i](x)
                x = self.activation(x)
        return x
        # END SOLUTION


def train_classifier(
    model: nn.Module,
    x: Tensor,
    t: Tensor,
    n_epochs: int,
    lr: float,
    batch_size: int,
    generator: torch.Generator | None = None,
) -> list[float]:
    """Trains a binary classifier with plain mini-batch SGD on the mean binary cross-entropy of its logits.

    In every epoch the N data points are shuffled anew and cut into mini-batches of `batch_size` (the last one holds
    what is left over), so that each data point is used exactly once. Every mini-batch gives one step of gradient
    descent, without momentum or weight decay, on the *mean* loss of that mini-batch.

    Args:
        model: returns logits of shape (n, 1) for inputs of shape (n, D): sigmoid is not part of it. It is put into
            training mode, whatever mode it came in, trained in place, and left in training mode.
        x: inputs of shape (N, D). Left unchanged.
        t: targets 0.0 or 1.0, shape (N, 1); row n belongs to row n of `x`. Left unchanged.
        n_epochs: passes over the data.
        lr: learning rate, the same throughout.
        batch_size: data points per mini-batch.
        generator: source of the shuffling; None means PyTorch's global one. Equal generators and models give equal
            results.

    Returns:
        `n_epochs` floats: for each epoch the mean loss over the N data points, each counted with the loss it had when
        its mini-batch was used (so a smaller last mini-batch weighs less).
    """
    # BEGIN SOLUTION
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model.train()
    history = []
    for _ in range(n_epochs):
        total = 0.0
        for rows in torch.split(torch.randperm(len(x), generator=generator), batch_size):
            loss = loss_function(model(x[rows]), t[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        history.append(total / len(x))
    return history
    # END SOLUTION
