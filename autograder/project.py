"""The project on disk: where the assignments are and what `assignment.toml` says of each."""

from __future__ import annotations

import functools
import hashlib
import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.errors import AutograderError, UnusableAssignment

ROOT_VARIABLE = "AUTOGRADER_ROOT"


@dataclass(frozen=True)
class Question:
    """One question: the id used by cases, checks and grades, its title, and its points."""

    id: str
    title: str
    points: float


@dataclass(frozen=True)
class Limits:
    """What one submission may use. Seconds are CPU seconds; wall-clock limits are `WALL_FACTOR` times as long."""

    cell_seconds: float = 20.0
    case_seconds: float = 5.0
    submission_seconds: float = 600.0
    memory_mb: int = 2048
    output_kb: int = 64

    WALL_FACTOR = 6.0


@dataclass(frozen=True)
class Assignment:
    """One assignment: `assignments/<name>/` with its reference solutions in `solutions/<name>.py`."""

    name: str
    root: Path
    title: str
    questions: tuple[Question, ...]
    packages: tuple[str, ...]
    preload: tuple[str, ...]
    limits: Limits

    @property
    def folder(self) -> Path:
        return self.root / "assignments" / self.name

    @property
    def solutions(self) -> Path:
        return self.root / "solutions" / f"{self.name}.py"

    @property
    def files(self) -> Path:
        """Data and modules handed out beside the notebook; the folder may be missing."""
        return self.folder / "files"

    @property
    def possible(self) -> float:
        return sum(question.points for question in self.questions)

    def question(self, id: str) -> Question:
        for question in self.questions:
            if question.id == id:
                return question
        raise UnusableAssignment(f"{self.folder}: no question {id!r} in assignment.toml")

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 over everything that decides a mark: the cases, the solutions, the files handed out."""
        sha = hashlib.sha256()
        for path in [*sorted(self.folder.rglob("*")), self.solutions]:
            if path.is_file() and "__pycache__" not in path.parts:
                sha.update(path.relative_to(self.root).as_posix().encode() + b"\0")
                sha.update(hashlib.sha256(path.read_bytes()).digest())
        return sha.hexdigest()


def find_root(start: Path | None = None) -> Path:
    """The project folder: `AUTOGRADER_ROOT`, else the nearest folder upwards that holds `assignments/`."""
    if named := os.environ.get(ROOT_VARIABLE):
        root = Path(named).resolve()
        if not (root / "assignments").is_dir():
            raise AutograderError(f"{ROOT_VARIABLE}={named}: no assignments/ folder there")
        return root
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if (folder / "assignments").is_dir() and (folder / "solutions").is_dir():
            return folder
    raise AutograderError(
        f"no assignments/ and solutions/ folders in {start} or above; "
        f"run this inside the project, or set {ROOT_VARIABLE} to its folder"
    )


def list_assignments(root: Path) -> list[str]:
    """Names of the assignments, sorted."""
    return sorted(toml.parent.name for toml in (root / "assignments").glob("*/assignment.toml"))


def load_assignment(name: str, root: Path | None = None) -> Assignment:
    """Reads `assignments/<name>/assignment.toml`.

    Raises `AutograderError` for an unknown name and `UnusableAssignment` for a file that cannot be used.
    """
    root = root or find_root()
    known = list_assignments(root)
    if name not in known:
        raise AutograderError(f"no assignment {name!r}; there are: {', '.join(known) or 'none'}")
    toml = root / "assignments" / name / "assignment.toml"
    try:
        settings = tomllib.loads(toml.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnusableAssignment(f"{toml}: {error}") from None
    if not (root / "solutions" / f"{name}.py").is_file():
        raise UnusableAssignment(f"{toml}: there is no solutions/{name}.py beside it")
    try:
        return Assignment(
            name=name,
            root=root,
            title=str(settings["title"]),
            questions=tuple(_questions(settings["questions"])),
            packages=tuple(str(package) for package in settings.get("packages", [])),
            preload=tuple(str(module) for module in settings.get("preload", ["torch"])),
            limits=Limits(**settings.get("limits", {})),
        )
    except KeyError as error:
        raise UnusableAssignment(f"{toml}: {error} is missing") from None
    except (TypeError, ValueError) as error:
        raise UnusableAssignment(f"{toml}: {error}") from None


def _questions(table: list[dict[str, Any]]) -> Iterator[Question]:
    seen = set()
    for entry in table:
        question = Question(str(entry["id"]), str(entry["title"]), float(entry["points"]))
        if not question.id.isidentifier() or question.id in seen:
            raise ValueError(f"question id {question.id!r} is not an identifier of its own")
        seen.add(question.id)
        yield question
