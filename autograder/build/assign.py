"""Otter Assign, run on an expanded master: the student's notebook, the solution notebook, the public checks."""

from __future__ import annotations

import ast
import functools
import itertools
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from autograder.build.definitions import without_markers
from autograder.build.master import METADATA, Sources, expand, short_hash
from autograder.build.nodes import from_text, to_text
from autograder.errors import UnusableAssignment

# Otter's tags for cells that hold a solution, in the notebook with solutions and in the student's.
SOLUTION_TAG, ANSWER_TAG = "otter_assign_solution_cell", "otter_answer_cell"


@dataclass(frozen=True)
class Assigned:
    """What Otter Assign made, cleaned of all that differs from run to run. Notebooks are JSON texts."""

    student: str
    solution: str
    checks: tuple[tuple[str, str], ...]
    """Question id and source of its public checks, in the order of assignment.toml."""


@functools.lru_cache(maxsize=8)
def run_otter_assign(sources: Sources) -> Assigned:
    """Runs Otter Assign, but not the solutions, in a temporary folder; the process's own folder changes meanwhile.

    Raises UnusableAssignment for a master that Otter Assign refuses, and for a question without public checks.
    """
    from otter import assign  # a second of imports, which whoever only reads this package should not pay

    name = sources.assignment.name
    master = expand(sources)
    known = {cell.id for cell in master.cells}
    with tempfile.TemporaryDirectory(prefix="autograder-build-") as temporary:
        path, result = Path(temporary, f"{name}.ipynb"), Path(temporary, "result")
        path.write_text(to_text(master), encoding="utf-8")
        try:
            assign.main(str(path), str(result), no_pdfs=True, no_run_tests=True)
        except Exception as error:  # Otter raises whatever came up: ValueError, AssertionError, YAML errors, its own
            reason = " ".join(str(error).split()) or type(error).__name__
            raise UnusableAssignment(f"{sources.where}: Otter Assign: {reason[:300]}") from error
        return Assigned(
            student=_notebook(result / "student" / path.name, known),
            solution=_notebook(result / "autograder" / path.name, known),
            checks=tuple(
                (question.id, _check(sources, question.id, result / "student" / "tests"))
                for question in sources.assignment.questions
            ),
        )


def _notebook(path: Path, known: set[str]) -> str:
    notebook = from_text(path.read_text(encoding="utf-8"))
    notebook.metadata = METADATA
    taken: set[str] = set()
    for cell in notebook.cells:
        if cell.id not in known or cell.id in taken:  # made by Otter Assign, with a random id
            candidates = (short_hash(f"{cell.source} {number}") for number in itertools.count())
            cell.id = next(id for id in candidates if id not in taken)
        taken.add(cell.id)
        if SOLUTION_TAG in cell.metadata.get("tags", ()):
            cell.metadata.tags = [ANSWER_TAG if tag == SOLUTION_TAG else tag for tag in cell.metadata.tags]
        if cell.cell_type == "code":
            cell.source = without_markers(cell.source)
    return to_text(notebook)


def _check(sources: Sources, question: str, folder: Path) -> str:
    path = folder / f"{question}.py"
    if not path.is_file():
        raise UnusableAssignment(f"{sources.where}: question {question} has no public check")
    source = path.read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        # Otter numbers its checks; a student reads more from the docstring's first line.
        if isinstance(node, ast.FunctionDef) and (title := ast.get_docstring(node)):
            head = re.search(rf"@test_case\((?=[^\n]*\)\ndef {node.name}\()", source)
            if head:
                source = f"{source[: head.end()]}name={title.splitlines()[0]!r}, {source[head.end() :]}"
    return re.sub(r"\n{3,}", "\n\n\n", source).rstrip() + "\n"
