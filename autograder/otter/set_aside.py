"""Takes what was handed in out of Otter's reach before Otter opens, imports or unpickles any of it.

Otter reads the submission folder in trusted processes: it unpickles `.OTTER_LOG`, and its kernel starts in
there. So everything moves to a folder closed to other users, and Otter gets an empty notebook instead.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path

import nbformat

SUBMISSION = "submission"
HANDED_IN = "handed_in"
NOTEBOOK = ".ipynb"


def set_aside(autograder_dir: Path) -> Path:
    """Moves everything in `submission/` to `handed_in/`, which only its owner may enter, and returns that folder.

    Symbolic links are moved as links. Raises FileExistsError when something has been set aside already.
    """
    submission = autograder_dir / SUBMISSION
    handed_in = autograder_dir / HANDED_IN
    handed_in.mkdir(mode=0o700)
    # Entry by entry: the folder itself stays, being Otter's working directory.
    for entry in sorted(submission.iterdir()):
        shutil.move(entry, handed_in / entry.name)
    return handed_in


def write_empty_notebook(path: Path) -> None:
    """Writes a valid notebook without cells."""
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)


def leave_stand_ins(submission: Path, names: Iterable[str]) -> None:
    """Gives Otter exactly one notebook, empty, and an empty zip for each zip handed in (it opens those first)."""
    names = sorted(names)
    notebooks = [name for name in names if name.endswith(NOTEBOOK)]
    write_empty_notebook(submission / (notebooks[0] if notebooks else f"submission{NOTEBOOK}"))
    for name in names:
        if name.endswith(".zip"):
            zipfile.ZipFile(submission / name, "w").close()


def leave_names(submission: Path, names: Iterable[str]) -> None:
    """Puts an empty file wherever a name that was handed in is missing.

    `otter grade` copies the file it sent back out of the container, and calls the grading failed when it is not
    there. Not before Otter is done: an empty `nbformat.py` would stand in the way of its kernel's imports.
    """
    for name in names:
        path = submission / name
        if not path.exists():
            path.touch()
