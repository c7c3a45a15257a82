"""Hidden cases: the network with normalization."""

import functools
import math

import pytest
import torch
from torch import nn

from assignments.hw4_pytorch_init_norm.inputs import normal
from autograder.worker.helpers import attempts

pytestmark = pytest.mark.question("norm_mlp")

DIMS = [3, 6, 5, 2]


def with_weights(nb, dims, settings, weights):
    """The student's network in double precision, holding the given weights and biases."""
    model = nb.NormMLP(dims, *settings).double()
    with torch.no_grad():
        for layer, (weight, bias) in zip(model.layers, weights["layers"], strict=True):
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
        for norm, (weight, bias) in zip(model.norms, weights["norms"], strict=True):
            norm.weight.copy_(weight)
            norm.bias.copy_(bias)
    return model


def logits(nb, dims, settings, weights, x):
    """The logits in training mode."""
    out = with_weights(nb, dims, settings, weights).train()(x)
    return {"logits": out.detach(), "shape": list(out.shape)}


def all_built(nb, dims, norms):
    """The parts of a new network of each kind."""
    return {norm: built(nb, dims, norm) for norm in norms}


def built(nb, dims, norm):
    """The parts of a new network, and whether a backward pass reaches all of its parameters."""
    model = nb.NormMLP(dims, norm=norm)
    model(torch.linspace(-1.0, 1.0, 4 * dims[0]).reshape(4, dims[0])).square().sum().backward()
    kind = {"batch": nb.BatchNorm, "layer": nn.LayerNorm}.get(norm)
    parameters = list(model.parameters())
    return {
        "layers is a ModuleList": isinstance(model.layers, nn.ModuleList),
        "norms is a ModuleList": isinstance(model.norms, nn.ModuleList),
        "linear layers": [
            [layer.in_features, layer.out_features, layer.bias is not None]
            for layer in model.layers
            if isinstance(layer, nn.Linear)
        ],
        "normalizations": [list(layer.weight.shape) for layer in model.norms],
        "of the right kind": kind is None or all(isinstance(layer, kind) for layer in model.norms),
        "parameters": sorted(parameter.numel() for parameter in parameters),
        "parameters without gradient": sum(parameter.grad is None for parameter in parameters),
    }


def alone_and_together(nb, dims, weights, batches, x):
    """Batch normalization in evaluation mode, after some training batches: all rows, and the first one alone."""
    model = with_weights(nb, dims, ["tanh", "batch"], weights).train()
    with torch.no_grad():
        for batch in batches:
            model(batch)
        model.eval()
        return {"all rows": model(x), "first row alone": model(x[:1])}


def refused(nb, names):
    """What happens with each pair of an activation and a normalization."""
    outcomes = {}
    for activation, norm in names:
        outcome = "accepted"
        try:
            nb.NormMLP([2, 3, 1], activation, norm)
        except Exception as error:
            outcome = "ValueError" if isinstance(error, ValueError) else type(error).__name__
        outcomes[f"activation {activation}, norm {norm}"] = outcome
    return outcomes


def without_batch_norm(nb, dims, given):
    """One part per case that needs the network alone."""
    return attempts(
        default_settings=lambda: logits(nb, dims, *given["default_settings"]),
        layer=lambda: logits(nb, dims, *given["layer"]),
        unknown_names=lambda: refused(nb, given["unknown_names"]),
    )


def with_batch_norm(nb, dims, given):
    """One part per case that goes through the student's batch normalization, too."""
    return attempts(
        batch=lambda: logits(nb, dims, *given["batch"]),
        evaluation=lambda: alone_and_together(nb, dims, *given["evaluation"]),
    )


@functools.cache
def given(probe):
    """The inputs of each part: tensors of its own, so that no part can spoil another's."""
    if probe is without_batch_norm:
        return {
            "default_settings": [[], random_weights(800, DIMS, False), normal(870, 7, 3)],
            "layer": [["tanh", "layer"], random_weights(800, DIMS, True), normal(870, 7, 3)],
            "unknown_names": [["tanh", "group"], ["sine", "none"]],
        }
    batches = [normal(880 + i, 6, 3, scale=2.0) for i in range(3)]
    return {
        "batch": [["relu", "batch"], random_weights(800, DIMS, True), normal(870, 7, 3)],
        "evaluation": [random_weights(800, DIMS, True), batches, normal(890, 4, 3)],
    }


def random_weights(seed, dims, normalized):
    """Weights and biases for every layer of a network, and for its normalizations if it has any."""
    layers = [
        [
            normal(seed + 2 * i, dims[i + 1], dims[i], scale=1.5 / math.sqrt(dims[i])),
            normal(seed + 2 * i + 1, dims[i + 1], scale=0.5),
        ]
        for i in range(len(dims) - 1)
    ]
    norms = [[normal(seed + 50 + i, w, offset=1.0), normal(seed + 60 + i, w)] for i, w in enumerate(dims[1:-1])]
    return {"layers": layers, "norms": norms if normalized else []}


@pytest.mark.points(1)
@pytest.mark.parametrize(
    "probe, part",
    [
        pytest.param(without_batch_norm, "default_settings", id="default-settings"),
        pytest.param(with_batch_norm, "batch", id="batch"),
        pytest.param(without_batch_norm, "layer", id="layer"),
    ],
)
def test_logits(compare, probe, part):
    """The logits of a small network whose weights are given"""
    compare(probe, DIMS, given(probe), part=part)


@pytest.mark.points(1.5)
def test_parts(compare):
    """The parts of the network: which, how many, all trainable"""
    compare(all_built, [3, 6, 6, 6, 2], ["none", "batch", "layer"])


@pytest.mark.points(1)
def test_evaluation(compare):
    """Batch normalization in evaluation mode: a prediction does not depend on its companions"""
    compare(with_batch_norm, DIMS, given(with_batch_norm), part="evaluation")


@pytest.mark.points(0.5)
def test_unknown_names(compare):
    """Unknown activations and normalizations are refused"""
    compare(without_batch_norm, DIMS, given(without_batch_norm), part="unknown_names")
