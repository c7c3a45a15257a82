"""The autograder.zip: what it holds, where, and that it can be built again."""

import io
import json
import os
import stat
import subprocess
import zipfile
from pathlib import Path

import pytest

from autograder.build.archive import build_archive, pack
from autograder.errors import AutograderError, UnusableAssignment
from autograder.otter.content import ENGINE
from autograder.project import Assignment, load_assignment

SECRET = "expected_value_17"

TOML = """
title = "Demo"
packages = ["numpy"]

[[questions]]
id = "first"
title = "The first"
points = 2
"""


@pytest.fixture
def assignment(tmp_path: Path) -> Assignment:
    """A project with one assignment, whose cases, solutions and handed-out file hold `SECRET`."""
    folder = tmp_path / "assignments" / "demo"
    (folder / "files").mkdir(parents=True)
    (folder / "assignment.toml").write_text(TOML)
    (folder / "test_first.py").write_text(f"# {SECRET}\n")
    (folder / "files" / "helper.py").write_text(f"# {SECRET}\n")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "test_first.cpython-311.pyc").write_bytes(b"old")
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "demo.py").write_text(f"# {SECRET}\n")
    (tmp_path / "solutions" / "other.py").write_text("# another assignment's\n")
    (tmp_path / "constraints.txt").write_text("numpy==2.0.0\n")
    return load_assignment("demo", tmp_path)


@pytest.fixture
def archive(assignment: Assignment) -> zipfile.ZipFile:
    return zipfile.ZipFile(build_archive(assignment))


@pytest.fixture
def inner(archive: zipfile.ZipFile) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(archive.read(ENGINE)))


def test_lies_where_the_documentation_says(assignment):
    assert build_archive(assignment) == assignment.root / "dist" / "demo" / "autograder.zip"


def test_the_same_project_gives_the_same_bytes(assignment):
    first = build_archive(assignment).read_bytes()
    for path in assignment.root.rglob("*"):
        os.utime(path, (1, 1))
    assert build_archive(assignment).read_bytes() == first


def test_no_entry_tells_when_it_was_packed(archive, inner):
    assert {entry.date_time for entry in [*archive.infolist(), *inner.infolist()]} == {(1980, 1, 1, 0, 0, 0)}


def test_a_changed_case_gives_other_bytes(assignment):
    first = build_archive(assignment).read_bytes()
    (assignment.folder / "test_first.py").write_text("# changed\n")
    assert build_archive(assignment).read_bytes() != first


def test_the_order_in_which_files_are_given_does_not_matter():
    assert pack({"a": b"1", "b": b"2"}) == pack({"b": b"2", "a": b"1"})


def test_everything_that_otters_dockerfile_copies_is_there(archive):
    names = set(archive.namelist())
    assert {"run_autograder", "setup.sh", "environment.yml", "requirements.txt", "run_otter.py"} <= names
    assert "otter_config.json" in names
    assert any(name.startswith("files/") for name in names)
    assert any(name.startswith("tests/") for name in names)


def test_nothing_secret_goes_to_the_folders_that_are_copied_beside_the_submission(archive):
    beside = [name for name in archive.namelist() if name.startswith(("files/", "tests/"))]
    assert beside and all(name.endswith(".txt") for name in beside)
    assert all(SECRET.encode() not in archive.read(name) for name in archive.namelist() if name != ENGINE)


def test_otter_finds_no_tests_of_its_own_to_run(archive):
    assert not [name for name in archive.namelist() if name.startswith("tests/") and name.endswith(".py")]


def test_engine_cases_and_solutions_are_packed(inner):
    names = set(inner.namelist())
    assert {"autograder/otter/plugin.py", "autograder/worker/__init__.py", "autograder/results.py"} <= names
    assert {"assignments/demo/assignment.toml", "assignments/demo/test_first.py"} <= names
    assert {"assignments/demo/files/helper.py", "solutions/demo.py"} <= names


def test_by_products_and_other_assignments_are_not_packed(inner):
    assert not [name for name in inner.namelist() if "__pycache__" in name or name == "solutions/other.py"]


def test_the_plugin_is_told_the_assignment_and_names_are_not_checked_by_otter(archive):
    config = json.loads(archive.read("otter_config.json"))
    [[(plugin, settings)]] = [list(entry.items()) for entry in config["plugins"]]
    assert plugin == "autograder.otter.plugin.AutograderPlugin"
    assert settings["assignment"] == "demo"
    assert "assignment_name" not in config


def test_the_requirements_cover_engine_assignment_and_otter(archive):
    requirements = archive.read("requirements.txt").decode().splitlines()
    assert {"numpy", "otter-grader[grading]"} <= set(requirements)
    assert any(line.startswith("cloudpickle") for line in requirements)
    assert archive.read("requirements.constraints.txt") == b"numpy==2.0.0\n"


def test_scripts_may_be_run_and_are_correct_bash(archive, tmp_path):
    for name in ("run_autograder", "setup.sh"):
        assert archive.getinfo(name).external_attr >> 16 & stat.S_IXUSR
        script = tmp_path / name
        script.write_bytes(archive.read(name))
        assert subprocess.run(["bash", "-n", script], capture_output=True, text=True).stderr == ""


def test_missing_constraints_end_in_one_line(assignment):
    (assignment.root / "constraints.txt").unlink()
    with pytest.raises(AutograderError, match=r"constraints\.txt: No such file.*pins the grading environment"):
        build_archive(assignment)


def test_missing_solutions_end_in_one_line(assignment):
    assignment.solutions.unlink()
    with pytest.raises(UnusableAssignment, match=r"demo\.py: No such file"):
        build_archive(assignment)
