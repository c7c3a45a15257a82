"""`grades.csv`: a row for every submission given, and for every student on the roster who gave none."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from autograder.errors import AutograderError
from autograder.plaintext import one_line
from autograder.project import Assignment
from autograder.results import Result, round_points, write_whole
from autograder.submission_ids import slug
from autograder.submissions import Submission

NOT_GRADED = "not graded"
NO_SUBMISSION = "no submission"


def grades_path(out: Path) -> Path:
    return out / "grades.csv"


def write_grades(
    assignment: Assignment,
    submissions: Sequence[Submission],
    results: Mapping[str, Result],
    out: Path,
    *,
    students_without: Sequence[str] = (),
) -> None:
    """Writes `out/grades.csv`, sorted by submission; one that was not graded has a status and no points."""
    questions = [question.id for question in assignment.questions]
    header = ["submission", *questions, "total", "possible", "status", "reason", "file"]
    possible = _points(assignment.possible)
    rows: list[list[str]] = []
    blank = [""] * len(questions)
    for submission in submissions:
        result, file = results.get(submission.id), _cell(submission.name)
        if result is None or result.status != "graded":
            status, reason = (result.status, result.reason) if result else (NOT_GRADED, "grading was interrupted")
            rows.append([submission.id, *blank, "", possible, status, _cell(reason), file])
            continue
        points = {question.id: _points(question.points) for question in result.questions}
        marks, total = [points.get(question, "") for question in questions], _points(result.points)
        rows.append([submission.id, *marks, total, possible, result.status, _cell(result.reason), file])
    for student in students_without:
        rows.append([_cell(student), *blank, "", possible, NO_SUBMISSION, "on the roster only", ""])
    rows.sort(key=lambda row: (row[0].lower(), row[0]))
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_whole(grades_path(out), buffer.getvalue())


def read_graded_ids(out: Path) -> set[str] | None:
    """The submissions in `out/grades.csv`; None when there is no such table."""
    try:
        with grades_path(out).open(encoding="utf-8", newline="") as file:
            return {row["submission"] for row in csv.DictReader(file)}
    except (OSError, UnicodeDecodeError, csv.Error, KeyError):
        return None


def read_roster(path: Path, submissions: Sequence[Submission]) -> list[str]:
    """The students of a roster who have no submission, named by the column that names the submissions.

    The column is the one in which most values are found in a submission's name, as words of their own ("doejane" in
    "doejane_123_hw4", "Jane Doe" in "Jane Doe_77_assignsubmission_file/hw4").

    Raises `AutograderError` when the file cannot be read, or no column names any submission.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    except OSError as error:
        raise AutograderError(f"--roster {path}: cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise AutograderError(f"--roster {path}: not a CSV file in UTF-8 ({error})") from None
    if len(table) < 2:
        raise AutograderError(f"--roster {path}: needs a line of column names and a line for each student")
    header, rows = table[0], table[1:]
    names = [_words(submission.name) for submission in submissions]
    columns = []
    for place in range(len(header)):
        values = [row[place].strip() for row in rows if place < len(row) and row[place].strip()]
        without = [value for value in values if not any(_words(value) in name for name in names)]
        columns.append((len(values) - len(without), without))
    matched, without = max(columns, key=lambda column: column[0])
    if not matched:
        listed = ", ".join(one_line(name, 40) for name in header)
        raise AutograderError(f"--roster {path}: no column names a submission; its columns: {listed}")
    return without


def _words(text: str) -> str:
    """Lower case, every run of other characters one dash, a dash at both ends: so that whole words compare."""
    return f"-{slug(text).lower().replace('_', '-').replace('.', '-')}-"


def _points(points: float) -> str:
    return f"{round_points(points):g}"


def _cell(text: str) -> str:
    """Text for a cell; a spreadsheet would take one that begins like a formula for one."""
    line = one_line(text, 500)
    return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line
