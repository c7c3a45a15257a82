"""Known mistakes: layer normalization and RMSNorm."""

import torch

from autograder.authoring import mistake

LN = "test_layer_norm.py"
RMS = "test_rms_norm.py"


@mistake(
    "layer_norm",
    "statistics-over-the-batch",
    hint="The statistics are taken for each unit over the data points: that is batch normalization. Layer norm takes "
    "them for each data point over its units, the last axis.",
    caught_by=(f"{LN}::test_values", f"{LN}::test_other_shapes", f"{LN}::test_invariance"),
)
def layer_norm(a, gamma, beta, eps=1e-5):
    return gamma * (a - a.mean(dim=0)) / torch.sqrt(a.var(dim=0, correction=0) + eps) + beta


@mistake(
    "layer_norm",
    "statistics-over-everything",
    hint="One mean and one variance for the whole tensor: every data point has to be normalized with its own. Say "
    "along which axis to reduce.",
    caught_by=(f"{LN}::test_values", f"{LN}::test_invariance"),
)
def layer_norm(a, gamma, beta, eps=1e-5):
    return gamma * (a - a.mean()) / torch.sqrt(a.var(correction=0) + eps) + beta


@mistake(
    "layer_norm",
    "unbiased-std-plus-eps",
    hint="This is a much-copied snippet with two slips: `std` is unbiased by default (layer norm wants 1/M), and eps "
    "is added after the root instead of under it.",
    caught_by=(f"{LN}::test_values", f"{LN}::test_eps"),
)
def layer_norm(a, gamma, beta, eps=1e-5):
    return gamma * (a - a.mean(dim=-1, keepdim=True)) / (a.std(dim=-1, keepdim=True) + eps) + beta


@mistake(
    "layer_norm",
    "unbiased-variance",
    hint="The variance is divided by M - 1. Layer norm uses the biased variance, 1/M; `torch.var` is unbiased unless "
    "told otherwise.",
    caught_by=(f"{LN}::test_values", f"{LN}::test_gradients"),
)
def layer_norm(a, gamma, beta, eps=1e-5):
    return gamma * (a - a.mean(dim=-1, keepdim=True)) / torch.sqrt(a.var(dim=-1, keepdim=True) + eps) + beta


@mistake(
    "layer_norm",
    "eps-outside-the-root",
    hint="`eps` is added to the standard deviation. It belongs to the variance, inside the square root.",
    caught_by=f"{LN}::test_eps",
)
def layer_norm(a, gamma, beta, eps=1e-5):
    std = a.var(dim=-1, correction=0, keepdim=True).sqrt()
    return gamma * (a - a.mean(dim=-1, keepdim=True)) / (std + eps) + beta


@mistake(
    "layer_norm",
    "eps-missing",
    hint="`eps` is not used at all. Without it a data point whose entries hardly vary is divided by almost nothing.",
    caught_by=f"{LN}::test_eps",
)
def layer_norm(a, gamma, beta, eps=1e-5):
    std = a.var(dim=-1, correction=0, keepdim=True).sqrt()
    return gamma * (a - a.mean(dim=-1, keepdim=True)) / std + beta


@mistake(
    "layer_norm",
    "keepdim-forgotten",
    hint="The means and variances have lost their last axis, so broadcasting lines them up with the units instead of "
    "the data points (or fails). Keep the axis with `keepdim=True`.",
    caught_by=(f"{LN}::test_values", f"{LN}::test_other_shapes"),
)
def layer_norm(a, gamma, beta, eps=1e-5):
    return gamma * (a - a.mean(dim=-1)) / torch.sqrt(a.var(dim=-1, correction=0) + eps) + beta


@mistake(
    "layer_norm",
    "second-axis",
    hint="`dim=1` is the last axis of a matrix only. With other numbers of axes it is another one, or none: count from "
    "the end, `dim=-1`.",
    caught_by=f"{LN}::test_other_shapes",
)
def layer_norm(a, gamma, beta, eps=1e-5):
    mean, var = a.mean(dim=1, keepdim=True), a.var(dim=1, correction=0, keepdim=True)
    return gamma * (a - mean) / torch.sqrt(var + eps) + beta


@mistake(
    "layer_norm",
    "no-scale-and-shift",
    hint="`gamma` and `beta` are not applied: one of each per unit, after normalizing.",
    caught_by=(f"{LN}::test_values", f"{LN}::test_gradients"),
)
def layer_norm(a, gamma, beta, eps=1e-5):
    mean, var = a.mean(dim=-1, keepdim=True), a.var(dim=-1, correction=0, keepdim=True)
    return (a - mean) / torch.sqrt(var + eps)


@mistake(
    "layer_norm",
    "shift-scaled-too",
    hint="`beta` is multiplied by gamma. The shift is added last, after scaling.",
    caught_by=(f"{LN}::test_values", f"{LN}::test_gradients"),
)
def layer_norm(a, gamma, beta, eps=1e-5):
    mean, var = a.mean(dim=-1, keepdim=True), a.var(dim=-1, correction=0, keepdim=True)
    return gamma * ((a - mean) / torch.sqrt(var + eps) + beta)


@mistake(
    "layer_norm",
    "statistics-detached",
    hint="The values are right but not the gradients: mean and variance depend on `a`, too, and the gradient has to "
    "flow through both.",
    caught_by=f"{LN}::test_gradients",
)
def layer_norm(a, gamma, beta, eps=1e-5):
    with torch.no_grad():
        mean, var = a.mean(dim=-1, keepdim=True), a.var(dim=-1, correction=0, keepdim=True)
    return gamma * (a - mean) / torch.sqrt(var + eps) + beta


@mistake(
    "layer_norm",
    "difference-of-squares",
    hint="Mean of the squares minus square of the mean is the variance on paper only: when the mean is large, two "
    "nearly equal numbers are subtracted and hardly a correct digit is left. Average the squared deviations a - μ "
    "instead.",
    caught_by=f"{LN}::test_large_offset",
)
def layer_norm(a, gamma, beta, eps=1e-5):
    mean = a.mean(dim=-1, keepdim=True)
    var = ((a**2).mean(dim=-1, keepdim=True) - mean**2).clamp(min=0)
    return gamma * (a - mean) / torch.sqrt(var + eps) + beta


@mistake(
    "layer_norm",
    "input-overwritten",
    hint="The argument `a` is changed: `-=` works in place on the caller's tensor. Write the result to a new one.",
    caught_by=f"{LN}::test_inputs_unchanged",
)
def layer_norm(a, gamma, beta, eps=1e-5):
    std = torch.sqrt(a.var(dim=-1, correction=0, keepdim=True) + eps)
    a -= a.mean(dim=-1, keepdim=True)
    return gamma * a / std + beta


@mistake(
    "rms_norm",
    "mean-subtracted",
    hint="The mean is subtracted: that is layer normalization. RMSNorm leaves the mean where it is, before squaring "
    "and before dividing.",
    caught_by=(f"{RMS}::test_values", f"{RMS}::test_invariance"),
)
def rms_norm(a, gamma, eps=1e-5):
    deviation = a - a.mean(dim=-1, keepdim=True)
    return gamma * deviation / torch.sqrt((deviation**2).mean(dim=-1, keepdim=True) + eps)


@mistake(
    "rms_norm",
    "standard-deviation",
    hint="It divides by the standard deviation, whose mean has been subtracted. The root mean square takes the entries "
    "as they are.",
    caught_by=f"{RMS}::test_values",
)
def rms_norm(a, gamma, eps=1e-5):
    return gamma * a / torch.sqrt(a.var(dim=-1, correction=0, keepdim=True) + eps)


@mistake(
    "rms_norm",
    "sum-of-squares",
    hint="The squares are added up but not divided by their number: it is the *mean* square whose root is taken.",
    caught_by=(f"{RMS}::test_values", f"{RMS}::test_zero_mean_rows"),
)
def rms_norm(a, gamma, eps=1e-5):
    return gamma * a / torch.sqrt((a**2).sum(dim=-1, keepdim=True) + eps)


@mistake(
    "rms_norm",
    "no-root",
    hint="It divides by the mean square. Take its square root: rescaling a data point must change nothing.",
    caught_by=(f"{RMS}::test_values", f"{RMS}::test_invariance"),
)
def rms_norm(a, gamma, eps=1e-5):
    return gamma * a / ((a**2).mean(dim=-1, keepdim=True) + eps)


@mistake(
    "rms_norm",
    "eps-outside-the-root",
    hint="`eps` is added to the root mean square. It belongs to the mean square, inside the root.",
    caught_by=f"{RMS}::test_eps",
)
def rms_norm(a, gamma, eps=1e-5):
    return gamma * a / ((a**2).mean(dim=-1, keepdim=True).sqrt() + eps)


@mistake(
    "rms_norm",
    "eps-missing",
    hint="`eps` is not used at all. Without it a data point close to zero is divided by almost nothing.",
    caught_by=f"{RMS}::test_eps",
)
def rms_norm(a, gamma, eps=1e-5):
    return gamma * a / (a**2).mean(dim=-1, keepdim=True).sqrt()


@mistake(
    "rms_norm",
    "machine-epsilon",
    hint="The default of eps is another one. `nn.RMSNorm` takes the machine epsilon of the dtype when it is told "
    "nothing; here the default is 1e-5, as for the other norms.",
    caught_by=f"{RMS}::test_eps",
)
def rms_norm(a, gamma, eps=None):
    eps = torch.finfo(a.dtype).eps if eps is None else eps
    return gamma * a / torch.sqrt((a**2).mean(dim=-1, keepdim=True) + eps)


@mistake(
    "rms_norm",
    "over-the-batch",
    hint="The root mean square is taken for each unit over the data points. It belongs to a data point: reduce the "
    "last axis.",
    caught_by=(f"{RMS}::test_values", f"{RMS}::test_other_shapes"),
)
def rms_norm(a, gamma, eps=1e-5):
    return gamma * a / torch.sqrt((a**2).mean(dim=0, keepdim=True) + eps)


@mistake(
    "rms_norm",
    "second-axis",
    hint="`dim=1` is the last axis of a matrix only. With other numbers of axes it is another one, or none: count from "
    "the end, `dim=-1`.",
    caught_by=f"{RMS}::test_other_shapes",
)
def rms_norm(a, gamma, eps=1e-5):
    return gamma * a / torch.sqrt((a**2).mean(dim=1, keepdim=True) + eps)


@mistake(
    "rms_norm",
    "scale-not-applied",
    hint="`gamma` is not applied: one factor per unit, after dividing.",
    caught_by=(f"{RMS}::test_values", f"{RMS}::test_gradients"),
)
def rms_norm(a, gamma, eps=1e-5):
    return a / torch.sqrt((a**2).mean(dim=-1, keepdim=True) + eps)


@mistake(
    "rms_norm",
    "one-plus-gamma",
    hint="The rows are scaled by 1 + gamma, as some language models do with a gamma that starts at 0. Here gamma is "
    "the whole factor.",
    caught_by=f"{RMS}::test_values",
)
def rms_norm(a, gamma, eps=1e-5):
    return (1 + gamma) * a / torch.sqrt((a**2).mean(dim=-1, keepdim=True) + eps)


@mistake(
    "rms_norm",
    "statistic-detached",
    hint="The values are right but not the gradient: the root mean square depends on `a`, too, and the gradient has to "
    "flow through it.",
    caught_by=f"{RMS}::test_gradients",
)
def rms_norm(a, gamma, eps=1e-5):
    return gamma * a / torch.sqrt((a.detach() ** 2).mean(dim=-1, keepdim=True) + eps)


@mistake(
    "rms_norm",
    "input-overwritten",
    hint="The argument `a` is changed: `/=` works in place on the caller's tensor. Write the result to a new one.",
    caught_by=f"{RMS}::test_inputs_unchanged",
)
def rms_norm(a, gamma, eps=1e-5):
    a /= torch.sqrt((a**2).mean(dim=-1, keepdim=True) + eps)
    return gamma * a
