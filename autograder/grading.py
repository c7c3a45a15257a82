"""Grades one notebook: its cells, its cases, the record."""

from __future__ import annotations

import time
from pathlib import Path

from autograder.case_items import CaseInfo
from autograder.catalogue import collect_cases, run_cases
from autograder.examination import Examination
from autograder.isolation import Sandbox
from autograder.isolation.notebook_run import NotebookRun
from autograder.notebook import Notebook, graded_cells
from autograder.project import Assignment
from autograder.reference import reference_of
from autograder.results import Case, QuestionResult, Result, round_points

NOT_RUN = "The submission could not be graded."

_catalogues: dict[tuple[Path, str, str], tuple[CaseInfo, ...]] = {}


def _key(assignment: Assignment) -> tuple[Path, str, str]:
    return assignment.root, assignment.name, assignment.digest


def cases_of(assignment: Assignment) -> tuple[CaseInfo, ...]:
    """The hidden cases of an assignment, collected once per process."""
    key = _key(assignment)
    if key not in _catalogues:
        _catalogues[key] = collect_cases(assignment)
    return _catalogues[key]


def grade_notebook(
    assignment: Assignment, notebook: Notebook, *, submission: str, sha256: str, sandbox: Sandbox
) -> Result:
    """Grades one notebook in an open sandbox.

    Raises UnusableAssignment when the assignment itself is at fault, IsolationUnavailable when no worker starts.
    """
    started = time.monotonic()
    cases_of(assignment)
    with NotebookRun(sandbox, graded_cells(notebook), assignment.limits) as run:
        judged = run_cases(assignment, Examination(run, reference_of(assignment)))
        cells, notes = run.cell_results, [*notebook.notes, *run.notes]
    questions = _by_question(assignment, judged)
    return Result(
        assignment=assignment.name,
        submission=submission,
        sha256=sha256,
        status="graded",
        reason="",
        points=round_points(sum(question.points for question in questions)),
        possible=round_points(assignment.possible),
        isolation=sandbox.in_force,
        seconds=round(time.monotonic() - started, 2),
        cells=cells,
        questions=questions,
        notes=notes,
        graded_with=assignment.digest,
    )


def _by_question(assignment: Assignment, judged: list[tuple[CaseInfo, Case]]) -> list[QuestionResult]:
    results = []
    for question in assignment.questions:
        cases = [case for info, case in judged if info.question == question.id]
        points = round_points(sum(case.points for case in cases))
        results.append(QuestionResult(question.id, question.title, points, question.points, cases))
    return results


def ungradable(assignment: Assignment, *, submission: str, sha256: str, reason: str) -> Result:
    """The record of a submission that could not be run: its own visible state, every question reported."""
    missing = [(info, Case(info.id, info.title, 0.0, info.points, "missing", NOT_RUN)) for info in cases_of(assignment)]
    return Result(
        assignment=assignment.name,
        submission=submission,
        sha256=sha256,
        status="ungradable",
        reason=reason,
        points=0.0,
        possible=round_points(assignment.possible),
        isolation=[],
        seconds=0.0,
        cells=[],
        questions=_by_question(assignment, missing),
        graded_with=assignment.digest,
    )
