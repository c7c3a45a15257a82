"""The plugin that Otter runs: our engine grades, Otter reports."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from otter.plugins import AbstractOtterPlugin
from otter.test_files import GradingResults

from autograder.errors import AutograderError
from autograder.otter import verdicts
from autograder.otter.content import unpack_content
from autograder.otter.grade import grade_handed_in
from autograder.otter.set_aside import HANDED_IN, leave_stand_ins, set_aside
from autograder.project import load_assignment
from autograder.results import Result


class AutograderPlugin(AbstractOtterPlugin):  # type: ignore[misc]
    """Grades in `before_grading`, before Otter touches the submission; hands the verdicts over in `after_grading`.

    Settings in otter_config.json: `assignment` (its name) and `isolation` (auto, bwrap, uid or none).
    """

    result: Result | None = None
    failure: str = ""
    contained: bool = False

    def before_grading(self, config: Any) -> None:
        """Sets the submission aside and grades it.

        With `otter run` an error of ours is raised, for the instructor to read; in a container it becomes the
        submission's state, so that it reaches the table of grades.
        """
        self.contained = not config.otter_run
        autograder_dir = Path(self.submission_path).parent.parent
        name = self._set_aside(autograder_dir)
        # What Otter would print or send on is the empty notebook.
        config.pdf = False
        config.token = None
        # Its kernel starts in the submission folder: nothing is to be imported from there.
        os.environ["PYTHONSAFEPATH"] = "1"
        try:
            assignment = load_assignment(self.plugin_config["assignment"], root=unpack_content(autograder_dir))
            self.result = grade_handed_in(
                assignment, autograder_dir / HANDED_IN, name, self.plugin_config.get("isolation", "auto")
            )
        except AutograderError as error:
            if not self.contained:
                raise
            self.failure = f"not graded, and not because of the submission: {error}"

    def after_grading(self, results: GradingResults) -> None:
        """Replaces Otter's results by ours."""
        if self.result is None:
            verdicts.mark_failed(results, self.failure)
            return
        verdicts.fill(results, self.result)
        if self.result.status == "ungradable" and self.contained and not self.submission_metadata:
            # Without metadata this is `otter grade`: its table has a column for the state. Gradescope has none
            # and would hide the questions.
            verdicts.mark_failed(results, f"not graded: {self.result.reason}")

    def generate_report(self) -> str:
        """The text printed at the end of Otter's log; a student may get to see it."""
        if self.result is None:
            return self.failure
        isolation = ", ".join(self.result.isolation) or "nothing was run"
        return f"{verdicts.student_text(self.result)}\nIsolation: {isolation}"

    def _set_aside(self, autograder_dir: Path) -> str | None:
        """Sets the submission aside unless `run_autograder` has; then the name of what Otter was told to grade."""
        if (autograder_dir / HANDED_IN).exists():
            return None
        submission = Path(self.submission_path)
        set_aside(autograder_dir)
        if submission.suffix == ".ipynb":
            leave_stand_ins(submission.parent, [submission.name])
        else:
            submission.touch()
        return submission.name
