"""Scaling: values and gradients."""

import pytest
import torch

pytestmark = pytest.mark.question("scale")


def scaled(nb, x):
    return {"out": nb.scale(x), "thrice": nb.scale(x, 3.0), "input": x}


def gradient(nb, x, upstream):
    x = x.clone().requires_grad_()
    nb.scale(x).backward(upstream)
    return x.grad


@pytest.mark.points(2)
@pytest.mark.parametrize("rows", [1])
def test_values(compare, rows):
    """Values of the scaled tensor"""
    compare(scaled, torch.arange(3.0 * rows).reshape(rows, 3) + 1)


@pytest.mark.points(2)
def test_gradient(compare):
    """Gradient with respect to x"""
    compare(gradient, torch.ones(4, dtype=torch.float64), torch.tensor([0.3, -1.0, 2.0, 5.0], dtype=torch.float64))
