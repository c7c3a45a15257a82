"""Hidden cases: the signal-propagation table of a deep network."""

import functools
import itertools
import math

import pytest
import torch

from assignments.hw4_pytorch_init_norm.inputs import normal
from autograder.authoring import require
from autograder.worker.helpers import attempts

pytestmark = pytest.mark.question("preactivation_stds")

LAYERS, FACTORS = 12, [1.0, 0.5, 1.5]  # of the network whose weights are rescaled


def table(nb, weights, x, relu):
    """The table as a list of plain floats, whether the student returns floats, a tensor or an array."""
    return [float(std) for std in nb.preactivation_stds(weights, x, torch.relu if relu else torch.tanh)]


def tables(nb, networks):
    """One table for each of several networks."""
    return [table(nb, weights, x, relu) for weights, x, relu in networks]


def tables_of_scaled(nb, weights, x, factors):
    """The ReLU table of a network for each common factor of its weights."""
    return [table(nb, [factor * weight for weight in weights], x, True) for factor in factors]


def with_parameters(nb, weights, x):
    """The table of trainable weights, and what the call leaves behind."""
    parameters = [torch.nn.Parameter(weight.clone()) for weight in weights]
    inputs = x.clone()
    stds = nb.preactivation_stds(parameters, inputs, torch.tanh)
    return {
        "table": [float(std) for std in stds],
        "a graph is kept": any(getattr(std, "requires_grad", False) for std in stds),
        "inputs unchanged": torch.equal(inputs, x),
        "weights unchanged": all(torch.equal(p.detach(), w) for p, w in zip(parameters, weights, strict=True)),
    }


def observed(nb, given):
    """One part per case."""
    return attempts(
        tanh=lambda: table(nb, *given["tanh"]),
        relu=lambda: table(nb, *given["relu"]),
        thirty_layers=lambda: tables(nb, given["thirty_layers"]),
        ratio_law=lambda: tables_of_scaled(nb, *given["ratio_law"]),
        leaves_no_trace=lambda: with_parameters(nb, *given["leaves_no_trace"]),
    )


@functools.cache
def given():
    """The inputs of each part: tensors of its own, so that no part can spoil another's."""
    width, he = 48, math.sqrt(2.0)
    return {
        "tanh": [layers(100, [5, 8, 2, 6], gain=2.0), normal(110, 3, 5, offset=0.5), False],
        "relu": [layers(100, [5, 8, 2, 6], gain=2.0), normal(110, 3, 5, offset=0.5), True],
        "thirty_layers": [
            [layers(160, [width] * 31, gain=he), normal(150, 40, width), True],
            [layers(200, [width] * 31, gain=1.0), normal(150, 40, width), False],
        ],
        "ratio_law": [layers(240, [32] * (LAYERS + 1), gain=he), normal(230, 30, 32), FACTORS],
        "leaves_no_trace": [layers(260, [4, 6, 5], gain=1.5), normal(270, 7, 4)],
    }


def layers(seed, widths, *, gain):
    """Weight matrices between layers of the given widths; the variance of an entry is gain² / fan_in."""
    return [
        normal(seed + i, fan_out, fan_in, scale=gain / math.sqrt(fan_in))
        for i, (fan_in, fan_out) in enumerate(itertools.pairwise(widths))
    ]


@pytest.mark.points(1.5)
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_table(compare, activation):
    """Every entry of the table of a small network whose layers differ in width"""
    compare(observed, given(), part=activation)


@pytest.mark.points(1)
def test_thirty_layers(compare):
    """Thirty layers: ReLU with He's spread, tanh with Xavier's"""
    compare(observed, given(), part="thirty_layers", rtol=1e-6)


@pytest.mark.points(1)
def test_ratio_law(observe):
    """ReLU: weights c times as large make the signal of layer l c to the power l times as large"""
    base, *others = observe(observed, given(), part="ratio_law")
    for factor, scaled in zip(FACTORS[1:], others, strict=True):
        require(
            len(base) == len(scaled) == LAYERS,
            "The table needs exactly one entry per weight matrix.",
            f"{len(scaled)} entries for {LAYERS} layers",
        )
        ratios = [b / a for a, b in zip(base, scaled, strict=True)]
        require(
            all(math.isclose(r, factor**depth, rel_tol=1e-6) for depth, r in enumerate(ratios, start=1)),
            "Without biases, ReLU passes a common factor of the weights straight through, once per layer. Your table "
            "does not follow: check that it holds standard deviations (not variances), that its first entry belongs "
            "to the first weight matrix, and that every layer works on the previous layer's output.",
            f"factor {factor}: ratios {ratios}",
        )


@pytest.mark.points(1)
def test_leaves_no_trace(compare):
    """Trainable weights: plain numbers come back, nothing is recorded or changed"""
    compare(observed, given(), part="leaves_no_trace")
