"""The master notebook: `assignments/<hw>/notebook.py` with its includes and points filled in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jupytext

from autograder.build.definitions import bound_names, definitions, needed_names
from autograder.build.nodes import new_notebook, raw_cell
from autograder.errors import UnusableAssignment
from autograder.project import Assignment

INCLUDE = re.compile(r"# include:(?P<names>.*)")
POINTS = re.compile(r"\{points:(\w+)\}")
BOUNDARY = re.compile(r"#\s+(begin|end)\s+(question|solution|prompt|tests)\b", re.IGNORECASE)
NAME = re.compile(r"^name:\s*['\"]?(\w+)", re.MULTILINE)

# What Otter Assign is told about every assignment. Checks go into files beside the notebook, not into its metadata:
# editors and course platforms drop metadata, Otter refuses metadata checks on Colab, and a file can be read and
# compared. No `.OTTER_LOG` in what is handed in: it is a pickle. No PDF: it needs tools that students lack.
OTTER_CONFIG = """\
# ASSIGNMENT CONFIG
generate: false
check_all_cell: true
export_cell:
  pdf: false
  run_tests: false
  ignore_log: true
tests:
  files: true
  ok_format: false
"""

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


@dataclass(frozen=True)
class Sources:
    """The texts that a release is made from; equal sources make equal releases."""

    assignment: Assignment
    notebook: str
    solutions: str

    @property
    def where(self) -> str:
        """The master notebook as it is named in messages."""
        return f"assignments/{self.assignment.name}/notebook.py"


def read_sources(assignment: Assignment) -> Sources:
    """Reads the master notebook and the solutions; raises UnusableAssignment if either cannot be read."""
    try:
        notebook = (assignment.folder / "notebook.py").read_text(encoding="utf-8")
        solutions = assignment.solutions.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableAssignment(f"{assignment.name}: {error}") from None
    return Sources(assignment, notebook, solutions)


def expand(sources: Sources) -> Any:
    """The master as a notebook node for Otter Assign: includes and points filled in, the same cell ids each time.

    Raises UnusableAssignment when the questions are not those of assignment.toml, an include names nothing in the
    solutions, or an included definition needs a name that no cell of the notebook binds.
    """
    cells = list(_cells(sources))
    _check_questions(sources, cells)
    _check_names(sources, cells)
    _number(cells)
    return new_notebook([raw_cell(OTTER_CONFIG), *cells], METADATA)


def _cells(sources: Sources) -> Iterator[Any]:
    try:
        known = definitions(sources.solutions)
    except SyntaxError as error:
        raise UnusableAssignment(f"solutions/{sources.assignment.name}.py, line {error.lineno}: {error.msg}") from None
    open_blocks: list[str] = []
    for cell in jupytext.reads(sources.notebook, fmt="py:percent").cells:
        cell.metadata = {"tags": tags} if (tags := cell.metadata.get("tags")) else {}
        if cell.cell_type == "raw" and (boundary := BOUNDARY.match(cell.source)):
            if boundary[1].lower() == "begin":
                open_blocks.append(boundary[2].lower())
            elif open_blocks:
                open_blocks.pop()
        elif cell.cell_type == "markdown":
            cell.source = POINTS.sub(lambda match: _points(sources, match[1]), cell.source)
        elif include := INCLUDE.fullmatch(cell.source.strip()):
            cell.source = "\n\n\n".join(_included(sources, known, name) for name in include["names"].split())
            if open_blocks == ["question"]:  # what is included is a solution, so the markup need not say so again
                yield raw_cell("# BEGIN SOLUTION")
                yield cell
                cell = raw_cell("# END SOLUTION")
        yield cell


def _points(sources: Sources, question: str) -> str:
    for known in sources.assignment.questions:
        if known.id == question:
            return f"{known.points:g}"
    raise UnusableAssignment(f"{sources.where}: {{points:{question}}}: no such question in assignment.toml")


def _included(sources: Sources, known: dict[str, str], name: str) -> str:
    if name not in known:
        raise UnusableAssignment(
            f"{sources.where}: `# include: {name}`: "
            f"solutions/{sources.assignment.name}.py has no top-level function or class of that name"
        )
    return known[name]


def question_begun(cell: Any) -> str | None:
    """The id of the question that starts with this cell, if one does."""
    if cell.cell_type != "raw" or not re.match(r"#\s+begin\s+question\b", cell.source, re.IGNORECASE):
        return None
    name = NAME.search(cell.source)
    return name[1] if name else "(without a name)"


def _check_questions(sources: Sources, cells: list[Any]) -> None:
    found = [name for cell in cells if (name := question_begun(cell))]
    wanted = [question.id for question in sources.assignment.questions]
    for name in found:
        if found.count(name) > 1:
            raise UnusableAssignment(f"{sources.where}: question {name} is there {found.count(name)} times")
    if missing := [name for name in wanted if name not in found]:
        raise UnusableAssignment(
            f"{sources.where}: no question {', '.join(missing)}, which assignment.toml has "
            "(in a raw cell the line reads `# # BEGIN QUESTION`)"
        )
    if unknown := [name for name in found if name not in wanted]:
        raise UnusableAssignment(f"{sources.where}: question {', '.join(unknown)} is not in assignment.toml")


def _check_names(sources: Sources, cells: list[Any]) -> None:
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    bound = set().union(*map(bound_names, code))
    for name, source in definitions(sources.solutions).items():
        if name in bound and (missing := sorted(needed_names(source) - bound)):
            raise UnusableAssignment(
                f"{sources.where}: {name} needs {', '.join(missing)}, which no cell of the notebook imports or defines"
            )


def _number(cells: list[Any]) -> None:
    """Gives each cell an id made from its question and its place there, so that an edit moves few of them."""
    section, position = "start", 0
    for cell in cells:
        if question := question_begun(cell):
            section, position = question, 0
        cell.id = short_hash(f"{section} {position}")
        position += 1


def short_hash(text: str) -> str:
    """Twelve hexadecimal digits that depend on `text` alone; a valid cell id."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
