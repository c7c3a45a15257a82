"""Fixtures shared by the package's own tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from autograder.errors import IsolationUnavailable
from autograder.isolation import Sandbox, open_sandbox
from autograder.project import Assignment, load_assignment
from tests.support import HW4, ROOT, TINY

collect_ignore = ["projects"]


@pytest.fixture(scope="session")
def tiny() -> Assignment:
    """An assignment of two questions with limits of a second."""
    return load_assignment("tiny", TINY)


@pytest.fixture(scope="session")
def hw4() -> Assignment:
    """The real assignment."""
    return load_assignment(HW4, ROOT)


@pytest.fixture(scope="session")
def tiny_sandbox(tiny: Assignment) -> Iterator[Sandbox]:
    """An open sandbox for the tiny assignment, shared by the tests of a worker."""
    with open_strongest(tiny) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def hw4_sandbox(hw4: Assignment) -> Iterator[Sandbox]:
    """An open sandbox for the real assignment, shared by the tests of a worker."""
    with open_strongest(hw4) as sandbox:
        yield sandbox


def open_strongest(assignment: Assignment) -> Sandbox:
    """bubblewrap where it starts; limits only elsewhere, as on macOS, where the tests of isolation are skipped."""
    try:
        return open_sandbox("auto", assignment)
    except IsolationUnavailable:
        if sys.platform.startswith("linux"):
            raise
        return open_sandbox("none", assignment)


@pytest.fixture
def tiny_solution(tiny: Assignment) -> str:
    """The tiny assignment's right answers, as one cell."""
    return tiny.solutions.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def hw4_solution(hw4: Assignment) -> str:
    """The real assignment's right answers, as one cell."""
    return hw4.solutions.read_text(encoding="utf-8")
