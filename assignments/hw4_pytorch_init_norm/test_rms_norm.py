"""Hidden cases: RMSNorm."""

import functools

import pytest
import torch

from assignments.hw4_pytorch_init_norm.inputs import norm_inputs, normal
from autograder.authoring import require
from autograder.worker.helpers import attempts

pytestmark = pytest.mark.question("rms_norm")

OWN = ("batch_norm", "layer_norm", "rms_norm")


def outputs(nb, cases):
    """The normalized inputs of each case, with the default eps."""
    found = []
    for a, gamma in cases:
        out = nb.rms_norm(a, gamma)
        found.append({"output": out, "shape": list(out.shape), "dtype": str(out.dtype)})
    return found


def outputs_with_eps(nb, cases, eps):
    """The same inputs with the default eps and with another one."""
    return [{"default eps": nb.rms_norm(a, gamma), "eps given": nb.rms_norm(a, gamma, eps)} for a, gamma in cases]


def gradients(nb, a, gamma, upstream):
    """Gradients of sum(upstream · output)."""
    a, gamma = a.clone().requires_grad_(), gamma.clone().requires_grad_()
    nb.rms_norm(a, gamma).backward(upstream)
    return {"gradient of a": a.grad, "gradient of gamma": gamma.grad}


def inputs_after(nb, a, gamma):
    """The arguments after the call, and the dtype of the result."""
    given = [a.clone(), gamma.clone()]
    out = nb.rms_norm(*given)
    return {"a, gamma after the call": given, "dtype": str(out.dtype)}


def observed(nb, given):
    """One part per case."""
    return attempts(
        values=lambda: outputs(nb, given["values"]),
        other_shapes=lambda: outputs(nb, given["other_shapes"]),
        eps=lambda: outputs_with_eps(nb, *given["eps"]),
        gradients=lambda: gradients(nb, *given["gradients"]),
        inputs_unchanged=lambda: inputs_after(nb, *given["inputs_unchanged"]),
        invariance=lambda: outputs(nb, given["invariance"]),
        zero_mean_rows=lambda: outputs(nb, given["zero_mean_rows"]),
    )


@functools.cache
def given():
    """The inputs of each part: tensors of its own, so that no part can spoil another's."""
    shapes = [(2, 3, 4), (6,), (4, 4)]
    gamma = norm_inputs(730, 4, 6)[1]
    tiny, small = normal(733, 4, 6, scale=0.01, offset=0.02), normal(734, 4, 6, scale=0.3, offset=0.2)
    return {
        "values": [norm_inputs(700, 5, 7)[:2], norm_inputs(704, 1, 6)[:2]],
        "other_shapes": [norm_inputs(710 + 4 * i, *shape)[:2] for i, shape in enumerate(shapes)],
        "eps": [[[tiny, gamma], [small, gamma]], 0.1],
        "gradients": [*norm_inputs(740, 6, 5)[:2], normal(743, 6, 5)],
        "inputs_unchanged": norm_inputs(760, 5, 3, dtype=torch.float32)[:2],
        "invariance": in_other_units(),
        "zero_mean_rows": [rows_of_mean_zero()],
    }


def in_other_units():
    """The same data three times: as they are, with every data point rescaled, and with all of them shifted."""
    a, gamma, _ = norm_inputs(770, 5, 9)
    scale = torch.tensor([0.5, 2.0, 7.0, 30.0, 1.0], dtype=torch.float64)[:, None]
    return [[rows, gamma] for rows in (a, scale * a, a + 10.0)]


def rows_of_mean_zero():
    """Data points whose entries have mean zero, and a scale."""
    a, gamma, _ = norm_inputs(780, 5, 8)
    return [a - a.mean(dim=-1, keepdim=True), gamma]


@pytest.mark.points(1.5)
def test_values(compare):
    """Values with a random scale, for several rows and for one"""
    compare(observed, given(), part="values", forbid=OWN)


@pytest.mark.points(1)
def test_other_shapes(compare):
    """The last axis is the one that counts: three axes, a single one, and as many rows as columns"""
    compare(observed, given(), part="other_shapes", forbid=OWN)


@pytest.mark.points(1.5)
def test_eps(compare):
    """Inputs so small that eps matters: the default one and a large one"""
    compare(observed, given(), part="eps", forbid=OWN)


@pytest.mark.points(2)
def test_gradients(compare):
    """Gradients with respect to a and gamma"""
    compare(observed, given(), part="gradients", forbid=OWN)


@pytest.mark.points(0.5)
def test_inputs_unchanged(compare):
    """The arguments are left as they were, and single precision stays single precision"""
    compare(observed, given(), part="inputs_unchanged", forbid=OWN)


@pytest.mark.points(0.75)
def test_invariance(observe):
    """Rescaling a data point changes nothing, shifting it does"""
    seen = observe(observed, given(), part="invariance", forbid=OWN)
    first, scaled, shifted = (case["output"] for case in seen)
    require(first.shape == scaled.shape == shifted.shape == (5, 9), "The result must have the shape of `a`.")
    require(
        torch.allclose(first, scaled, atol=1e-3),
        "A data point whose entries are all rescaled together must come out the same: its own root mean square is "
        "divided out. Check along which axis it is taken.",
        f"largest difference {(first - scaled).abs().max():.3g}",
    )
    require(
        not torch.allclose(first, shifted, atol=1e-3),
        "RMSNorm does not re-center: adding a constant to a data point must show in the result, and in yours it does "
        "not. Nothing is subtracted, neither before squaring nor before dividing.",
        f"largest difference {(first - shifted).abs().max():.3g}",
    )


@pytest.mark.points(0.75)
def test_zero_mean_rows(observe):
    """On rows with zero mean it is layer normalization without a shift"""
    a, gamma = rows_of_mean_zero()
    wanted = gamma * a / (a.var(dim=-1, correction=0, keepdim=True) + 1e-5).sqrt()
    out = observe(observed, given(), part="zero_mean_rows", forbid=OWN)[0]["output"]
    require(out.shape == wanted.shape, "The result must have the shape of `a`.")
    require(
        torch.allclose(out, wanted, rtol=1e-7, atol=1e-9),
        "When a data point's entries have mean zero, their mean square is their biased variance, so RMSNorm and layer "
        "normalization without shift must agree. Yours divides by something else.",
        f"largest difference {(out - wanted).abs().max():.3g}",
    )
