"""Known mistakes: batch normalization of a mini-batch, and its running statistics."""

import torch

from autograder.authoring import mistake

VALUES = "test_batch_norm.py::test_values"
EPS = "test_batch_norm.py::test_eps"
GRADIENTS = "test_batch_norm.py::test_gradients"


@mistake(
    "batch_norm",
    "unbiased-variance",
    hint="The variance is divided by K - 1. Batch norm normalizes with the *biased* variance, 1/K; the unbiased one "
    "belongs in the running average. `torch.var` and `torch.std` are unbiased unless told otherwise.",
    caught_by=(VALUES, GRADIENTS),
)
def batch_norm(a, gamma, beta, eps=1e-5):
    return gamma * (a - a.mean(dim=0)) / torch.sqrt(a.var(dim=0) + eps) + beta


@mistake(
    "batch_norm",
    "eps-outside-the-root",
    hint="`eps` is added to the standard deviation. It belongs to the variance, inside the square root, where it also "
    "keeps the gradient of the root finite.",
    caught_by=EPS,
)
def batch_norm(a, gamma, beta, eps=1e-5):
    return gamma * (a - a.mean(dim=0)) / (a.var(dim=0, correction=0).sqrt() + eps) + beta


@mistake(
    "batch_norm",
    "eps-missing",
    hint="`eps` is not used at all. Without it a column that hardly varies is divided by almost nothing.",
    caught_by=EPS,
)
def batch_norm(a, gamma, beta, eps=1e-5):
    return gamma * (a - a.mean(dim=0)) / a.var(dim=0, correction=0).sqrt() + beta


@mistake(
    "batch_norm",
    "eps-hard-coded",
    hint="The argument eps is ignored in favour of a fixed number. Use the value that is passed.",
    caught_by=EPS,
)
def batch_norm(a, gamma, beta, eps=1e-5):
    return gamma * (a - a.mean(dim=0)) / torch.sqrt(a.var(dim=0, correction=0) + 1e-5) + beta


@mistake(
    "batch_norm",
    "unbiased-std-plus-eps",
    hint="This is a much-copied snippet with two slips: `std` is unbiased by default (batch norm wants 1/K), and eps "
    "is added after the root instead of under it.",
    caught_by=(VALUES, EPS),
)
def batch_norm(a, gamma, beta, eps=1e-5):
    return gamma * (a - a.mean(dim=0)) / (a.std(dim=0) + eps) + beta


@mistake(
    "batch_norm",
    "no-root",
    hint="The deviations are divided by the variance. Divide by its square root: dividing by the spread itself is what "
    "makes the result independent of the units.",
    caught_by=(VALUES, "test_batch_norm.py::test_invariance"),
)
def batch_norm(a, gamma, beta, eps=1e-5):
    return gamma * (a - a.mean(dim=0)) / (a.var(dim=0, correction=0) + eps) + beta


@mistake(
    "batch_norm",
    "statistics-over-the-row",
    hint="The statistics are taken over the units of each data point: that is layer normalization. Batch norm takes "
    "them for each unit over the data points, which are the rows (dim=0).",
    caught_by=(VALUES, "test_batch_norm.py::test_invariance"),
)
def batch_norm(a, gamma, beta, eps=1e-5):
    mean = a.mean(dim=1, keepdim=True)
    var = a.var(dim=1, correction=0, keepdim=True)
    return gamma * (a - mean) / torch.sqrt(var + eps) + beta


@mistake(
    "batch_norm",
    "statistics-over-everything",
    hint="One mean and one variance for the whole matrix: every unit has to be normalized with its own. Say along "
    "which axis to reduce.",
    caught_by=(f"{VALUES}[8-4]", "test_batch_norm.py::test_invariance"),
)
def batch_norm(a, gamma, beta, eps=1e-5):
    return gamma * (a - a.mean()) / torch.sqrt(a.var(correction=0) + eps) + beta


@mistake(
    "batch_norm",
    "no-scale-and-shift",
    hint="`gamma` and `beta` are not applied. They give the layer back the freedom to choose its own scale and shift.",
    caught_by=(VALUES, GRADIENTS),
)
def batch_norm(a, gamma, beta, eps=1e-5):
    return (a - a.mean(dim=0)) / torch.sqrt(a.var(dim=0, correction=0) + eps)


@mistake(
    "batch_norm",
    "shift-scaled-too",
    hint="`beta` is multiplied by gamma. The shift is added last, after scaling.",
    caught_by=(VALUES, GRADIENTS),
)
def batch_norm(a, gamma, beta, eps=1e-5):
    return gamma * ((a - a.mean(dim=0)) / torch.sqrt(a.var(dim=0, correction=0) + eps) + beta)


@mistake(
    "batch_norm",
    "statistics-detached",
    hint="The values are right but not the gradients: the batch's mean and variance depend on `a`, too, and the "
    "gradient has to flow through both. Do not compute them under `no_grad` or detach them.",
    caught_by=GRADIENTS,
)
def batch_norm(a, gamma, beta, eps=1e-5):
    with torch.no_grad():
        mean, var = a.mean(dim=0), a.var(dim=0, correction=0)
    return gamma * (a - mean) / torch.sqrt(var + eps) + beta


@mistake(
    "batch_norm",
    "variance-detached",
    hint="The gradient flows through the mean but not through the variance, which depends on `a` as well.",
    caught_by=GRADIENTS,
)
def batch_norm(a, gamma, beta, eps=1e-5):
    var = a.var(dim=0, correction=0).detach()
    return gamma * (a - a.mean(dim=0)) / torch.sqrt(var + eps) + beta


@mistake(
    "batch_norm",
    "parameters-cut-off",
    hint="`gamma` and `beta` get no gradient: `.data` (like `.detach()`) cuts a tensor off from the graph. Use them "
    "directly.",
    caught_by=GRADIENTS,
)
def batch_norm(a, gamma, beta, eps=1e-5):
    return gamma.data * (a - a.mean(dim=0)) / torch.sqrt(a.var(dim=0, correction=0) + eps) + beta.data


@mistake(
    "batch_norm",
    "input-overwritten",
    hint="The argument `a` is changed: `-=` and `/=` work in place on the caller's tensor. Write the result to a new "
    "one.",
    caught_by="test_batch_norm.py::test_inputs_unchanged",
)
def batch_norm(a, gamma, beta, eps=1e-5):
    var = a.var(dim=0, correction=0)
    a -= a.mean(dim=0)
    return gamma * a / torch.sqrt(var + eps) + beta


@mistake(
    "batch_norm",
    "difference-of-squares",
    hint="Mean of the squares minus square of the mean is the variance on paper only: when the mean is large, two "
    "nearly equal numbers are subtracted and hardly a correct digit is left. Average the squared deviations a - μ "
    "instead.",
    caught_by="test_batch_norm.py::test_large_offset",
)
def batch_norm(a, gamma, beta, eps=1e-5):
    mean = a.mean(dim=0)
    var = ((a**2).mean(dim=0) - mean**2).clamp(min=0)
    return gamma * (a - mean) / torch.sqrt(var + eps) + beta


@mistake(
    "batch_norm",
    "squeezed",
    hint="`squeeze` drops every axis of length one, also that of a single unit. The result has to keep the shape (K, "
    "M).",
    caught_by=f"{VALUES}[2-1]",
)
def batch_norm(a, gamma, beta, eps=1e-5):
    return (gamma * (a - a.mean(dim=0)) / torch.sqrt(a.var(dim=0, correction=0) + eps) + beta).squeeze()


STEP = "test_running_stats.py::test_one_step"
STEPS = "test_running_stats.py::test_several_steps"


@mistake(
    "running_stats",
    "biased-variance",
    hint="The running average takes the *unbiased* batch variance, divided by K - 1. The biased one, 1/K, is what the "
    "mini-batch itself is normalized with.",
    caught_by=(STEP, STEPS),
)
def update_running_stats(running_mean, running_var, a, momentum=0.1):
    mean, var = a.detach().mean(dim=0), a.detach().var(dim=0, correction=0)
    return (1 - momentum) * running_mean + momentum * mean, (1 - momentum) * running_var + momentum * var


@mistake(
    "running_stats",
    "momentum-on-the-wrong-side",
    hint="`momentum` weighs the old average here. In PyTorch's convention, and in this assignment, it weighs the *new* "
    "batch: with 0.1 the average moves a tenth of the way.",
    caught_by=(STEP, STEPS),
)
def update_running_stats(running_mean, running_var, a, momentum=0.1):
    mean, var = a.detach().mean(dim=0), a.detach().var(dim=0)
    return momentum * running_mean + (1 - momentum) * mean, momentum * running_var + (1 - momentum) * var


@mistake(
    "running_stats",
    "standard-deviation",
    hint="The standard deviation is averaged. It is the variance that is kept, which the module then takes the root "
    "of.",
    caught_by=(STEP, STEPS),
)
def update_running_stats(running_mean, running_var, a, momentum=0.1):
    mean, std = a.detach().mean(dim=0), a.detach().std(dim=0)
    return (1 - momentum) * running_mean + momentum * mean, (1 - momentum) * running_var + momentum * std


@mistake(
    "running_stats",
    "eps-stored",
    hint="There is an eps in the stored variance. eps protects the division and is added there, every time; what is "
    "averaged is the plain variance.",
    caught_by="test_running_stats.py::test_small_spread",
)
def update_running_stats(running_mean, running_var, a, momentum=0.1):
    mean, var = a.detach().mean(dim=0), a.detach().var(dim=0) + 1e-5
    return (1 - momentum) * running_mean + momentum * mean, (1 - momentum) * running_var + momentum * var


@mistake(
    "running_stats",
    "momentum-hard-coded",
    hint="The argument momentum is ignored in favour of a fixed 0.1. Use the value that is passed.",
    caught_by=f"{STEP}[two-rows-other-momentum]",
)
def update_running_stats(running_mean, running_var, a, momentum=0.1):
    mean, var = a.detach().mean(dim=0), a.detach().var(dim=0)
    return 0.9 * running_mean + 0.1 * mean, 0.9 * running_var + 0.1 * var


@mistake(
    "running_stats",
    "not-averaged",
    hint="The new batch's statistics replace the old averages. Only a share of `momentum` of them is mixed in.",
    caught_by=(STEP, STEPS),
)
def update_running_stats(running_mean, running_var, a, momentum=0.1):
    return a.detach().mean(dim=0), a.detach().var(dim=0)


@mistake(
    "running_stats",
    "arguments-overwritten",
    hint="The old averages are changed in place. The function is to return new tensors and leave its arguments alone: "
    "the module decides what becomes of them.",
    caught_by="test_running_stats.py::test_arguments_unchanged",
)
def update_running_stats(running_mean, running_var, a, momentum=0.1):
    with torch.no_grad():
        running_mean.mul_(1 - momentum).add_(momentum * a.mean(dim=0))
        running_var.mul_(1 - momentum).add_(momentum * a.var(dim=0))
    return running_mean, running_var


@mistake(
    "running_stats",
    "graph-kept",
    hint="The averages carry the graph of the mini-batch, so each step would hold on to all the steps before it, and "
    "memory grows. They are not trained: compute them under `torch.no_grad()`, or from `a.detach()`.",
    caught_by=("test_running_stats.py::test_no_graph", "test_batch_norm_module.py::test_no_graph"),
)
def update_running_stats(running_mean, running_var, a, momentum=0.1):
    mean, var = a.mean(dim=0), a.var(dim=0)
    return (1 - momentum) * running_mean + momentum * mean, (1 - momentum) * running_var + momentum * var


@mistake(
    "running_stats",
    "extra-axis",
    hint="The results have shape (1, M). One number per unit means shape (M,): leave out `keepdim`.",
    caught_by=(STEP, STEPS),
)
def update_running_stats(running_mean, running_var, a, momentum=0.1):
    mean, var = a.detach().mean(dim=0, keepdim=True), a.detach().var(dim=0, keepdim=True)
    return (1 - momentum) * running_mean + momentum * mean, (1 - momentum) * running_var + momentum * var
