"""The example submissions get exactly the marks that their own right answers earn."""

from __future__ import annotations

import tomllib

import pytest

from autograder.errors import UnreadableSubmission
from autograder.grading import grade_notebook
from autograder.isolation import Sandbox
from autograder.notebook import read_notebook
from autograder.project import Assignment
from autograder.results import Result
from scripts.make_examples import EXAMPLES
from tests.support import HW4, ROOT

FOLDER = ROOT / "examples" / HW4
EXPECTED = tomllib.loads((FOLDER / "marks.toml").read_text(encoding="utf-8"))
UNGRADABLE = {name for name, marks in EXPECTED.items() if "reason" in marks}


def grade(name: str, assignment: Assignment, sandbox: Sandbox) -> Result:
    path = FOLDER / f"{name}.ipynb"
    notebook = read_notebook(path.read_bytes(), path.name)
    return grade_notebook(assignment, notebook, submission=name, sha256="0", sandbox=sandbox)


def test_every_example_has_its_marks_stated():
    stems = {path.stem for path in FOLDER.glob("*.ipynb")}
    assert stems == set(EXPECTED) == set(EXAMPLES)
    assert len(stems) >= 10


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - UNGRADABLE))
def test_marks(name: str, hw4: Assignment, hw4_sandbox: Sandbox):
    full = {question.id: question.points for question in hw4.questions}
    stated = EXPECTED[name]
    expected = dict.fromkeys(full, 0.0) if stated.get("nothing") else full | stated.get("marks", {})
    result = grade(name, hw4, hw4_sandbox)
    assert {question.id: question.points for question in result.questions} == expected
    assert result.points == sum(expected.values())
    troubled = {cell.outcome for cell in result.cells} - {"ok"}
    assert troubled == set(stated.get("cells", []))
    if hint := stated.get("hint"):
        assert any(hint in case.hint for question in result.questions for case in question.cases)


@pytest.mark.parametrize("name", sorted(UNGRADABLE))
def test_reasons(name: str):
    path = FOLDER / f"{name}.ipynb"
    with pytest.raises(UnreadableSubmission, match=EXPECTED[name]["reason"]):
        read_notebook(path.read_bytes(), path.name)
