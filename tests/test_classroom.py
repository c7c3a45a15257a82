"""Grading a class: everything given appears, nothing is lost, and a second run goes on where the first stopped."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from autograder import classroom, grader_process, grades
from autograder.classroom import grade_class, grading_key, read_result, read_results, result_path
from autograder.errors import AutograderError, IsolationUnavailable
from autograder.grader_process import Task
from autograder.project import Assignment, load_assignment
from autograder.results import Result
from tests.toy_class import RIGHT, WRONG_HALF, graded, hand_in, make_project, notebook


@pytest.fixture
def assignment(tmp_path: Path) -> Assignment:
    return make_project(tmp_path / "project")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def table(out: Path) -> dict[str, dict[str, str]]:
    with (out / "grades.csv").open(newline="") as file:
        return {row["submission"]: row for row in csv.DictReader(file)}


def nothing(result: Result) -> None:
    pass


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Instead of grading, does what the notebook's text says; the folder holds a file for each time a name came up."""
    log = tmp_path / "log"
    log.mkdir()

    def grade_one(task: Task) -> Result:
        import os
        import uuid

        (log / f"{task.submission}-{uuid.uuid4().hex}").touch()
        if task.reason:
            return grader_process.refuse(task)
        if task.data == b"die":
            os._exit(7)
        if task.data == b"fail":
            raise ValueError("a fault")
        if task.data == b"no sandbox":
            raise IsolationUnavailable("no sandbox here")
        return graded(task.submission, sha256=task.sha256)

    monkeypatch.setattr(grader_process, "grade_one", grade_one)
    return log


def times(log: Path, name: str) -> int:
    return len(list(log.glob(f"{name}-*")))


def test_a_class_for_real(assignment: Assignment, out: Path, tmp_path: Path) -> None:
    submissions = hand_in(
        tmp_path / "class",
        right=notebook(RIGHT),
        wrong=notebook(WRONG_HALF),
        half_broken=notebook("def twice(x): return 2 * x", "def half(x:"),
        unreadable=b"<html>",
    )
    seen: list[str] = []
    results = grade_class(assignment, submissions, out, 2, "none", lambda result: seen.append(result.submission))
    assert [(result.submission, result.status, result.points) for result in results] == [
        ("half_broken", "graded", 2.0),
        ("right", "graded", 3.0),
        ("unreadable", "ungradable", 0.0),
        ("wrong", "graded", 2.0),
    ]
    assert sorted(seen) == ["half_broken", "right", "unreadable", "wrong"]
    assert read_results(out) == results
    rows = table(out)
    assert list(rows) == ["half_broken", "right", "unreadable", "wrong"]
    assert list(rows["right"].items()) == [
        ("submission", "right"),
        ("twice", "2"),
        ("half", "1"),
        ("total", "3"),
        ("possible", "3"),
        ("status", "graded"),
        ("reason", ""),
        ("file", "right"),
    ]
    assert results[1].file == "right"
    assert "web page" in rows["unreadable"]["reason"]
    assert (rows["unreadable"]["status"], rows["unreadable"]["total"]) == ("ungradable", "")  # and not a silent 0


def test_a_second_run_grades_only_what_is_new(assignment: Assignment, out: Path, tmp_path: Path, pretend: Path) -> None:
    folder = tmp_path / "class"
    first = hand_in(folder, a=b"fine", b=b"fine", c=b"fine")
    before = grade_class(assignment, first, out, 1, "none", nothing)
    second = hand_in(folder, b=b"changed", d=b"fine")
    after = grade_class(assignment, second, out, 1, "none", nothing)
    assert [times(pretend, name) for name in "abcd"] == [1, 2, 1, 1]
    assert before[0] == after[0]
    assert list(table(out)) == ["a", "b", "c", "d"]


def test_ungradable_ones_are_tried_again(assignment: Assignment, out: Path, tmp_path: Path, pretend: Path) -> None:
    submissions = hand_in(tmp_path / "class", a=b"fail")
    for _ in range(2):
        [result] = grade_class(assignment, submissions, out, 1, "none", nothing)
        assert result.status == "ungradable"
    assert times(pretend, "a") == 2


@pytest.mark.parametrize("change", ["a case", "the solutions", "the isolation", "the engine"])
def test_what_decides_a_mark_makes_a_run_anew(
    assignment: Assignment, out: Path, tmp_path: Path, pretend: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    submissions = hand_in(tmp_path / "class", a=b"fine")
    grade_class(assignment, submissions, out, 1, "none", nothing)
    if change == "a case":
        (assignment.folder / "test_half.py").write_text(
            "# another\n" + (assignment.folder / "test_half.py").read_text()
        )
    elif change == "the solutions":
        assignment.solutions.write_text(assignment.solutions.read_text() + "\n")
    elif change == "the engine":
        monkeypatch.setattr(classroom, "_engine_digest", lambda: "another")
    assignment = load_assignment("toy", assignment.root)
    grade_class(assignment, submissions, out, 1, "auto" if change == "the isolation" else "none", nothing)
    assert times(pretend, "a") == 2


@pytest.mark.parametrize("damage", ["", "{", '{"schema": 1}', '{"schema": 99}', "[]", "null"])
def test_a_damaged_result_is_made_again(
    assignment: Assignment, out: Path, tmp_path: Path, pretend: Path, damage: str
) -> None:
    submissions = hand_in(tmp_path / "class", a=b"fine")
    grade_class(assignment, submissions, out, 1, "none", nothing)
    result_path(out, "a").write_text(damage)
    assert read_result(out, "a") is None
    grade_class(assignment, submissions, out, 1, "none", nothing)
    assert read_result(out, "a") is not None


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_process_that_dies_costs_only_its_submission(
    assignment: Assignment, out: Path, tmp_path: Path, pretend: Path, jobs: int
) -> None:
    contents = {"a": b"fine", "b": b"die", "c": b"fine", "d": b"die", "e": b"fine", "f": b"fail", "g": b"fine"}
    submissions = hand_in(tmp_path / "class", **contents)
    results = grade_class(assignment, submissions, out, jobs, "none", nothing)
    assert "".join(result.submission for result in results if result.status == "graded") == "aceg"
    reasons = {result.submission: result.reason for result in results}
    assert "died" in reasons["b"]
    assert "died" in reasons["d"]
    assert "a fault" in reasons["f"]
    assert list(table(out)) == list("abcdefg")


def test_when_nothing_can_be_graded_it_stops(assignment: Assignment, out: Path, tmp_path: Path, pretend: Path) -> None:
    submissions = hand_in(tmp_path / "class", a=b"no sandbox", b=b"fine")
    with pytest.raises(AutograderError, match="no sandbox here"):
        grade_class(assignment, submissions, out, 1, "none", nothing)
    assert set(table(out)) == {"a", "b"}


def test_an_interruption_keeps_what_is_finished(
    assignment: Assignment, out: Path, tmp_path: Path, pretend: Path
) -> None:
    submissions = hand_in(tmp_path / "class", a=b"fine", b=b"fine", c=b"fine")

    def interrupt(result: Result) -> None:
        if result.submission == "b":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grade_class(assignment, submissions, out, 1, "none", interrupt)
    assert {name: row["status"] for name, row in table(out).items()} == {
        "a": "graded", "b": "graded", "c": "not graded",
    }  # fmt: skip
    grade_class(assignment, submissions, out, 1, "none", nothing)
    assert times(pretend, "a") == times(pretend, "b") == 1
    assert {row["status"] for row in table(out).values()} == {"graded"}


def test_a_notebook_that_vanishes_while_grading(
    assignment: Assignment, out: Path, tmp_path: Path, pretend: Path
) -> None:
    submissions = hand_in(tmp_path / "class", a=b"fine", b=b"fine")
    (tmp_path / "class" / "a.ipynb").unlink()
    a, b = grade_class(assignment, submissions, out, 1, "none", nothing)
    assert "cannot be read" in a.reason
    assert b.status == "graded"


def test_one_folder_holds_one_assignment(assignment: Assignment, out: Path, tmp_path: Path, pretend: Path) -> None:
    submissions = hand_in(tmp_path / "class", a=b"fine")
    grade_class(assignment, submissions, out, 1, "none", nothing)
    os.rename(assignment.folder, assignment.folder.parent / "other")
    os.rename(assignment.solutions, assignment.solutions.parent / "other.py")
    with pytest.raises(AutograderError, match="holds results of toy"):
        grade_class(load_assignment("other", assignment.root), submissions, out, 1, "none", nothing)


def test_a_file_in_place_of_the_output_folder(assignment: Assignment, out: Path, tmp_path: Path) -> None:
    out.write_text("in the way")
    with pytest.raises(AutograderError, match="cannot write results"):
        grade_class(assignment, hand_in(tmp_path / "class", a=b"fine"), out, 1, "none", nothing)


def test_the_key_is_the_same_for_the_same_things(assignment: Assignment) -> None:
    assert grading_key(assignment, "auto") == grading_key(load_assignment("toy", assignment.root), "auto")


def test_results_that_name_another_file_are_not_read(out: Path) -> None:
    (out / "results").mkdir(parents=True)
    result_path(out, "a").write_text(graded("../../b").to_json())
    result_path(out, "c").write_text(graded("c").to_json())
    assert [result.submission for result in read_results(out)] == ["c"]


def test_text_in_the_table_is_no_formula(assignment: Assignment, out: Path, tmp_path: Path) -> None:
    [submission] = hand_in(tmp_path / "class", a=b"fine")
    result = graded("a", status="ungradable", reason="=cmd|' /C calc'!A0\nsecond line")
    grades.write_grades(assignment, [submission], {"a": result}, out, students_without=["@evil"])
    rows = table(out)
    assert rows["a"]["reason"] == "'=cmd|' /C calc'!A0 second line"
    assert rows["'@evil"]["status"] == "no submission"


@pytest.mark.parametrize(
    ("roster", "without"),
    [
        pytest.param("name,id\nAnna,anna\nBen,ben\nCem,cem\n", ["Cem"], id="ids"),
        pytest.param("\ufeffid;x,name\n1,anna\n2,ben\n\n3,Cem Öz\n", ["Cem Öz"], id="second column"),
        pytest.param("name\nann\nanna\nben\n", ["ann"], id="whole words only"),
    ],
)
def test_roster(tmp_path: Path, roster: str, without: list[str]) -> None:
    submissions = hand_in(tmp_path / "class", anna_12_hw4=b"", ben=b"")
    (tmp_path / "roster.csv").write_text(roster, encoding="utf-8")
    assert grades.read_roster(tmp_path / "roster.csv", submissions) == without


@pytest.mark.parametrize(
    ("roster", "message"),
    [
        (b"name\nzoe\n", "no column names a submission"),
        (b"name\n", "a line for each student"),
        (b"\xff\xfe\x00", "not a CSV file"),
    ],
)
def test_rosters_of_no_use(tmp_path: Path, roster: bytes, message: str) -> None:
    submissions = hand_in(tmp_path / "class", anna=b"")
    (tmp_path / "roster.csv").write_bytes(roster)
    with pytest.raises(AutograderError, match=message):
        grades.read_roster(tmp_path / "roster.csv", submissions)


def test_a_cluster_without_the_package(
    assignment: Assignment, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    submissions = hand_in(tmp_path / "class", a=b"fine")
    with pytest.raises(AutograderError, match="pip install distributed"):
        grade_class(assignment, submissions, out, 1, "none", nothing, cluster="tcp://127.0.0.1:1")
