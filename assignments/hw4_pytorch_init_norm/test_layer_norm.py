"""Hidden cases: layer normalization."""

import functools

import pytest
import torch

from assignments.hw4_pytorch_init_norm.inputs import norm_inputs, normal
from autograder.authoring import require
from autograder.worker.helpers import attempts

pytestmark = pytest.mark.question("layer_norm")

OWN = ("batch_norm", "layer_norm", "rms_norm")


def outputs(nb, cases):
    """The normalized inputs of each case, with the default eps."""
    found = []
    for a, gamma, beta in cases:
        out = nb.layer_norm(a, gamma, beta)
        found.append({"output": out, "shape": list(out.shape), "dtype": str(out.dtype)})
    return found


def outputs_with_eps(nb, cases, eps):
    """The same inputs with the default eps and with another one."""
    return [
        {"default eps": nb.layer_norm(a, gamma, beta), "eps given": nb.layer_norm(a, gamma, beta, eps)}
        for a, gamma, beta in cases
    ]


def gradients(nb, a, gamma, beta, upstream):
    """Gradients of sum(upstream · output)."""
    a, gamma, beta = (tensor.clone().requires_grad_() for tensor in (a, gamma, beta))
    nb.layer_norm(a, gamma, beta).backward(upstream)
    return {"gradient of a": a.grad, "gradient of gamma": gamma.grad, "gradient of beta": beta.grad}


def inputs_after(nb, a, gamma, beta):
    """The arguments after the call, and the dtype of the result."""
    given = [tensor.clone() for tensor in (a, gamma, beta)]
    out = nb.layer_norm(*given)
    return {"a, gamma, beta after the call": given, "dtype": str(out.dtype)}


def observed(nb, given):
    """One part per case."""
    return attempts(
        values=lambda: outputs(nb, given["values"]),
        other_shapes=lambda: outputs(nb, given["other_shapes"]),
        eps=lambda: outputs_with_eps(nb, *given["eps"]),
        gradients=lambda: gradients(nb, *given["gradients"]),
        large_offset=lambda: outputs(nb, given["large_offset"]),
        inputs_unchanged=lambda: inputs_after(nb, *given["inputs_unchanged"]),
        invariance=lambda: outputs(nb, given["invariance"]),
    )


@functools.cache
def given():
    """The inputs of each part: tensors of its own, so that no part can spoil another's."""
    shapes = [(2, 3, 4), (6,), (4, 4)]
    _, gamma, beta = norm_inputs(630, 4, 6)
    tiny, small = normal(633, 4, 6, scale=0.01, offset=0.02), normal(634, 4, 6, scale=0.3, offset=0.2)
    _, wide_gamma, wide_beta = norm_inputs(650, 6, 64, dtype=torch.float32)
    return {
        "values": [norm_inputs(600, 5, 7), norm_inputs(604, 1, 6)],
        "other_shapes": [norm_inputs(610 + 4 * i, *shape) for i, shape in enumerate(shapes)],
        "eps": [[[tiny, gamma, beta], [small, gamma, beta]], 0.1],
        "gradients": [*norm_inputs(640, 6, 5), normal(643, 6, 5)],
        "large_offset": [[normal(653, 6, 64, offset=3000.0, dtype=torch.float32), wide_gamma, wide_beta]],
        "inputs_unchanged": norm_inputs(660, 5, 3, dtype=torch.float32),
        "invariance": in_other_units(),
    }


def in_other_units():
    """The same data twice, the second time with every data point rescaled and shifted."""
    a, gamma, beta = norm_inputs(670, 5, 9)
    scale = torch.tensor([0.5, 2.0, 7.0, 30.0, 1.0], dtype=torch.float64)[:, None]
    return [[a, gamma, beta], [scale * a + normal(673, 5, 1, scale=10.0), gamma, beta]]


@pytest.mark.points(1.5)
def test_values(compare):
    """Values with a random scale and shift, for several rows and for one"""
    compare(observed, given(), part="values", forbid=OWN)


@pytest.mark.points(1)
def test_other_shapes(compare):
    """The last axis is the one that counts: three axes, a single one, and as many rows as columns"""
    compare(observed, given(), part="other_shapes", forbid=OWN)


@pytest.mark.points(1.5)
def test_eps(compare):
    """Inputs so small that eps matters: the default one and a large one"""
    compare(observed, given(), part="eps", forbid=OWN)


@pytest.mark.points(2.5)
def test_gradients(compare):
    """Gradients with respect to a, gamma and beta"""
    compare(observed, given(), part="gradients", forbid=OWN)


@pytest.mark.points(0.5)
def test_large_offset(compare):
    """A mean a thousand times the spread, in single precision"""
    compare(observed, given(), part="large_offset", rtol=0.0, atol=5e-3, forbid=OWN)


@pytest.mark.points(0.5)
def test_inputs_unchanged(compare):
    """The arguments are left as they were, and single precision stays single precision"""
    compare(observed, given(), part="inputs_unchanged", forbid=OWN)


@pytest.mark.points(0.5)
def test_invariance(observe):
    """Rescaling and shifting a data point changes nothing"""
    first, second = (case["output"] for case in observe(observed, given(), part="invariance", forbid=OWN))
    require(first.shape == second.shape == (5, 9), "The result must have the shape of `a`.")
    require(
        torch.allclose(first, second, atol=1e-3),
        "A data point whose entries are all rescaled and shifted together must come out the same: its own mean is "
        "subtracted and its own spread divided out. Check along which axis the statistics are taken.",
        f"largest difference {(first - second).abs().max():.3g}",
    )
