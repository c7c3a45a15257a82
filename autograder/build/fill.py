"""Filled notebooks, shaped like a student's: all right, all wrong in one place, or not filled at all."""

from __future__ import annotations

from collections.abc import Mapping

from autograder.build.assign import run_otter_assign
from autograder.build.definitions import replace_definition
from autograder.build.master import read_sources
from autograder.build.nodes import from_text, to_text
from autograder.errors import AutograderError
from autograder.project import Assignment


def solution_notebook(assignment: Assignment) -> bytes:
    """The student's notebook with every stub filled by the reference solution."""
    return run_otter_assign(read_sources(assignment)).solution.encode()


def unfilled_notebook(assignment: Assignment) -> bytes:
    """The notebook as students get it."""
    return run_otter_assign(read_sources(assignment)).student.encode()


def notebook_with(assignment: Assignment, replacements: Mapping[str, str], *, unfilled: bool = False) -> bytes:
    """The solution notebook (or the unfilled one) in which the definition of each name is replaced by given source.

    The sources need not be valid Python. Raises AutograderError for a name that no cell defines.
    """
    base = unfilled_notebook(assignment) if unfilled else solution_notebook(assignment)
    notebook = from_text(base.decode())
    for name, source in replacements.items():
        for cell in notebook.cells:
            if cell.cell_type == "code" and (replaced := replace_definition(cell.source, name, source)) is not None:
                cell.source = replaced
                break
        else:
            raise AutograderError(f"{assignment.name}: no cell of the notebook defines {name!r}")
    return to_text(notebook).encode()
