"""The proof of the grading: what holds is said to hold, and each way in which it does not is found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autograder.authoring import Variant
from autograder.isolation import Sandbox
from autograder.project import Assignment
from autograder.reference import load_variants
from autograder.validate import Prover

RIGHT = """def rms_norm(a, gamma, eps=1e-5):
    return a * gamma * torch.rsqrt(a.square().mean(-1, keepdim=True) + eps)
"""
WRONG = """def rms_norm(a, gamma, eps=1e-5):
    return a * gamma / (a.square().mean(-1, keepdim=True).sqrt() + 3 * eps)
"""
VALUES = "test_rms_norm.py::test_values"


@pytest.fixture(scope="module")
def prover(hw4: Assignment, hw4_sandbox: Sandbox) -> Iterator[Prover]:
    yield Prover(hw4, hw4_sandbox)


def variant(source: str, hint: str = "A hint.", caught_by: tuple[str, ...] = ()) -> Variant:
    return Variant("some-name", "rms_norm", "rms_norm", source, hint, caught_by)


def test_the_real_solutions_pass_and_the_stubs_earn_nothing(prover: Prover):
    assert prover.solutions_pass().faults == []
    assert prover.stubs_earn_nothing().faults == []


def test_a_right_alternative_passes(prover: Prover):
    assert prover.alternative_passes(variant(RIGHT)).holds


def test_a_wrong_alternative_is_found(prover: Prover):
    proof = prover.alternative_passes(variant(WRONG))
    assert any("test_rms_norm.py::test_eps: failed" in fault for fault in proof.faults)


def test_a_mistake_that_no_case_catches_is_found(prover: Prover):
    proof = prover.mistake_is_caught(variant(RIGHT, caught_by=(VALUES,)))
    assert proof.faults == [f"{VALUES} does not catch it"]


def test_a_mistake_whose_hint_nobody_reads_is_found(prover: Prover):
    eps = "test_rms_norm.py::test_eps"
    proof = prover.mistake_is_caught(variant(WRONG, caught_by=(eps,)))
    assert len(proof.faults) == 1
    assert proof.faults[0].startswith("its hint is not what the student reads")


def test_a_case_that_does_not_exist_is_found(prover: Prover):
    proof = prover.mistake_is_caught(variant(WRONG, caught_by=("test_rms_norm.py::test_gone",)))
    assert "there is no case test_rms_norm.py::test_gone" in proof.faults


def test_real_mistakes_of_several_kinds_are_caught_and_named(prover: Prover, hw4: Assignment):
    mistakes = load_variants(hw4, "mistakes")
    assert len(mistakes) >= 30
    for mistake in mistakes[:: len(mistakes) // 4]:
        assert prover.mistake_is_caught(mistake).faults == []
