"""Grades what was set aside with the engine."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from autograder.errors import AutograderError, UnreadableSubmission
from autograder.plaintext import one_line
from autograder.project import Assignment
from autograder.results import Result
from autograder.submissions import Submission, find_submissions


def grade_handed_in(assignment: Assignment, folder: Path, name: str | None, isolation: str) -> Result:
    """Grades the file `name` of the folder, or the one that could be found there.

    Whatever is wrong with the submission is in the result; `IsolationUnavailable` is raised when no sandbox
    starts.
    """
    # Imported late: the engine is heavy, and a file that cannot be read needs none of it.
    from autograder.grading import grade_notebook, ungradable
    from autograder.isolation import open_sandbox
    from autograder.notebook import read_notebook

    data = b""
    shown = name or ""
    try:
        shown, data = _read(assignment, folder, name)
        notebook = read_notebook(data, shown)
    except UnreadableSubmission as error:
        return ungradable(assignment, submission=shown, sha256=hashlib.sha256(data).hexdigest(), reason=str(error))
    with open_sandbox(isolation, assignment) as sandbox:
        return grade_notebook(
            assignment, notebook, submission=shown, sha256=hashlib.sha256(data).hexdigest(), sandbox=sandbox
        )


def _read(assignment: Assignment, folder: Path, name: str | None) -> tuple[str, bytes]:
    """The name and content of the file to grade, found as `autograder grade` finds it; or `UnreadableSubmission`."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        found = _find(assignment, folder, name, Path(scratch))
        if not found:
            raise UnreadableSubmission("no notebook was handed in")
        if len(found) > 1:
            names = one_line(", ".join(submission.name for submission in found[:5]), 250)
            raise UnreadableSubmission(f"{len(found)} notebooks were handed in, and one is graded: {names}")
        if found[0].reason:
            raise UnreadableSubmission(found[0].reason)
        try:
            return found[0].filename, found[0].read()
        except OSError as error:
            raise UnreadableSubmission(f"it cannot be read ({error.strerror})") from None


def _find(assignment: Assignment, folder: Path, name: str | None, scratch: Path) -> list[Submission]:
    entries = sorted(folder.iterdir())
    if name is not None:
        entries = [folder / name]
    # A link that is named would be followed, wherever it leads; one found in a folder is refused.
    only = len(entries) == 1 and entries[0].is_file() and not entries[0].is_symlink()
    try:
        return find_submissions(
            [entries[0] if only else folder],
            scratch,
            assignment=assignment.name,
            handed_out=[path.name for path in sorted(assignment.files.rglob("*"))],
        )
    except AutograderError:
        return []
