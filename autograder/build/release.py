"""The student release: what is in it, writing it, and telling whether it is up to date."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from autograder.build.assign import run_otter_assign
from autograder.build.leaks import check_leaks
from autograder.build.master import Sources, read_sources
from autograder.build.nodes import from_text
from autograder.errors import UnusableAssignment
from autograder.project import Assignment

# Ranges for the packages that a notebook commonly imports; assignment.toml may also name one with a range of its own.
RANGES = {
    "matplotlib": ">=3.8,<4",
    "numpy": ">=2.0,<3",
    "pandas": ">=2.2",
    "plotly": ">=5.24",
    "scikit-learn": ">=1.5,<2",
    "scipy": ">=1.13,<2",
    "torch": ">=2.6,<2.14",  # the newest release that the bands were measured with
}
ALWAYS = ("jupyter>=1.1,<2", "otter-grader>=7.0,<8")


def build_release(assignment: Assignment) -> None:
    """Writes `student/<hw>/` and `dist/<hw>/<hw>-solution.ipynb`; equal sources give equal bytes.

    Checks that sources no longer ask for are removed; other files that do not belong there are left alone.
    """
    sources = read_sources(assignment)
    folder = student_folder(assignment)
    wanted = release_files(sources)
    for name, content in wanted.items():
        _write_whole(folder / name, content)
    for path in (folder / "tests").glob("*.py"):
        if path.relative_to(folder).as_posix() not in wanted:
            path.unlink()
    solution = assignment.root / "dist" / assignment.name / f"{assignment.name}-solution.ipynb"
    _write_whole(solution, run_otter_assign(sources).solution.encode())


def stale_files(assignment: Assignment) -> list[str]:
    """Files of `student/<hw>/` that differ from a fresh build, are missing, or do not belong there; sorted."""
    folder = student_folder(assignment)
    wanted = release_files(read_sources(assignment))
    there = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not any(_by_the_way(part) for part in path.relative_to(folder).parts)
    }
    stale = {
        name
        for name in there | wanted.keys()
        if name not in wanted or name not in there or (folder / name).read_bytes() != wanted[name]
    }
    return [(folder / name).relative_to(assignment.root).as_posix() for name in sorted(stale)]


def student_folder(assignment: Assignment) -> Path:
    """Where the release of an assignment stands."""
    return assignment.root / "student" / assignment.name


def release_files(sources: Sources) -> dict[str, bytes]:
    """Everything students get, by path within `student/<hw>/`; raises UnusableAssignment if a secret is among it."""
    assignment = sources.assignment
    assigned = run_otter_assign(sources)
    notebook = f"{assignment.name}.ipynb"
    checks = {f"tests/{question}.py": check for question, check in assigned.checks}
    cells = "\n".join(cell.source for cell in from_text(assigned.student).cells)
    check_leaks(sources, {notebook: cells, **checks})
    texts = {notebook: assigned.student, "requirements.txt": requirements(assignment), **checks}
    files = {name: text.encode() for name, text in texts.items()}
    for path in sorted(assignment.files.rglob("*")):
        if path.is_file() and not any(_by_the_way(part) for part in path.relative_to(assignment.files).parts):
            name = path.relative_to(assignment.files).as_posix()
            if name in files:
                raise UnusableAssignment(f"{assignment.name}: files/{name} has the name of a file that the build makes")
            files[name] = path.read_bytes()
    return files


def requirements(assignment: Assignment) -> str:
    """`requirements.txt`: what the notebook imports, Otter and Jupyter, each with the range that it was written for."""
    named = [package + RANGES.get(package, "") for package in assignment.packages]
    return "\n".join(sorted({*ALWAYS, *named})) + "\n"


def _by_the_way(part: str) -> bool:
    """Whether a file or folder is left by running things, such as `.OTTER_LOG` or `__pycache__`."""
    return part.startswith(".") or part == "__pycache__"


def _write_whole(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
