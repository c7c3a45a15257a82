"""Our results in Otter's own classes, and the text that goes with them.

The instructor's machine unpickles what we put into `GradingResults`, and may not have this package: so nothing
but Otter's classes and plain values goes in. Hints are for the student; details stay with the instructor.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from otter.test_files import GradingResults, TestCase
from otter.test_files.abstract_test import TestCaseResult
from otter.test_files.exception_test import ExceptionTestFile

from autograder.results import Case, QuestionResult, Result, round_points

PLUGIN = "autograder.otter.plugin.AutograderPlugin"

OUTCOMES = {
    "passed": "✅ passed",
    "failed": "❌ failed",
    "error": "❌ raised an exception",
    "timeout": "❌ stopped: it took too long",
    "crashed": "❌ ended Python",
    "missing": "❌ not run",
}


def fill(results: GradingResults, result: Result) -> None:
    """Replaces whatever Otter found by our verdict on every question; the full record goes into the plugin data."""
    results.clear_results()
    # Set by a failed run of the empty notebook, which decides nothing here.
    results._catastrophic_error = None
    for question in result.questions:
        results.results[question.id] = test_file(question, result)
    results.set_output(student_text(result))
    results.set_plugin_data(PLUGIN, dataclasses.asdict(result))


def mark_failed(results: GradingResults, reason: str) -> None:
    """Makes `reason` the submission's state in Otter's table of grades, with 0 for every question."""
    results._catastrophic_error = RuntimeError(reason)


def test_file(question: QuestionResult, result: Result) -> ExceptionTestFile:
    """One question as Otter keeps it: a test case for each of ours, and exactly our points."""
    cases = question.cases if result.status == "graded" else [_not_graded(question, result.reason)]
    file = ExceptionTestFile(question.title, question.id, [_test_case(case) for case in cases], all_or_nothing=False)
    file.test_case_results = [
        TestCaseResult(test_case, _message(case), case.outcome == "passed")
        for test_case, case in zip(file.test_cases, cases, strict=True)
    ]
    file.update_score(round_points(question.points))
    return file


def student_text(result: Result) -> str:
    """What the student reads above the questions: the state, the marks, and which cells did not run through."""
    if result.status == "ungradable":
        return f"Not graded: {result.reason}\nEvery question counts 0 points until a readable notebook is handed in."
    lines = [f"Graded: {result.points:g} of {result.possible:g} points."]
    lines += result.notes
    broken = [cell for cell in result.cells if cell.outcome != "ok"]
    if broken:
        lines.append("Cells that did not run through (counted from 1, text cells included):")
        lines += [f"  cell {cell.index + 1}: {cell.outcome}. {cell.message}".rstrip() for cell in broken]
    return "\n".join(lines)


def _not_graded(question: QuestionResult, reason: str) -> Case:
    return Case(question.id, "Not graded", 0.0, question.possible, "missing", hint=reason)


def _test_case(case: Case) -> TestCase:
    return TestCase(
        name=case.title, body=None, hidden=True, points=case.possible, success_message=None, failure_message=None
    )


def _message(case: Case) -> str:
    lines = [f"{OUTCOMES[case.outcome]} ({case.points:g} of {case.possible:g} points)"]
    if case.hint:
        lines.append(case.hint)
    return "\n".join(lines)


def record(results: GradingResults) -> dict[str, Any] | None:
    """The full record that `fill` left in Otter's results: the content of a `results/<id>.json`, details included."""
    data: dict[str, Any] | None = results.get_plugin_data(PLUGIN)
    return data
