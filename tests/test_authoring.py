"""Registered variants keep their own source, however many share a name in one file."""

from __future__ import annotations

import ast
import sys

import torch

from autograder.authoring import alternative, mistake, variants


@mistake("norm", "first", hint="one", caught_by="test_a.py::test_a")
def norm(x):
    return x


@mistake("norm", "second", hint="two", caught_by=("test_a.py::test_a", "test_a.py::test_b"))
@torch.no_grad()
def norm(x):  # noqa: F811
    return x + 1


@mistake("norm", "a class", hint="three", caught_by="test_a.py::test_a")
class Norm(torch.nn.Module):
    def forward(self, x):
        return x


@alternative("norm", "another class")
class Norm(torch.nn.Module):  # noqa: F811
    """Docstring."""

    def forward(self, x):
        return x * 2


def test_all_are_registered_in_order():
    registered = variants(sys.modules[__name__])
    assert [variant.name for variant in registered] == ["first", "second", "a class", "another class"]
    assert [variant.defines for variant in registered] == ["norm", "norm", "Norm", "Norm"]
    assert registered[1].caught_by == ("test_a.py::test_a", "test_a.py::test_b")
    assert registered[3].caught_by == ()


def test_each_has_its_own_source():
    bodies = [ast.unparse(ast.parse(variant.source)) for variant in variants(sys.modules[__name__])]
    assert "return x" in bodies[0] and "x + 1" not in bodies[0]
    assert bodies[1].startswith("@torch.no_grad()\ndef norm(x)") and "x + 1" in bodies[1]
    assert "x * 2" not in bodies[2]
    assert "x * 2" in bodies[3]
    assert not any("mistake" in body or "alternative" in body for body in bodies)
