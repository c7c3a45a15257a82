"""Hidden cases: collected, checked against assignment.toml, run under plain pytest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder.catalogue import collect_cases
from autograder.errors import UnusableAssignment
from autograder.grading import grade_notebook
from autograder.isolation import Sandbox
from autograder.project import Assignment, load_assignment
from tests.support import TINY, as_notebook


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the tiny project that a test may spoil."""
    shutil.copytree(TINY, tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "copy"


@pytest.fixture(autouse=True)
def fresh_modules():
    """Forgets the tiny project's modules, which live under the same names in every copy."""

    def forget() -> None:
        for name in [n for n in sys.modules if n.split(".")[0] == "assignments"]:
            del sys.modules[name]

    before = list(sys.path)
    forget()
    yield
    forget()
    sys.path[:] = before


def case_file(project: Path, body: str) -> Path:
    path = project / "assignments" / "tiny" / "test_more.py"
    path.write_text(f"import pytest\n\npytestmark = pytest.mark.question('scale')\n\n\n{body}")
    return path


def test_cases_know_their_question_title_and_points(tiny: Assignment):
    cases = {case.id: case for case in collect_cases(tiny)}
    assert len(cases) == 5
    values = cases["test_scale.py::test_values[1]"]
    assert (values.question, values.title, values.points) == ("scale", "Values of the scaled tensor [1]", 2)


UNUSABLE = {
    "points that do not add up": (
        "def test_more(compare):\n    '''More'''\n",
        "question 'scale' has 4 points, its cases 5",
    ),
    "a question that is not listed": (
        "@pytest.mark.question('other')\ndef test_more(compare):\n    '''More'''\n",
        "cases for question 'other', which it does not list",
    ),
    "no docstring": ("def test_more(compare):\n    pass\n", "test_more has no docstring"),
    "points that are none": (
        "@pytest.mark.points('two')\ndef test_more(compare):\n    '''More'''\n",
        "points('two') is no number of points",
    ),
    "a file that cannot be loaded": ("import nothing_like_it\n", "No module named 'nothing_like_it'"),
    "a syntax error": ("def test_more(:\n", "SyntaxError"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_unusable_assignment_is_one_line(copy: Path, name):
    body, message = UNUSABLE[name]
    case_file(copy, body)
    with pytest.raises(UnusableAssignment) as refused:
        collect_cases(load_assignment("tiny", copy))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_no_cases_at_all(copy: Path):
    for path in (copy / "assignments" / "tiny").glob("test_*.py"):
        path.unlink()
    with pytest.raises(UnusableAssignment, match="no hidden cases"):
        collect_cases(load_assignment("tiny", copy))


FAULTY_CASES = {
    "fails before it looks": ("    [][1]\n    compare(probe)\n", "fails before it has looked"),
    "a probe that fails on the solutions": ("    compare(probe)\n", "fails on the solutions"),
}


@pytest.mark.parametrize("name", FAULTY_CASES)
def test_a_faulty_case_is_the_assignments_fault_not_the_students(copy: Path, tiny_sandbox: Sandbox, name):
    body, message = FAULTY_CASES[name]
    probe = "def probe(nb):\n    return nb.scale('x', 1.5)\n\n\n"
    case_file(copy, f"{probe}@pytest.mark.points(0)\ndef test_more(compare):\n    '''More'''\n{body}")
    assignment = load_assignment("tiny", copy)
    notebook = as_notebook(assignment.solutions.read_text())
    with pytest.raises(UnusableAssignment, match=message):
        grade_notebook(assignment, notebook, submission="s", sha256="0", sandbox=tiny_sandbox)


def run_pytest(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "--import-mode=importlib", "-p", "no:cacheprovider", "-v", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(project), "AUTOGRADER_ROOT": str(project)}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    wrong = "def scale(x, factor=2.0):\n    return x + factor\n"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in ("import torch", wrong)])
    path = tmp_path / "someone.ipynb"
    nbformat.write(notebook, path)
    return path


def test_plain_pytest_runs_the_cases_on_one_notebook(copy: Path, submission: Path):
    done = run_pytest(copy, "assignments/tiny", "--submission", str(submission))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "5 failed" in done.stdout
    assert "It adds where it should multiply." in done.stdout
    assert "`tally` is not defined" in done.stdout
    assert "out: 2 of 3 entries wrong" in done.stdout
    assert "autograder/examination.py" not in done.stdout


def test_plain_pytest_without_a_submission_runs_them_on_the_solutions(copy: Path):
    done = run_pytest(copy, "assignments/tiny")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


def test_plain_pytest_says_in_a_line_what_is_no_notebook(copy: Path, tmp_path: Path):
    (tmp_path / "broken.ipynb").write_text("{")
    done = run_pytest(copy, "assignments/tiny", "--submission", str(tmp_path / "broken.ipynb"))
    assert done.returncode != 0
    assert "broken.ipynb" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
