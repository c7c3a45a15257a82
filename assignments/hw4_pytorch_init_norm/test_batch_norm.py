"""Hidden cases: batch normalization of a mini-batch."""

import functools

import pytest
import torch

from assignments.hw4_pytorch_init_norm.inputs import norm_inputs, normal
from autograder.authoring import require
from autograder.worker.helpers import attempts

pytestmark = pytest.mark.question("batch_norm")

OWN = ("batch_norm", "layer_norm", "rms_norm")


def outputs(nb, cases):
    """The normalized inputs of each case, with the default eps."""
    found = []
    for a, gamma, beta in cases:
        out = nb.batch_norm(a, gamma, beta)
        found.append({"output": out, "shape": list(out.shape), "dtype": str(out.dtype)})
    return found


def outputs_with_eps(nb, cases, eps):
    """The same inputs with the default eps and with another one."""
    return [
        {"default eps": nb.batch_norm(a, gamma, beta), "eps given": nb.batch_norm(a, gamma, beta, eps)}
        for a, gamma, beta in cases
    ]


def gradients(nb, a, gamma, beta, upstream):
    """Gradients of sum(upstream · output)."""
    a, gamma, beta = (tensor.clone().requires_grad_() for tensor in (a, gamma, beta))
    nb.batch_norm(a, gamma, beta).backward(upstream)
    return {"gradient of a": a.grad, "gradient of gamma": gamma.grad, "gradient of beta": beta.grad}


def inputs_after(nb, a, gamma, beta):
    """The arguments after the call, and the dtype of the result."""
    given = [tensor.clone() for tensor in (a, gamma, beta)]
    out = nb.batch_norm(*given)
    return {
        "a, gamma, beta after the call": given,
        "dtype": str(out.dtype),
        "result has its own memory": out.data_ptr() not in [tensor.data_ptr() for tensor in given],
    }


def observed(nb, given):
    """One part per case."""
    return attempts(
        several_columns=lambda: outputs(nb, given["several_columns"]),
        one_column=lambda: outputs(nb, given["one_column"]),
        eps=lambda: outputs_with_eps(nb, *given["eps"]),
        gradients=lambda: gradients(nb, *given["gradients"]),
        large_offset=lambda: outputs(nb, given["large_offset"]),
        inputs_unchanged=lambda: inputs_after(nb, *given["inputs_unchanged"]),
        invariance=lambda: outputs(nb, given["invariance"]),
    )


@functools.cache
def given():
    """The inputs of each part: tensors of its own, so that no part can spoil another's."""
    _, gamma, beta = norm_inputs(320, 6, 5)
    tiny, small = normal(323, 6, 5, scale=0.01, offset=0.02), normal(324, 6, 5, scale=0.3, offset=0.2)
    _, wide_gamma, wide_beta = norm_inputs(340, 64, 6, dtype=torch.float32)
    return {
        "several_columns": [norm_inputs(308, 8, 4)],
        "one_column": [norm_inputs(302, 2, 1)],
        "eps": [[[tiny, gamma, beta], [small, gamma, beta]], 0.1],
        "gradients": [*norm_inputs(330, 9, 5), normal(333, 9, 5)],
        "large_offset": [[normal(343, 64, 6, offset=3000.0, dtype=torch.float32), wide_gamma, wide_beta]],
        "inputs_unchanged": norm_inputs(350, 5, 3, dtype=torch.float32),
        "invariance": in_other_units(),
    }


def in_other_units():
    """The same data twice, the second time with every column rescaled and shifted."""
    a, gamma, beta = norm_inputs(360, 12, 5)
    scale = torch.tensor([0.5, 2.0, 7.0, 30.0, 1.0], dtype=torch.float64)
    return [[a, gamma, beta], [scale * a + normal(363, 5, scale=10.0), gamma, beta]]


@pytest.mark.points(1.5)
@pytest.mark.parametrize("part", [pytest.param("several_columns", id="8-4"), pytest.param("one_column", id="2-1")])
def test_values(compare, part):
    """Values with a random scale and shift"""
    compare(observed, given(), part=part, forbid=OWN)


@pytest.mark.points(1.5)
def test_eps(compare):
    """Inputs so small that eps matters: the default one and a large one"""
    compare(observed, given(), part="eps", forbid=OWN)


@pytest.mark.points(3)
def test_gradients(compare):
    """Gradients with respect to a, gamma and beta"""
    compare(observed, given(), part="gradients", forbid=OWN)


@pytest.mark.points(1)
def test_large_offset(compare):
    """A mean a thousand times the spread, in single precision"""
    compare(observed, given(), part="large_offset", rtol=0.0, atol=5e-3, forbid=OWN)


@pytest.mark.points(0.75)
def test_inputs_unchanged(compare):
    """The arguments are left as they were, and single precision stays single precision"""
    compare(observed, given(), part="inputs_unchanged", forbid=OWN)


@pytest.mark.points(0.75)
def test_invariance(observe):
    """Rescaling and shifting a column of the inputs changes nothing"""
    first, second = (case["output"] for case in observe(observed, given(), part="invariance", forbid=OWN))
    require(first.shape == second.shape == (12, 5), "The result must have the shape of `a`.")
    require(
        torch.allclose(first, second, atol=1e-3),
        "Measured in other units, a column must come out the same: its own mean is subtracted and its own spread "
        "divided out. Check along which axis the statistics are taken.",
        f"largest difference {(first - second).abs().max():.3g}",
    )
