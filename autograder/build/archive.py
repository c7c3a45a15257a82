"""Builds `dist/<assignment>/autograder.zip`, the autograder that Otter and Gradescope take."""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import autograder
from autograder.errors import AutograderError, UnusableAssignment
from autograder.otter.content import CONSTRAINTS, ENGINE
from autograder.otter.verdicts import PLUGIN
from autograder.project import Assignment

DISTRIBUTION = "starting-right"
TEMPLATES = Path(__file__).parent.parent / "otter" / "templates"
# What a zip can date back to; any fixed moment would do.
MOMENT = (1980, 1, 1, 0, 0, 0)

NOTHING_HERE = """\
Otter copies this folder to where the submission lies. So it is empty: the hidden cases and the files handed out
with the notebook are elsewhere.
"""


def build_archive(assignment: Assignment) -> Path:
    """Writes the assignment's autograder.zip and returns its path; the same input gives the same bytes.

    Raises `AutograderError` when constraints.txt is missing and `UnusableAssignment` when a file is.
    """
    target = assignment.root / "dist" / assignment.name / "autograder.zip"
    content = pack(
        {
            **otter_files(assignment),
            **environment_files(assignment.root, [assignment]),
            ENGINE: pack(engine_files() | content_files(assignment)),
        }
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".autograder.")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(temporary).chmod(0o644)
    Path(temporary).replace(target)
    return target


def otter_files(assignment: Assignment) -> dict[str, bytes]:
    """What Otter itself reads; nothing of it may help a student."""
    config = json.loads(_template("otter_config.json"))
    config["plugins"] = [
        {PLUGIN: {**plugin[PLUGIN], "assignment": assignment.name}} if PLUGIN in plugin else plugin
        for plugin in config["plugins"]
    ]
    return {
        "run_autograder": _template("run_autograder"),
        "run_otter.py": _template("run_otter.py"),
        "otter_config.json": json.dumps(config, indent=2).encode() + b"\n",
        "files/README.txt": NOTHING_HERE.encode(),
        "tests/README.txt": NOTHING_HERE.encode(),
    }


def environment_files(root: Path, assignments: Iterable[Assignment]) -> dict[str, bytes]:
    """What makes the environment in which these assignments are graded: setup.sh and what it installs."""
    constraints = root / "constraints.txt"
    try:
        pins = constraints.read_bytes()
    except OSError as error:
        raise AutograderError(f"{constraints}: {error.strerror}; it pins the grading environment") from None
    packages = {package for assignment in assignments for package in assignment.packages}
    requirements = sorted({*_engine_requirements(), *packages, "otter-grader[grading]"})
    return {
        "setup.sh": _template("setup.sh"),
        "environment.yml": _template("environment.yml"),
        "requirements.txt": "".join(f"{line}\n" for line in requirements).encode(),
        CONSTRAINTS: pins,
    }


def engine_files() -> dict[str, bytes]:
    """The `autograder` package."""
    package = Path(autograder.__file__).parent
    return {f"autograder/{name}": data for name, data in _tree(package).items()}


def content_files(assignment: Assignment) -> dict[str, bytes]:
    """The assignment's folder and its solutions: what no student may see."""
    files = {f"assignments/{assignment.name}/{name}": data for name, data in _tree(assignment.folder).items()}
    for package in ("assignments", "solutions"):
        if (marker := assignment.root / package / "__init__.py").is_file():
            files[f"{package}/__init__.py"] = marker.read_bytes()
    try:
        files[f"solutions/{assignment.name}.py"] = assignment.solutions.read_bytes()
    except OSError as error:
        raise UnusableAssignment(f"{assignment.solutions}: {error.strerror}") from None
    return files


def pack(files: Mapping[str, bytes]) -> bytes:
    """A zip of these files, sorted, undated, and uncompressed (so that no zlib's version shows)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, MOMENT)
            entry.create_system = 3
            runs = name == "run_autograder" or name.endswith(".sh")
            entry.external_attr = (0o100755 if runs else 0o100644) << 16
            archive.writestr(entry, files[name])
    return buffer.getvalue()


def _template(name: str) -> bytes:
    return (TEMPLATES / name).read_bytes()


def _tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(_by_product(part) for part in path.relative_to(folder).parts)
    }


def _by_product(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__" or name.endswith(".egg-info")


def _engine_requirements() -> list[str]:
    # In a checkout the file is newer than the metadata of an editable installation.
    pyproject = Path(autograder.__file__).parent.parent / "pyproject.toml"
    if pyproject.is_file():
        return [str(line) for line in tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["dependencies"]]
    return [line for line in importlib.metadata.requires(DISTRIBUTION) or [] if "extra ==" not in line]
