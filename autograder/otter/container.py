"""What runs in a grading container (`otter grade`, Gradescope): closes the folders, sets aside, starts Otter."""

from __future__ import annotations

import json
from pathlib import Path

from autograder.otter.set_aside import leave_names, leave_stand_ins, set_aside

AUTOGRADER_DIR = Path("/autograder")


def prepare(autograder_dir: Path) -> list[str]:
    """Makes the container safe to run Otter in, whatever was handed in; returns the names that were handed in.

    Nobody but the owner gets into the folders with the cases, the submission and the results.
    """
    for name in ("source", "submission", "results"):
        (autograder_dir / name).chmod(0o700)
    _write_metadata(autograder_dir / "submission_metadata.json")
    handed_in = set_aside(autograder_dir)
    names = sorted(entry.name for entry in handed_in.iterdir())
    leave_stand_ins(autograder_dir / "submission", names)
    return names


def _write_metadata(path: Path) -> None:
    # Otter's image leaves an empty file here, and Otter fails to read it as soon as there is a plugin.
    try:
        usable = isinstance(json.loads(path.read_text(encoding="utf-8")), dict)
    except (OSError, ValueError):
        usable = False
    if not usable:
        path.write_text("{}", encoding="utf-8")
    path.chmod(0o600)


def main() -> None:
    """Prepares the container and runs Otter in it."""
    from otter.run.run_autograder import main as run_otter

    names = prepare(AUTOGRADER_DIR)
    try:
        run_otter(str(AUTOGRADER_DIR))
    finally:
        leave_names(AUTOGRADER_DIR / "submission", names)


if __name__ == "__main__":
    main()
