"""Which of the files handed in is graded."""

import contextlib
from pathlib import Path

import pytest

from autograder import grading, isolation
from autograder.otter.grade import grade_handed_in
from autograder.project import Assignment
from tests.otter_support import make_assignment, notebook, result, zipped


@pytest.fixture
def assignment(tmp_path: Path) -> Assignment:
    return make_assignment(tmp_path / "project")


@pytest.fixture
def engine(monkeypatch):
    """Records what would be graded; the reason of what cannot be."""

    @contextlib.contextmanager
    def open_sandbox(mode, assignment):
        yield None

    monkeypatch.setattr(isolation, "open_sandbox", open_sandbox)
    monkeypatch.setattr(
        grading,
        "grade_notebook",
        lambda assignment, notebook, *, submission, sha256, sandbox: result(
            submission=submission, reason=" ".join(cell.source for cell in notebook.cells)
        ),
    )
    monkeypatch.setattr(
        grading,
        "ungradable",
        lambda assignment, *, submission, sha256, reason: result(
            status="ungradable", submission=submission, reason=reason
        ),
    )


GRADABLE = {
    "the only notebook": {"a.ipynb": notebook("right")},
    "a notebook in a folder, with other files": {"hw/a.ipynb": notebook("right"), "hw/data.csv": b"1", ".LOG": b""},
    "the notebook of an export": {"a.zip": zipped(**{"a.ipynb": notebook("right"), ".OTTER_LOG": b"log"})},
    "the notebook of a zip with folders": {"a.zip": zipped(**{"x/a.ipynb": notebook("right"), "__MACOSX/a": b""})},
    "a script": {"a.py": b"right"},
}

NOT_GRADABLE = {
    "two notebooks": ({"a.ipynb": notebook(), "b.ipynb": notebook()}, "2 notebooks"),
    "nothing": ({}, "no notebook"),
    "a text": ({"a.txt": b"dear teacher"}, "not a notebook"),
    "a truncated notebook": ({"a.ipynb": b'{"cells": ['}, "cut off"),
    "a damaged zip": ({"a.zip": b"PK\x03\x04"}, "damaged"),
    "a zip of nothing": ({"a.zip": zipped(readme=b"x")}, "no notebook"),
}


def hand_in(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("files", GRADABLE.values(), ids=GRADABLE)
def test_finds_the_file_to_grade(tmp_path, assignment, engine, files):
    found = grade_handed_in(assignment, hand_in(tmp_path / "in", files), None, "auto")
    assert (found.status, found.reason) == ("graded", "right")


@pytest.mark.parametrize("files, reason", NOT_GRADABLE.values(), ids=NOT_GRADABLE)
def test_says_why_there_is_none(tmp_path, assignment, engine, files, reason):
    found = grade_handed_in(assignment, hand_in(tmp_path / "in", files), None, "auto")
    assert found.status == "ungradable"
    assert reason in found.reason


def test_follows_no_link_to_the_solutions(tmp_path, assignment, engine):
    folder = hand_in(tmp_path / "in", {})
    assignment.solutions.write_text("secret = 17")
    (folder / "a.py").symlink_to(assignment.solutions)
    found = grade_handed_in(assignment, folder, None, "auto")
    assert found.status == "ungradable"
    assert "symbolic link" in found.reason


def test_leaves_no_scratch_behind(tmp_path, assignment, engine):
    folder = hand_in(tmp_path / "in", {"a.zip": zipped(**{"a.ipynb": notebook()})})
    before = sorted(tmp_path.iterdir())
    grade_handed_in(assignment, folder, None, "auto")
    assert sorted(tmp_path.iterdir()) == before
