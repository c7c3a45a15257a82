"""Grades a class: many submissions in parallel, each result on disk as soon as it is there."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib import metadata
from pathlib import Path

from autograder import __version__, grader_process
from autograder.errors import AutograderError
from autograder.grader_process import ENVIRONMENT, Task, prepare, refuse
from autograder.grades import write_grades
from autograder.plaintext import one_line
from autograder.pools import make_pool, run_all
from autograder.project import Assignment
from autograder.results import Result, write_whole
from autograder.submission_ids import slug
from autograder.submissions import Submission


def grade_class(
    assignment: Assignment,
    submissions: Sequence[Submission],
    out: Path,
    jobs: int,
    isolation: str,
    on_result: Callable[[Result], None],
    *,
    cluster: str | None = None,
    students_without: Sequence[str] = (),
) -> list[Result]:
    """Grades every submission; returns the results in the order of the submissions.

    Each is written to `out/results/<id>.json` as it finishes. A submission that has a result there with the same
    content and the same `grading_key` is not graded again, unless it was ungradable. `out/grades.csv` is written at the
    end, also when that comes early; `students_without` get rows there, too.

    Raises `AutograderError` when nothing can be graded, and lets KeyboardInterrupt through once all is written.
    """
    prepare_output(assignment, out)
    key = grading_key(assignment, isolation)
    results: dict[str, Result] = {}
    todo: list[Submission] = []
    try:
        for submission in submissions:
            earlier = read_result(out, submission.id)
            if earlier is not None and _is_current(earlier, submission, key):
                results[submission.id] = earlier
                on_result(earlier)
            else:
                todo.append(submission)
        names = {submission.id: submission.name for submission in todo}
        pool = make_pool(min(jobs, max(1, len(todo))), cluster, prepare, ENVIRONMENT)
        makers = [_maker(assignment, isolation, submission) for submission in todo]
        with closing(run_all(pool, grader_process.grade_one, makers, failed=refuse)) as outcomes:
            for result in outcomes:
                result.graded_with, result.file = key, one_line(names[result.submission])
                write_whole(result_path(out, result.submission), result.to_json())
                results[result.submission] = result
                on_result(result)
    finally:
        write_grades(assignment, submissions, results, out, students_without=students_without)
    return [results[submission.id] for submission in submissions]


def grading_key(assignment: Assignment, isolation: str) -> str:
    """What, besides the submission itself, decides its result.

    The assignment's digest; the engine, by its version and its source; Python and the packages graded with; and the
    isolation asked for, since a result says what was in force.
    """
    packages = {}
    for package in assignment.packages:
        try:
            packages[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            packages[package] = ""
    facts = [assignment.digest, __version__, _engine_digest(), platform.python_version(), packages, isolation]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def result_path(out: Path, id: str) -> Path:
    """Where the result of a submission is kept."""
    return out / "results" / f"{id}.json"


def read_result(out: Path, id: str) -> Result | None:
    """The result kept for a submission; None when there is none, or none that can be read."""
    try:
        return Result.from_json(result_path(out, id).read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def read_results(out: Path) -> list[Result]:
    """All results kept in an output folder, sorted by submission; raises `AutograderError` when there are none."""
    found = (read_result(out, path.stem) for path in sorted((out / "results").glob("*.json")))
    # The name of a result is the name of its page: it must not lead anywhere else.
    results = [result for result in found if result is not None and result_path(out, result.submission).exists()]
    results = [result for result in results if slug(result.submission) == result.submission]
    if not results:
        raise AutograderError(f"{out}: no results there; `autograder grade HW PATH -o {out}` makes them")
    return sorted(results, key=lambda result: result.submission)


def prepare_output(assignment: Assignment, out: Path) -> None:
    """Makes the output folder; raises `AutograderError` where it cannot be, or holds another assignment's results."""
    try:
        (out / "results").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AutograderError(f"{out}: cannot write results there ({error.strerror}); choose another -o") from None
    for path in (out / "results").glob("*.json"):
        kept = read_result(out, path.stem)
        if kept is not None and kept.assignment != assignment.name:
            raise AutograderError(f"{out}: holds results of {kept.assignment}; choose another -o for {assignment.name}")


def _is_current(result: Result, submission: Submission, key: str) -> bool:
    return (
        result.status == "graded"
        and result.submission == submission.id
        and result.sha256 == submission.sha256
        and result.graded_with == key
        and not submission.reason
    )


def _maker(assignment: Assignment, isolation: str, submission: Submission) -> Callable[[], Task]:
    def make() -> Task:
        data, sha256, reason = b"", submission.sha256, submission.reason
        if not reason:
            try:
                data = submission.read()
                sha256 = hashlib.sha256(data).hexdigest()
            except OSError as error:
                reason = f"it cannot be read ({error.strerror})"
        return Task(assignment, isolation, submission.id, submission.filename, sha256, data, reason)

    return make


def _engine_digest() -> str:
    sha = hashlib.sha256()
    package = Path(__file__).parent
    for path in sorted(package.rglob("*.py")):
        sha.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return sha.hexdigest()
