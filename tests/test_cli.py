"""The command line: exit codes, one clear line for a mistake, and a class graded from outside."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from autograder import cli
from autograder.classroom import result_path
from autograder.results import Result, write_whole
from tests.toy_class import RIGHT, WRONG_HALF, graded, hand_in, make_project, notebook


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    make_project(root)
    monkeypatch.setenv("AUTOGRADER_ROOT", str(root))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stored(out: Path, *results: Result) -> None:
    for result in results:
        write_whole(result_path(out, result.submission), result.to_json())


def rows(out: Path) -> dict[str, dict[str, str]]:
    with (out / "grades.csv").open(newline="") as file:
        return {row["submission"]: row for row in csv.DictReader(file)}


@pytest.mark.parametrize("command", ["", "list", "build", "grade", "report", "diff", "validate"])
def test_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([*command.split(), "--help"]) == 0
    assert f"autograder {command}".strip() in capsys.readouterr().out.partition("Example")[2]


def test_help_needs_no_heavy_imports() -> None:
    code = "import sys; from autograder import cli; cli.run(['grade', '--help']); print(sorted(sys.modules))"
    heavy = {"torch", "numpy", "nbformat", "IPython", "jinja2", "pytest"}
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {name for name in heavy if f"'{name}'" in modules}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("frobnicate", "No such command 'frobnicate'"),
        ("grade", "Missing argument 'HW'"),
        ("grade toy", "Missing argument 'PATH...'"),
        ("grade toy x --isolation wish", "'wish' is not one of"),
        ("grade toy x -j 0", "0 is not in the range"),
        ("grade toy x --wish", "No such option"),
        ("grade tpy x", "no assignment 'tpy'; there are: toy"),
        ("grade toy missing.ipynb", "missing.ipynb: there is no such file or folder"),
        ("grade toy empty", "empty: no notebook, script or zip"),
        ("grade toy a.ipynb -o a.ipynb", "a.ipynb: cannot write results there"),
        ("grade toy a.ipynb --roster missing.csv", "--roster missing.csv: cannot be read"),
        ("report missing", "missing: there is no such folder"),
        ("report empty", "empty: no results there"),
        ("diff empty missing", "missing: there is no such folder"),
        ("build wish", "no assignment 'wish'"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: str, message: str
) -> None:
    (project / "empty").mkdir()
    (project / "a.ipynb").write_bytes(notebook(RIGHT))
    assert cli.run(arguments.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith("autograder: ")
    assert error.count("\n") == 1
    assert message in error


def test_without_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("AUTOGRADER_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    assert cli.run(["list"]) == 2
    assert "run this inside the project" in capsys.readouterr().err


def test_list(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["list"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["toy:", "Twice", "and", "half", "(3", "points)"]
    assert ["twice", "2", "1", "Twice"] in lines


def test_grading_a_folder(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hand_in(project / "class", right=notebook(RIGHT), wrong=notebook(WRONG_HALF))
    (project / "class.csv").write_text("who\nright\nwrong\nzoe\n")
    command = ["grade", "toy", "class", "-o", "out", "-j", "1", "--isolation", "none", "--roster", "class.csv"]
    assert cli.run(command) == 0
    printed = capsys.readouterr()
    assert "[2/2]" in printed.err
    assert [line.split()[:4] for line in printed.out.splitlines()[1:3]] == [
        ["right", "3", "/", "3"],
        ["wrong", "2", "/", "3"],
    ]
    assert "half 0/1" in printed.out
    assert "NOT ISOLATED" in printed.out
    assert "out/report/index.html" in printed.out
    assert "autograder grade toy FOLDER" in printed.out
    assert [(name, row["total"], row["status"]) for name, row in rows(Path("out")).items()] == [
        ("right", "3", "graded"),
        ("wrong", "2", "graded"),
        ("zoe", "", "no submission"),
    ]
    assert Path("out/report/wrong.html").is_file()
    assert "NOT ISOLATED" in Path("out/report/index.html").read_text()


def test_something_ungradable_is_code_1_and_json_is_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hand_in(project / "class", right=notebook(RIGHT), empty=b"")
    assert cli.run(["grade", "toy", "class", "-j", "1", "--isolation", "none", "--format", "json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert [(one["submission"], one["status"], one["points"]) for one in record["submissions"]] == [
        ("empty", "ungradable", 0.0),
        ("right", "graded", 3.0),
    ]
    assert record["submissions"][1]["questions"] == {"twice": 2.0, "half": 1.0}
    assert Path(record["report"]).is_file()
    assert Path(record["grades"]).is_file()


def test_interrupting_keeps_what_is_finished(project: Path) -> None:
    hand_in(project / "class", a=notebook(RIGHT), b=notebook("while True: pass"))
    command = [sys.executable, "-m", "autograder", "grade", "toy", "class", "-j", "1", "--isolation", "none"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        while not result_path(Path("out"), "a").is_file():
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, error = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
    assert process.returncode == 130
    assert error.splitlines()[-1].startswith("autograder: interrupted; 1 of 2 results are in out")
    assert "Traceback" not in error
    assert {name: row["status"] for name, row in rows(Path("out")).items()} == {"a": "graded", "b": "not graded"}
    assert Path("out/report/a.html").is_file()


def test_a_killed_command_leaves_no_process_behind(project: Path) -> None:
    hand_in(project / "class", a=notebook(RIGHT), b=notebook("while True: pass"))
    command = [sys.executable, "-m", "autograder", "grade", "toy", "class", "-j", "1", "--isolation", "none"]
    process = psutil.Popen(command, stderr=subprocess.DEVNULL)
    while not result_path(Path("out"), "a").is_file():
        assert process.poll() is None
        time.sleep(0.05)
    others = process.children(recursive=True)
    assert others
    process.kill()
    process.wait()
    psutil.wait_procs(others, timeout=60)
    assert not [other for other in others if other.is_running() and other.status() != psutil.STATUS_ZOMBIE]


def test_report_makes_the_pages_again(project: Path) -> None:
    stored(Path("out"), graded("a"), graded("b", half=0.0))
    assert cli.run(["report", "out"]) == 0
    assert "look at half" in Path("out/report/b.html").read_text()


def test_diff_shows_whose_marks_changed_and_where(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored(Path("old"), graded("same"), graded("up", half=0.0), graded("gone"), graded("lost"))
    stored(Path("new"), graded("same"), graded("up"), graded("new"), graded("lost", status="ungradable", reason="?"))
    assert cli.run(["diff", "old", "new"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [
        ["gone", "3", "absent"],
        ["lost", "3", "ungradable"],
        ["new", "absent", "3"],
        ["up", "2", "3", "+1", "half", "test_a_number:", "failed", "→", "passed", "(+1)"],
        ["4", "changed,", "3", "in", "both"],
    ]


def test_diff_of_equals(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored(Path("old"), graded("a"))
    stored(Path("new"), graded("a"))
    assert cli.run(["diff", "old", "new"]) == 0
    assert "no marks changed" in capsys.readouterr().out
