"""Comparison: what agrees, what differs, and what the student may read of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given

from autograder.compare import differences
from autograder.isolation.observation import Unsupported
from tests.strategies import observations


def first(student, expected, **tolerances):
    found = list(differences(student, expected, **tolerances))
    return found[0] if found else None


X = torch.tensor([[1.0, -2.0], [3.0, 4.0]])

AGREE = {
    "itself": (X, X),
    "another order of operations": (X * (1 + 1e-6), X),
    "rounding beside a large entry": (torch.tensor([1e6, 1e-2]), torch.tensor([1e6, 0.0])),
    "numpy for torch": (X.numpy(), X),
    "torch for numpy": (X, X.numpy()),
    "number for a 0-d tensor": (2.5, torch.tensor(2.5)),
    "0-d tensor for a number": (torch.tensor(2.5), 2.5),
    "0-d array for a number": (np.array(2.5), 2.5),
    "integer for a float": (2, 2.0),
    "tuple for list": ((1, 2), [1, 2]),
    "tensor for a list of numbers": (torch.tensor([1.0, 2.0]), [1.0, 2.0]),
    "sign of zero": (torch.tensor([-0.0]), torch.tensor([0.0])),
    "nan where nan is right": (torch.tensor([float("nan"), 1.0]), torch.tensor([float("nan"), 1.0])),
    "inf where inf is right": (torch.tensor([float("inf")]), torch.tensor([float("inf")])),
    "nan for nan": (float("nan"), float("nan")),
    "tiny numbers": (1.32e-24 * (1 + 1e-7), 1.32e-24),
    "order of keys": ({"b": 1, "a": 2}, {"a": 2, "b": 1}),
    "empty": (torch.empty(0, 3), torch.empty(0, 3)),
}

DIFFER = {
    "value": (X + 0.01, X, "wrong values"),
    "value in float64": (X.double() * (1 + 1e-6), X.double(), "wrong values"),
    "small entries of a small tensor": (torch.tensor([1e-8]), torch.tensor([2e-8]), "wrong values"),
    "one entry": (torch.tensor([1.0, 2.0, 3.1]), torch.tensor([1.0, 2.0, 3.0]), "1 of 3 entries"),
    "shape": (X[None], X, "has shape (1, 2, 2) where (2, 2) is asked for"),
    "dtype": (X.double(), X, "has dtype float64 where float32 is asked for"),
    "nan": (X * float("nan"), X, "not finite"),
    "inf for -inf": (torch.tensor([float("inf")]), torch.tensor([float("-inf")]), "wrong values"),
    "finite where nan is right": (torch.zeros(1), torch.tensor([float("nan")]), "not finite"),
    "None": (None, X, "is None"),
    "list for tensor": (X.tolist(), X, "is a list where a tensor or array is asked for"),
    "tensor for text": (X, "text", "which is not right"),
    "True for 1": (True, 1, "is a bool where a number is asked for"),
    "1 for True": (1, True, "which is not right"),
    "integer off by one": (10**15 + 1, 10**15, "wrong value"),
    "tiny numbers": (1.4e-24, 1.32e-24, "wrong value"),
    "nan for a number": (float("nan"), 1.0, "wrong value"),
    "missing key": ({"a": 1}, {"a": 1, "b": 2}, "`b` is missing"),
    "extra key": ({"a": 1, "b": 2}, {"a": 1}, "an entry too many"),
    "length": ([1, 2], [1, 2, 3], "has 2 entries where 3 are asked for"),
    "no dict": ([1], {"a": 1}, "is a list where a dict is asked for"),
    "no list": (3, [1], "is a int where a list is asked for"),
    "no plain data": (Unsupported("a generator"), X, "cannot be compared: a generator"),
    "integers": (torch.tensor([1, 2]), torch.tensor([1, 3]), "wrong values"),
}


@pytest.mark.parametrize("name", AGREE)
def test_agrees(name):
    assert first(*AGREE[name]) is None


@pytest.mark.parametrize("name", DIFFER)
def test_differs(name):
    student, expected, hint = DIFFER[name]
    assert hint in first(student, expected).hint


def test_tolerances_can_be_given():
    assert first(X * 1.01, X, rtol=0.02) is None
    assert first(X + 0.5, X, atol=0.6) is None
    assert first(X * 1.0001, X, rtol=1e-9) is not None
    assert first(0.31, 0.3, atol=0.02) is None


def test_a_difference_names_its_place_and_keeps_the_expected_value_from_the_student():
    student, expected = (
        {"table": [1.0, {"std": torch.tensor([7.25])}]},
        {"table": [1.0, {"std": torch.tensor([9.125])}]},
    )
    found = first(student, expected)
    assert found.path == "table[1].std"
    assert "9.125" in found.detail
    assert "9.125" not in found.hint and "7.25" not in found.hint


def test_every_difference_is_found():
    assert len(list(differences({"a": 1, "b": 2.0, "c": X}, {"a": 2, "b": 3.0, "c": X + 1}))) == 3


@given(observations)
def test_everything_agrees_with_itself(value):
    assert first(value, value) is None


@given(observations, observations)
def test_comparison_never_fails(student, expected):
    list(differences(student, expected))
