"""Known mistakes: batch normalization as a module, evaluation mode and the saved state."""

import torch
from torch import nn

from autograder.authoring import mistake

RUNNING = "test_batch_norm_module.py::test_running_averages"
EVALUATION = "test_batch_norm_module.py::test_evaluation"
EVALUATION_GRADIENTS = "test_batch_norm_module.py::test_evaluation_gradients"
THERE_AND_BACK = "test_batch_norm_module.py::test_there_and_back"
STATE = "test_batch_norm_module.py::test_state_dict"
LOADED = "test_batch_norm_module.py::test_saved_and_loaded"


@mistake(
    "batch_norm_module",
    "no-scale-and-shift-in-evaluation",
    hint="In evaluation mode gamma and beta are forgotten. The two modes differ only in where the mean and the "
    "variance come from.",
    caught_by=(EVALUATION, EVALUATION_GRADIENTS),
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
            return batch_norm(a, self.weight, self.bias, self.eps)
        return (a - self.running_mean) / torch.sqrt(self.running_var + self.eps)


@mistake(
    "batch_norm_module",
    "batch-statistics-in-evaluation",
    hint="In evaluation mode the rows are still normalized with their own mean and variance, so a prediction depends "
    "on its companions. Ask `self.training`, and use the running averages in evaluation.",
    caught_by=(EVALUATION, EVALUATION_GRADIENTS, THERE_AND_BACK, LOADED),
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
            return batch_norm(a, self.weight, self.bias, self.eps)
        return batch_norm(a, self.weight, self.bias, self.eps)


@mistake(
    "batch_norm_module",
    "updated-in-evaluation",
    hint="The running averages change in evaluation mode. There the module only uses them: what it sees at test time "
    "must leave no trace.",
    caught_by=(EVALUATION, THERE_AND_BACK),
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
        if self.training and len(a) < 2:
            raise ValueError("more than one row is needed while training")
        mean, var = self.running_mean, self.running_var
        if len(a) > 1:
            self.running_mean, self.running_var = update_running_stats(
                self.running_mean, self.running_var, a, self.momentum
            )
        if self.training:
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - mean) / torch.sqrt(var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "plain-attributes",
    hint="The running averages are plain attributes, so they are not in the state_dict and a saved model forgets them. "
    "Register them as buffers.",
    caught_by=(STATE, LOADED),
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.running_mean = torch.zeros(num_features)
        self.running_var = torch.ones(num_features)

    def forward(self, a):
        if self.training:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            self.running_mean, self.running_var = update_running_stats(
                self.running_mean, self.running_var, a, self.momentum
            )
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "averages-as-parameters",
    hint="The running averages are parameters, so the optimizer would train them. They are state that is saved but not "
    "trained: buffers.",
    caught_by=STATE,
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.running_mean = nn.Parameter(torch.zeros(num_features))
        self.running_var = nn.Parameter(torch.ones(num_features))

    def forward(self, a):
        if self.training:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            mean, var = update_running_stats(self.running_mean, self.running_var, a, self.momentum)
            self.running_mean.data, self.running_var.data = mean.detach(), var.detach()
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "averages-as-frozen-parameters",
    hint="The running averages are parameters with `requires_grad=False`. They would still be handed to the optimizer "
    "with the others: state that is saved but not trained belongs in buffers.",
    caught_by=STATE,
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.running_mean = nn.Parameter(torch.zeros(num_features), requires_grad=False)
        self.running_var = nn.Parameter(torch.ones(num_features), requires_grad=False)

    def forward(self, a):
        if self.training:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            mean, var = update_running_stats(self.running_mean, self.running_var, a, self.momentum)
            self.running_mean.data, self.running_var.data = mean, var
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "extra-axis",
    hint="The buffers have shape (1, M). One number per unit means shape (M,), which also lines up with the rows of "
    "`a` by itself.",
    caught_by=STATE,
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(1, num_features))
        self.register_buffer("running_var", torch.ones(1, num_features))

    def forward(self, a):
        if self.training:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            self.running_mean, self.running_var = update_running_stats(
                self.running_mean, self.running_var, a, self.momentum
            )
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "variance-starts-at-zero",
    hint="The running variance starts at 0. Before any training a module should change nothing: mean 0 and variance 1.",
    caught_by=(STATE, RUNNING),
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.zeros(num_features))

    def forward(self, a):
        if self.training:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            self.running_mean, self.running_var = update_running_stats(
                self.running_mean, self.running_var, a, self.momentum
            )
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "scale-and-shift-not-trained",
    hint="`gamma` and `beta` are buffers, so no optimizer will ever change them. They are what the layer learns: make "
    "them parameters.",
    caught_by=STATE,
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_buffer("weight", torch.ones(num_features))
        self.register_buffer("bias", torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, a):
        if self.training:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            self.running_mean, self.running_var = update_running_stats(
                self.running_mean, self.running_var, a, self.momentum
            )
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "single-row-refused-in-evaluation",
    hint="A single row is refused in evaluation mode, too. There the statistics are already known, and predicting for "
    "one data point is just what they are kept for.",
    caught_by=EVALUATION,
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
        if len(a) < 2:
            raise ValueError("more than one row is needed")
        if self.training:
            self.running_mean, self.running_var = update_running_stats(
                self.running_mean, self.running_var, a, self.momentum
            )
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "eps-missing-in-evaluation",
    hint="In evaluation mode eps is left out. It is added to the variance in both modes.",
    caught_by=EVALUATION,
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
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var) + self.bias


@mistake(
    "batch_norm_module",
    "eps-outside-the-root-in-evaluation",
    hint="In evaluation mode eps is added after the root. It belongs to the variance, inside the square root, in both "
    "modes.",
    caught_by=EVALUATION,
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
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / (torch.sqrt(self.running_var) + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "no-gradient-in-evaluation",
    hint="Nothing is recorded in evaluation mode. `eval()` changes which statistics are used; whether gradients are "
    "wanted is for the caller to say.",
    caught_by=EVALUATION_GRADIENTS,
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
            return batch_norm(a, self.weight, self.bias, self.eps)
        with torch.no_grad():
            return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias


@mistake(
    "batch_norm_module",
    "mode-fixed-at-the-start",
    hint="The mode is noted when the module is built, so `eval()` has no effect. Ask `self.training` in every forward "
    "pass.",
    caught_by=(EVALUATION, THERE_AND_BACK),
)
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.learning = True

    def forward(self, a):
        if self.learning:
            if len(a) < 2:
                raise ValueError("more than one row is needed while training")
            self.running_mean, self.running_var = update_running_stats(
                self.running_mean, self.running_var, a, self.momentum
            )
            return batch_norm(a, self.weight, self.bias, self.eps)
        return self.weight * (a - self.running_mean) / torch.sqrt(self.running_var + self.eps) + self.bias
