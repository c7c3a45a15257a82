"""From an author's master notebook and solutions to what students get, and to filled notebooks for the author."""

from autograder.build.fill import notebook_with, solution_notebook, unfilled_notebook
from autograder.build.release import build_release, stale_files

__all__ = ["build_release", "notebook_with", "solution_notebook", "stale_files", "unfilled_notebook"]
