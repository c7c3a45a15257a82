"""What a grading found: the record written to `results/<id>.json`, its schema and its file."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

SCHEMA = 1

Outcome = Literal["passed", "failed", "error", "timeout", "crashed", "missing"]
CellOutcome = Literal["ok", "raised", "syntax", "exited", "timeout", "crashed", "not run"]
Status = Literal["graded", "ungradable"]


@dataclass
class Cell:
    """What became of one code cell; `index` is its position in the notebook, from 0."""

    index: int
    outcome: CellOutcome
    message: str = ""


@dataclass
class Case:
    """One hidden case. `hint` is for the student, `detail` for the instructor."""

    id: str
    title: str
    points: float
    possible: float
    outcome: Outcome
    hint: str = ""
    detail: str = ""


@dataclass
class QuestionResult:
    """The cases of one question and what they add up to."""

    id: str
    title: str
    points: float
    possible: float
    cases: list[Case] = field(default_factory=list)


@dataclass
class Result:
    """One submission's grading: the whole of `results/<id>.json`; `file` is the name under which it was handed in."""

    assignment: str
    submission: str
    sha256: str
    status: Status
    reason: str
    points: float
    possible: float
    isolation: list[str]
    seconds: float
    cells: list[Cell]
    questions: list[QuestionResult]
    notes: list[str] = field(default_factory=list)
    graded_with: str = ""
    file: str = ""
    schema: int = SCHEMA

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Result:
        """Reads what `to_json` wrote; raises ValueError, KeyError or TypeError for anything else."""
        record: dict[str, Any] = json.loads(text)
        if record["schema"] != SCHEMA:
            raise ValueError(f"results schema {record['schema']}, this version reads {SCHEMA}")
        record["cells"] = [Cell(**cell) for cell in record["cells"]]
        record["questions"] = [
            QuestionResult(**{**question, "cases": [Case(**case) for case in question["cases"]]})
            for question in record["questions"]
        ]
        return cls(**record)


def round_points(points: float) -> float:
    """Points as shown and stored: no 2.9999."""
    return round(points + 0.0, 4)


def write_whole(path: Path, text: str) -> None:
    """Writes a file so that a reader sees the old or the new content, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
