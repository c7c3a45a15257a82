"""A tiny project with one assignment, and results made by hand, for the tests of what grades a class."""

from __future__ import annotations

import json
from pathlib import Path

from autograder.project import Assignment, load_assignment
from autograder.results import Case, Cell, QuestionResult, Result
from autograder.submissions import Submission, find_submissions

TOML = """
title = "Twice and half"
packages = ["numpy"]
limits = { cell_seconds = 20, case_seconds = 5 }
[[questions]]
id = "twice"
title = "Twice"
points = 2
[[questions]]
id = "half"
title = "Half"
points = 1
"""
SOLUTIONS = '''"""Twice and half."""


def twice(x: float) -> float:
    """Twice x."""
    # BEGIN SOLUTION
    return 2 * x
    # END SOLUTION


def half(x: float) -> float:
    """Half of x."""
    # BEGIN SOLUTION
    return x / 2
    # END SOLUTION
'''
CASES = '''
import pytest

pytestmark = pytest.mark.question("{name}")


def probe(nb, x):
    return nb.{name}(x)


{points}
def test_a_number(compare):
    """A number."""
    compare(probe, 7.0)
'''

RIGHT = "def twice(x):\n    return 2 * x\n\ndef half(x):\n    return x / 2\n"
WRONG_HALF = RIGHT.replace("x / 2", "x / 3")


def make_project(root: Path) -> Assignment:
    """Writes the project and loads its assignment `toy`."""
    folder = root / "assignments" / "toy"
    folder.mkdir(parents=True)
    (root / "solutions").mkdir()
    (folder / "assignment.toml").write_text(TOML)
    (root / "solutions" / "toy.py").write_text(SOLUTIONS)
    (folder / "test_twice.py").write_text(CASES.format(name="twice", points="@pytest.mark.points(2)"))
    (folder / "test_half.py").write_text(CASES.format(name="half", points=""))
    return load_assignment("toy", root)


def notebook(*cells: str) -> bytes:
    """A notebook with these code cells."""
    listed = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in cells]
    return json.dumps({"cells": listed, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}).encode()


def hand_in(folder: Path, **contents: bytes) -> list[Submission]:
    """Writes `<name>.ipynb` for each keyword and finds them as submissions."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / f"{name}.ipynb").write_bytes(content)
    return find_submissions([folder], folder.parent / "scratch", assignment="toy")


def graded(submission: str, twice: float = 2.0, half: float = 1.0, **changes: object) -> Result:
    """A result as grading makes it, with these points."""
    cases = (
        QuestionResult("twice", "Twice", twice, 2.0, [_case("twice", twice, 2.0)]),
        QuestionResult("half", "Half", half, 1.0, [_case("half", half, 1.0)]),
    )
    result = Result(
        assignment="toy",
        submission=submission,
        sha256="0" * 64,
        status="graded",
        reason="",
        points=twice + half,
        possible=3.0,
        isolation=["mode none"],
        seconds=0.1,
        cells=[Cell(0, "ok")],
        questions=list(cases),
    )
    for name, value in changes.items():
        setattr(result, name, value)
    return result


def _case(question: str, points: float, possible: float) -> Case:
    hint = "" if points == possible else f"look at {question}"
    detail = "" if points == possible else "expected 3.5, SECRET"
    outcome = "passed" if points == possible else "failed"
    return Case(f"test_{question}.py::test_a_number", "A number", points, possible, outcome, hint, detail)  # type: ignore[arg-type]
