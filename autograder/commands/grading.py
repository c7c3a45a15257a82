"""`autograder grade` and `autograder report`."""

from __future__ import annotations

import json
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from autograder.classroom import grade_class, read_result, read_results
from autograder.commands.display import Progress, marks_table, print_table
from autograder.errors import AutograderError
from autograder.grades import grades_path, read_graded_ids, read_roster
from autograder.plaintext import one_line
from autograder.project import Assignment, load_assignment
from autograder.report import index_path, write_report
from autograder.results import Result, round_points
from autograder.submissions import Submission, find_submissions

INTERRUPTED = 130


@dataclass(frozen=True)
class GradeOptions:
    """What the command line says, besides what to grade."""

    out: Path
    jobs: int | None
    isolation: str
    format: str
    cluster: str | None
    roster: Path | None


def grade(name: str, paths: Sequence[Path], options: GradeOptions) -> int:
    """Grades and reports; returns the exit code."""
    assignment = load_assignment(name)
    with tempfile.TemporaryDirectory(prefix="autograder-") as scratch:
        submissions = _find(assignment, paths, Path(scratch), options.out)
        without = read_roster(options.roster, submissions) if options.roster else []
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # to be ended is to be interrupted
        try:
            with Progress(len(submissions), "grading") as progress:
                results = grade_class(
                    assignment,
                    submissions,
                    options.out,
                    options.jobs or _processors(),
                    options.isolation,
                    progress.advance,
                    cluster=options.cluster,
                    students_without=without,
                )
        except KeyboardInterrupt:
            return _interrupted(submissions, options.out)
    write_report(options.out, results)
    if options.format == "json":
        click.echo(_as_json(assignment, results, options.out))
    else:
        _print_summary(assignment, results, options.out, without)
    return 1 if any(result.status == "ungradable" for result in results) else 0


def report(out: Path) -> int:
    """Makes the pages again, of what `grades.csv` lists; of all results if there is none."""
    results = read_results(out)
    if listed := read_graded_ids(out):
        results = [result for result in results if result.submission in listed] or results
    write_report(out, results)
    click.echo(f"{len(results)} pages: {index_path(out)}")
    return 0


def _find(assignment: Assignment, paths: Sequence[Path], scratch: Path, out: Path) -> list[Submission]:
    ignored: list[str] = []
    handed_out = [path.name for path in assignment.files.rglob("*")] if assignment.files.is_dir() else []
    submissions = find_submissions(
        paths, scratch, assignment=assignment.name, handed_out=handed_out, skip=[out], ignored=ignored.append
    )
    if ignored:
        names = ", ".join(one_line(name, 60) for name in ignored[:5]) + (", …" if len(ignored) > 5 else "")
        click.echo(f"not submissions, left aside ({len(ignored)}): {names}", err=True)
    return submissions


def _processors() -> int:
    import joblib

    return int(joblib.cpu_count())


def _interrupted(submissions: Sequence[Submission], out: Path) -> int:
    results = [result for one in submissions if (result := read_result(out, one.id)) and result.sha256 == one.sha256]
    if results:
        write_report(out, results)
    click.echo(
        f"autograder: interrupted; {len(results)} of {len(submissions)} results are in {out}, "
        "the same command goes on from there",
        err=True,
    )
    return INTERRUPTED


def _print_summary(assignment: Assignment, results: Sequence[Result], out: Path, without: Sequence[str]) -> None:
    print_table(marks_table(results))
    layers = sorted({"; ".join(result.isolation) for result in results if result.isolation})
    for line in layers:
        click.echo(f"isolation: {one_line(line, 1000)}")
    ungradable = sum(result.status == "ungradable" for result in results)
    if ungradable:
        click.echo(f"could not be graded: {ungradable} of {len(results)}; the reasons are in the table")
    if without:
        click.echo(f"on the roster, without a submission: {len(without)}")
    click.echo(f"pages: {index_path(out)}")
    click.echo(f"marks: {grades_path(out)}")
    click.echo(f"to grade a folder of your own: autograder grade {assignment.name} FOLDER -o OUT")


def _as_json(assignment: Assignment, results: Sequence[Result], out: Path) -> str:
    listed = [
        {
            "submission": result.submission,
            "status": result.status,
            "reason": result.reason,
            "points": round_points(result.points),
            "possible": round_points(result.possible),
            "questions": {question.id: round_points(question.points) for question in result.questions},
        }
        for result in results
    ]
    record = {
        "assignment": assignment.name,
        "out": str(out),
        "grades": str(grades_path(out)),
        "report": str(index_path(out)),
        "submissions": listed,
    }
    return json.dumps(record, indent=1)


def require_folder(out: Path) -> Path:
    """The folder of an earlier grading; raises `AutograderError` when there is none."""
    if not out.is_dir():
        raise AutograderError(f"{out}: there is no such folder; `autograder grade HW PATH -o {out}` makes it")
    return out
