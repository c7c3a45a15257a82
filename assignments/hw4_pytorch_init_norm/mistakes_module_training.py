"""Known mistakes: batch normalization as a module, normalization, running averages and refusals in training mode."""

import torch
from torch import nn

from autograder.authoring import mistake

OUTPUT = "test_batch_norm_module.py::test_training_output"
GRADIENTS = "test_batch_norm_module.py::test_training_gradients"
RUNNING = "test_batch_norm_module.py::test_running_averages"
MOMENTUM = "test_batch_norm_module.py::test_other_momentum"
EVALUATION = "test_batch_norm_module.py::test_evaluation"
THERE_AND_BACK = "test_batch_norm_module.py::test_there_and_back"
SINGLE_ROW = "test_batch_norm_module.py::test_single_row"
LOADED = "test_batch_norm_module.py::test_saved_and_loaded"
NO_GRAPH = "test_batch_norm_module.py::test_no_graph"


@mistake(
    "batch_norm_module",
    "running-statistics-in-training",
    hint="In training mode the running averages are used for normalizing. While training, the mini-batch is normalized "
    "with its own statistics; the averages are only collected.",
    caught_by=(OUTPUT, GRADIENTS),
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, a):
        if self.training:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            self.running_mean, self.running_var = update_running_stats(
                self.running_mean, self.running_var, a, self.momentum
            )
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "never-updated",
    hint="The running averages stay at 0 and 1: in training mode every forward pass has to update them.",
    caught_by=(RUNNING, MOMENTUM, THERE_AND_BACK, LOADED),
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, a):
        if self.training:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "graph-kept",
    hint="The running averages carry the graph of the mini-batches, so each step holds on to all the steps before it. "
    "They are not trained: compute them without recording.",
    caught_by=NO_GRAPH,
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, a):
        if self.training:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            mean, var = a.mean(dim=0), a.var(dim=0)
            self.running_mean = (1 - self.momentum) * self.running_mean + self.momentum * mean
            self.running_var = (1 - self.momentum) * self.running_var + self.momentum * var
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "single-row-accepted",
    hint="One row is accepted in training mode. Its variance is zero, so the output would be beta whatever the input, "
    "and the unbiased variance is not even defined: refuse it with a ValueError.",
    caught_by=SINGLE_ROW,
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, a):
        if self.training:
            self.running_mean, self.running_var = update_running_stats(
                self.running_mean, self.running_var, a, self.momentum
            )
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "single-row-refused-too-late",
    hint="A single row is refused, but only after it has spoiled the running averages. Check first, then update.",
    caught_by=SINGLE_ROW,
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, a):
        if self.training:
            self.running_mean, self.running_var = update_running_stats(
                self.running_mean, self.running_var, a, self.momentum
            )
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "eps-hard-coded",
    hint="The module's eps is not used: hand `self.eps` on, in both modes.",
    caught_by=(OUTPUT, EVALUATION),
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, a):
        if self.training:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            self.running_mean, self.running_var = update_running_stats(
                self.running_mean, self.running_var, a, self.momentum
            )
            return batch_norm(a, self.weight, self.bias)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + 1e-5) + self.bias


@mistake(
    "batch_norm_module",
    "momentum-hard-coded",
    hint="The module's momentum is not used: hand `self.momentum` on when the averages are updated.",
    caught_by=MOMENTUM,
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, a):
        if self.training:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            self.running_mean, self.running_var = update_running_stats(self.running_mean, self.running_var, a)
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "momentum-on-the-wrong-side",
    hint="`momentum` weighs the old average. It weighs the *new* batch: with 0.1 the average moves a tenth of the way.",
    caught_by=(RUNNING, MOMENTUM),
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, a):
        if self.training:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            self.running_mean, self.running_var = update_running_stats(
                self.running_mean, self.running_var, a, 1 - self.momentum
            )
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "biased-variance-averaged",
    hint="The running variance averages the biased batch variance. Normalize with the biased one (1/K), but average "
    "the unbiased one (1/(K - 1)).",
    caught_by=(RUNNING, MOMENTUM),
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, a):
        if self.training:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            with torch.no_grad():
                self.running_mean += self.momentum * (a.mean(dim=0) - self.running_mean)
                self.running_var += self.momentum * (a.var(dim=0, correction=0) - self.running_var)
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "unbiased-variance-normalizes",
    hint="Training mode normalizes with the unbiased variance. Only the running average takes that one; the mini-batch "
    "itself is normalized with the biased one, 1/K.",
    caught_by=(OUTPUT, GRADIENTS),
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, a):
        if self.training:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            self.running_mean, self.running_var = update_running_stats(
                self.running_mean, self.running_var, a, self.momentum
            )
            return self.weight * (a - a.mean(dim=0)) / torch.sqrt(a.var(dim=0) + self.eps) + self.bias
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "standard-deviation-averaged",
    hint="The running average holds standard deviations under the name of variances. Average the variance.",
    caught_by=(RUNNING, MOMENTUM),
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, a):
        if self.training:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            with torch.no_grad():
                self.running_mean += self.momentum * (a.mean(dim=0) - self.running_mean)
                self.running_var += self.momentum * (a.std(dim=0) - self.running_var)
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "statistics-detached",
    hint="The output is right, the gradient is not: the batch's mean and variance depend on the input, too, and here "
    "they are computed without recording.",
    caught_by=GRADIENTS,
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, a):
        if self.training:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            self.running_mean, self.running_var = update_running_stats(
                self.running_mean, self.running_var, a, self.momentum
            )
            mean, var = a.detach().mean(dim=0), a.detach().var(dim=0, correction=0)
            return self.weight * (a - mean) / torch.sqrt(var + self.eps) + self.bias
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias
