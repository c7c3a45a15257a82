"""Probes: refused when they could carry an expected value, packed the same each time otherwise."""

from __future__ import annotations

import itertools
import math
import sys
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import autograder.reference
from autograder import compare
from autograder.authoring import require
from autograder.errors import UnusableAssignment
from autograder.probes import check, pack
from autograder.worker.helpers import exception_of

EXPECTED = 3.25
TABLE = {"a": [1, 2]}
TENSOR = torch.ones(2)


def helper(x):
    return x * math.pi


def deep_helper(x):
    return helper(x) + leaking_helper(x)


def leaking_helper(x):
    return x + EXPECTED


def plain(nb, x):
    return {"out": nb.f(x), "helped": helper(x), "raised": exception_of(nb.f, None)}


def with_classes(nb, x):
    class Recorder(nn.Module):
        def forward(self, a):
            return nb.f(a)

    model = Recorder()
    return [model(x) for _ in itertools.repeat(None, 2)], np.ones(2), partial(nb.f, x)()


def recursive(nb, n):
    return n if n == 0 else recursive(nb, n - 1)


def defaults_of_none(nb, generator=None, flag=True):
    return nb.f(generator, flag)


def reads_constant(nb):
    return nb.f(EXPECTED)


def reads_table_in_lambda(nb):
    return (lambda: TABLE)()


def reads_tensor(nb):
    return nb.f(TENSOR)


def reads_through_helper(nb):
    return deep_helper(nb.f())


def has_default(nb, expected=0.5):
    return nb.f()


def has_keyword_default(nb, *, table=(1, 2)):
    return nb.f()


def uses_reference(nb):
    return autograder.reference


def uses_compare(nb):
    return compare.differences(nb.f(), 1)


def uses_require(nb):
    require(nb.f(), "no")


def uses_pytest(nb):
    return pytest.approx(nb.f())


def uses_sys(nb):
    return sys.modules


def closing_over(value):
    def probe(nb):
        return nb.f(value)

    return probe


GOOD = [plain, with_classes, recursive, defaults_of_none, closing_over(helper), closing_over(math)]
BAD = {
    "EXPECTED": reads_constant,
    "TABLE": reads_table_in_lambda,
    "TENSOR": reads_tensor,
    "`EXPECTED` (float)": reads_through_helper,
    "the default 0.5": has_default,
    "the default (1, 2)": has_keyword_default,
    "the module `autograder`": uses_reference,
    "the module `compare`": uses_compare,
    "`require`": uses_require,
    "the module `pytest`": uses_pytest,
    "the module `sys`": uses_sys,
    "`value` (float)": closing_over(2.5),
    "`value` (Tensor)": closing_over(TENSOR),
}


@pytest.mark.parametrize("probe", GOOD, ids=lambda probe: probe.__qualname__)
def test_accepted(probe):
    check(probe)


@pytest.mark.parametrize("what", BAD)
def test_refused_with_file_and_line(what):
    with pytest.raises(UnusableAssignment) as refused:
        pack(BAD[what], ())
    message = str(refused.value)
    assert what in message
    assert f"{__file__}:" in message


def test_only_plain_functions_are_probes():
    with pytest.raises(UnusableAssignment, match="plain function"):
        check(nn.Linear(2, 2))  # type: ignore[arg-type]


def test_equal_inputs_pack_to_equal_bytes():
    """What is asked twice is run once, and the reference's answer is kept: both rest on this."""

    def inputs():
        generator = torch.Generator().manual_seed(3)
        return torch.randn(4, 3, generator=generator), [torch.ones(2, dtype=torch.bfloat16), None], "tanh", 0.1

    first, second = pack(plain, inputs()), pack(plain, inputs())
    assert first == second
    assert pack(plain, (torch.zeros(4),)).digest != pack(plain, (torch.ones(4),)).digest
    assert pack(recursive, (1,)).digest != pack(defaults_of_none, (1,)).digest


@pytest.mark.parametrize(
    "value",
    [
        torch.randn(3, 4).T,
        torch.empty(0, 2),
        torch.tensor(2.0),
        torch.tensor([True]),
        torch.ones(2, dtype=torch.bfloat16),
    ],
)
def test_tensors_arrive_as_they_were(value):
    _, (arrived,) = pack(plain, (value,)).unpack()
    assert arrived.dtype == value.dtype
    assert torch.equal(arrived, value)
