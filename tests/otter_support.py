"""What the tests of the Otter side share: a small assignment and made-up results."""

import io
import json
import zipfile
from pathlib import Path

import nbformat
from otter.run import AutograderConfig
from otter.test_files import GradingResults

from autograder.otter import plugin
from autograder.project import Assignment, load_assignment
from autograder.results import Case, Cell, QuestionResult, Result

HINT = "divide by the number of rows"
DETAIL = "hidden input 41, expected 17"
REASON = "the file is cut off"

TOML = """
title = "Demo"

[[questions]]
id = "first"
title = "The first"
points = 3

[[questions]]
id = "second"
title = "The second"
points = 2
"""


def notebook(*cells: str) -> bytes:
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    return nbformat.writes(made).encode()


def zipped(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def result(**changes) -> Result:
    """3 of 5 points: the first question has one case passed and one failed, the second is passed."""
    questions = [
        QuestionResult(
            "first",
            "The first",
            1.0,
            3.0,
            [
                Case("t::values", "Values", 1.0, 1.0, "passed"),
                Case("t::gradients", "Gradients", 0.0, 2.0, "failed", HINT, DETAIL),
            ],
        ),
        QuestionResult("second", "The second", 2.0, 2.0, [Case("t::all", "All", 2.0, 2.0, "passed")]),
    ]
    record = {
        "assignment": "demo",
        "submission": "a.ipynb",
        "sha256": "0",
        "status": "graded",
        "reason": "",
        "points": 3.0,
        "possible": 5.0,
        "isolation": ["uid"],
        "seconds": 1.0,
        "cells": [Cell(0, "ok"), Cell(4, "raised", "NameError: x")],
        "questions": questions,
    }
    return Result(**{**record, **changes})


def not_graded() -> Result:
    questions = [QuestionResult("first", "The first", 0.0, 3.0), QuestionResult("second", "The second", 0.0, 2.0)]
    return result(status="ungradable", reason=REASON, points=0.0, questions=questions, cells=[], isolation=[])


def make_assignment(root: Path) -> Assignment:
    """Two questions of 3 and 2 points, without cases."""
    folder = root / "assignments" / "demo"
    folder.mkdir(parents=True)
    (folder / "assignment.toml").write_text(TOML)
    (root / "solutions").mkdir()
    (root / "solutions" / "demo.py").write_text("")
    (root / "constraints.txt").write_text("")
    return load_assignment("demo", root)


def gradescope(results: GradingResults) -> dict:
    """What Gradescope gets under the settings of our zip."""
    config = json.loads((Path(plugin.__file__).parent / "templates" / "otter_config.json").read_text())
    return results.to_gradescope_dict(AutograderConfig(config))
