"""Our verdicts through Otter, and that Otter never touches what was handed in."""

import io
import json
import pickle
import stat
import zipfile
from pathlib import Path

import nbformat
import pytest
from otter.grade.utils import merge_scores_to_df
from otter.run import AutograderConfig
from otter.run import main as otter_run
from otter.run.run_autograder.runners.python_runner import PythonRunner
from otter.test_files import GradingResults

from autograder.build.archive import build_archive
from autograder.errors import IsolationUnavailable
from autograder.otter import container, plugin
from autograder.otter.plugin import AutograderPlugin
from autograder.otter.set_aside import HANDED_IN, leave_names, set_aside
from autograder.project import Assignment
from scripts.hostile import hostile_zip
from tests.otter_support import REASON, gradescope, make_assignment, not_graded, notebook, result, zipped


@pytest.fixture
def assignment(tmp_path: Path) -> Assignment:
    return make_assignment(tmp_path / "project")


@pytest.fixture
def autograder_dir(tmp_path: Path, assignment: Assignment) -> Path:
    """The folder as a grading container has it: source unpacked, nothing handed in, empty metadata."""
    folder = tmp_path / "autograder"
    for name in ("source", "submission", "results"):
        (folder / name).mkdir(parents=True)
    with zipfile.ZipFile(build_archive(assignment)) as archive:
        archive.extractall(folder / "source")
    (folder / "submission_metadata.json").touch()
    return folder


@pytest.fixture(autouse=True)
def environment_kept(monkeypatch):
    monkeypatch.setenv("PYTHONSAFEPATH", "")


@pytest.fixture
def graded(monkeypatch):
    """Puts a result in the place of grading; returns what the plugin asked to be graded."""
    asked = []

    def set_result(outcome):
        def grade(assignment, folder, name, isolation):
            asked.append((assignment.name, folder, name, isolation))
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        monkeypatch.setattr(plugin, "grade_handed_in", grade)
        return asked

    return set_result


def through_plugin(autograder_dir: Path, submission: str, *, metadata=None, in_container=True) -> GradingResults:
    """What Otter's runner does with the plugin, without its kernel."""
    config = AutograderConfig({"pdf": True, "token": "t"})
    config.otter_run = not in_container
    settings = {"assignment": "demo", "isolation": "auto"}
    one = AutograderPlugin(str(autograder_dir / "submission" / submission), metadata or {}, settings)
    one.before_grading(config)
    assert not PythonRunner(config).pdf_enabled, "a PDF of the empty notebook is of no use to anybody"
    results = GradingResults([])
    one.after_grading(results)
    results.file = submission
    return results


# What was handed in, and where it goes


def test_everything_moves_to_a_folder_that_others_cannot_enter(autograder_dir):
    submission = autograder_dir / "submission"
    (submission / "a.ipynb").write_bytes(notebook())
    (submission / ".OTTER_LOG").write_bytes(b"log")
    (submission / "nbformat").mkdir()
    (submission / "nbformat" / "__init__.py").touch()
    (submission / "link").symlink_to("/etc/passwd")
    handed_in = set_aside(autograder_dir)
    assert list(submission.iterdir()) == []
    assert sorted(path.name for path in handed_in.iterdir()) == [".OTTER_LOG", "a.ipynb", "link", "nbformat"]
    assert (handed_in / "link").is_symlink()
    assert stat.S_IMODE(handed_in.stat().st_mode) == 0o700


HANDED_IN_KINDS = {
    "a notebook": {"a.ipynb": notebook("x = 1")},
    "a truncated notebook": {"a.ipynb": b'{"cells": ['},
    "an empty file": {"a.ipynb": b""},
    "a notebook of format 3": {"a.ipynb": b'{"nbformat": 3, "nbformat_minor": 0, "worksheets": [], "metadata": {}}'},
    "another assignment's": {"a.ipynb": b'{"cells": [], "metadata": {"otter": {"assignment_name": "other"}}}'},
    "two notebooks": {"a.ipynb": notebook(), "b.ipynb": notebook()},
    "a zip": {"a.zip": zipped(**{"a.ipynb": notebook()})},
    "no zip under its name": {"a.zip": b"nonsense"},
    "two zips": {"a.zip": zipped(), "b.zip": zipped()},
    "a latin-1 script": {"a.py": "x = 'é'".encode("latin-1")},
    "a document": {"a.docx": b"PK"},
    "a module in the way": {"nbformat.py": b"raise SystemExit"},
    "nothing": {},
}


@pytest.mark.parametrize("files", HANDED_IN_KINDS.values(), ids=HANDED_IN_KINDS)
def test_otter_always_finds_one_empty_notebook_in_the_container(autograder_dir, files, monkeypatch):
    for name, content in files.items():
        (autograder_dir / "submission" / name).write_bytes(content)
    names = container.prepare(autograder_dir)
    assert names == sorted(files)
    monkeypatch.chdir(autograder_dir / "submission")
    runner = PythonRunner(AutograderConfig())
    found = runner.resolve_submission_path()
    runner.validate_submission(found)
    assert nbformat.read(found, as_version=4).cells == []
    assert not list(Path.cwd().glob("*.py"))
    assert all(zipfile.ZipFile(path).namelist() == [] for path in Path.cwd().glob("*.zip"))


def test_the_container_is_closed_to_other_users(autograder_dir):
    container.prepare(autograder_dir)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in autograder_dir.iterdir()}
    assert {modes[name] for name in ("source", "submission", "results", HANDED_IN)} == {0o700}
    assert modes["submission_metadata.json"] == 0o600


@pytest.mark.parametrize(
    "before, after",
    [("", {}), ("nonsense", {}), ("[]", {}), ('{"users": [{"email": "a@b"}]}', {"users": [{"email": "a@b"}]})],
)
def test_metadata_is_readable_afterwards(autograder_dir, before, after):
    (autograder_dir / "submission_metadata.json").write_text(before)
    container.prepare(autograder_dir)
    assert json.loads((autograder_dir / "submission_metadata.json").read_text()) == after


def test_the_names_handed_in_are_there_for_otter_to_copy_back(autograder_dir):
    submission = autograder_dir / "submission"
    for name in ("a.py", "b.pdf"):
        (submission / name).write_bytes(b"content")
    leave_names(submission, container.prepare(autograder_dir))
    assert (submission / "a.py").read_bytes() == b""
    assert (submission / "b.pdf").read_bytes() == b""


def test_the_plugin_sets_aside_what_run_autograder_has_not(autograder_dir, graded):
    asked = graded(result())
    (autograder_dir / "submission" / "a.ipynb").write_bytes(notebook("x = 1"))
    through_plugin(autograder_dir, "a.ipynb", in_container=False)
    assert asked == [("demo", autograder_dir / HANDED_IN, "a.ipynb", "auto")]
    assert nbformat.read(autograder_dir / "submission" / "a.ipynb", as_version=4).cells == []


def test_the_plugin_leaves_a_script_for_a_script(autograder_dir, graded):
    graded(result())
    (autograder_dir / "submission" / "a.py").write_bytes(b"x = 1")
    through_plugin(autograder_dir, "a.py", in_container=False)
    assert (autograder_dir / "submission" / "a.py").read_bytes() == b""


def test_cases_and_solutions_are_unpacked_where_others_cannot_enter(autograder_dir, graded):
    graded(result())
    container.prepare(autograder_dir)
    through_plugin(autograder_dir, "submission.ipynb")
    content = autograder_dir / "content"
    assert (content / "solutions" / "demo.py").exists()
    assert stat.S_IMODE(content.stat().st_mode) == 0o700


# What cannot be graded


def test_otter_grade_states_in_its_table_why_a_submission_was_not_graded(autograder_dir, graded):
    container.prepare(autograder_dir)
    graded(not_graded())
    failed = through_plugin(autograder_dir, "submission.ipynb")
    graded(result())
    fine = through_plugin(autograder_dir, "submission.ipynb")
    table = merge_scores_to_df([failed, fine]).set_index("file", drop=False)
    assert list(table["grading_status"]) == ["--", f"not graded: {REASON}", "Completed"]
    assert table["first"].tolist() == [3.0, 0.0, 1.0]
    assert table["second"].tolist() == [2.0, 0.0, 2.0]
    assert table["total_points_earned"].tolist() == [5.0, 0.0, 3.0]


def test_otter_grade_has_all_columns_when_nothing_could_be_graded(autograder_dir, graded):
    container.prepare(autograder_dir)
    graded(not_graded())
    table = merge_scores_to_df([through_plugin(autograder_dir, "submission.ipynb")])
    assert {"first", "second"} <= set(table.columns)
    assert table["grading_status"].tolist() == [f"not graded: {REASON}"]


@pytest.mark.parametrize(
    "metadata, in_container", [({"users": []}, True), ({}, False)], ids=["Gradescope", "otter run"]
)
def test_elsewhere_every_question_is_reported_with_the_reason(autograder_dir, graded, metadata, in_container):
    (autograder_dir / "submission" / "a.ipynb").write_bytes(b"{")
    graded(not_graded())
    results = through_plugin(autograder_dir, "a.ipynb", metadata=metadata, in_container=in_container)
    shown = gradescope(results)
    assert shown["output"].startswith(f"Not graded: {REASON}")
    assert [(test["name"], test["score"], test["max_score"]) for test in shown["tests"]] == [
        ("The first", 0, 3.0),
        ("The second", 0, 2.0),
    ]
    assert all(REASON in test["output"] for test in shown["tests"])


def test_a_fault_of_ours_is_no_zero_of_the_students(autograder_dir, graded):
    container.prepare(autograder_dir)
    graded(IsolationUnavailable("no sandbox starts here"))
    results = through_plugin(autograder_dir, "submission.ipynb")
    assert results.has_catastrophic_failure()
    assert "not because of the submission: no sandbox starts here" in str(results.catastrophic_error)


def test_a_fault_of_ours_reaches_the_instructor_who_runs_otter_run(autograder_dir, graded):
    (autograder_dir / "submission" / "a.ipynb").write_bytes(notebook())
    graded(IsolationUnavailable("no sandbox starts here"))
    with pytest.raises(IsolationUnavailable, match="no sandbox starts here"):
        through_plugin(autograder_dir, "a.ipynb", in_container=False)


# A real `otter run`


def test_otter_run_reports_our_verdicts_and_runs_nothing_that_was_handed_in(tmp_path, assignment, graded):
    asked = graded(result())
    marker = tmp_path / "pwned"
    submission = tmp_path / "export.zip"
    submission.write_bytes(hostile_zip(str(marker)))
    results = otter_run(
        str(submission), autograder=str(build_archive(assignment)), output_dir=str(tmp_path), no_logo=True
    )
    assert not marker.exists()
    assert asked[0][2] == "submission.ipynb"
    assert (results.total, results.possible) == (3.0, 5.0)
    written = json.loads((tmp_path / "results.json").read_text())
    assert {test["name"]: test["score"] for test in written["tests"]} == {"The first": 1.0, "The second": 2.0}


def test_the_hostile_zip_does_run_code_when_it_is_unpickled(tmp_path):
    """Otherwise the test above would show nothing."""
    marker = tmp_path / "pwned"
    with zipfile.ZipFile(io.BytesIO(hostile_zip(str(marker)))) as archive:
        pickle.loads(archive.read(".OTTER_LOG"))
    assert marker.exists()
