"""Renders the pages. All text in a result may be hostile: it is bounded, stripped of control codes, and escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from autograder.plaintext import one_line, plain
from autograder.report.statistics import case_statistics
from autograder.results import Result, round_points, write_whole

OUTCOMES = {
    "passed": "passed",
    "failed": "failed",
    "error": "raised an error",
    "timeout": "took too long",
    "crashed": "crashed",
    "missing": "not there",
}
CELL_OUTCOMES = {
    "raised": "raised an error",
    "syntax": "is not valid Python",
    "exited": "ended the program",
    "timeout": "took too long",
    "crashed": "crashed",
    "not run": "was not run",
}
MAX_CELLS = 200


def index_path(out: Path) -> Path:
    """The instructor's page."""
    return out / "report" / "index.html"


def write_report(out: Path, results: Sequence[Result]) -> Path:
    """Writes `out/report/index.html` and a page for each result; returns the path of the first.

    A student's page shows hints and the student's own errors, never a case's `detail`.
    """
    for result in results:
        write_whole(out / "report" / f"{result.submission}.html", student_page(result))
    write_whole(index_path(out), class_page(results))
    return index_path(out)


def student_page(result: Result) -> str:
    """One student's page."""
    failed = [cell for cell in result.cells if cell.outcome != "ok"]
    return _render("submission.html.j2", result=result, failed_cells=failed[:MAX_CELLS], more=len(failed[MAX_CELLS:]))


def class_page(results: Sequence[Result]) -> str:
    """The instructor's page."""
    graded = [result for result in results if result.status == "graded"]
    return _render(
        "index.html.j2",
        results=sorted(results, key=lambda result: result.submission.lower()),
        assignment=results[0].assignment if results else "",
        graded=graded,
        questions=results[0].questions if results else [],
        possible=results[0].possible if results else 0.0,
        mean=sum(result.points for result in graded) / len(graded) if graded else 0.0,
        isolation=sorted({"; ".join(result.isolation) for result in graded}),
        unconfined=any("NOT ISOLATED" in layer for result in graded for layer in result.isolation),
        statistics=case_statistics(graded),
    )


def _render(template: str, **values: Any) -> str:
    page = _environment().get_template(template)
    return str(page.render(**values, outcomes=OUTCOMES, cell_outcomes=CELL_OUTCOMES))


def marked(text: str) -> Markup:
    """Escaped text in which `code` and *emphasis*, as hints are written, are shown as such."""
    escaped = str(escape(text))
    with_code = re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escaped)
    return Markup(re.sub(r"(?<![\w*])\*(?=\w)([^*<>\n]+)(?<=\w)\*(?![\w*])", r"<em>\1</em>", with_code))


def _points(points: float) -> str:
    return f"{round_points(points):g}"


@cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        line=one_line, text=plain, marked=marked, points=lambda points: f"{round_points(points):g}"
    )
    return environment
