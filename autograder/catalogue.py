"""The hidden cases of an assignment, collected and run by pytest in this process."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder import pytest_plugin
from autograder.case_items import CaseInfo, describe_item
from autograder.errors import UnusableAssignment
from autograder.examination import Examination
from autograder.project import Assignment
from autograder.results import Case, Outcome, round_points
from autograder.verdict import Verdict

UNJUDGED = "What it returned has not the form that is asked for, so it could not be judged."
NOT_HELD = "This does not hold yet."

# Plugins of pytest that print, capture or write: a grading does none of that.
QUIET = (
    "terminal", "cacheprovider", "doctest", "unittest", "junitxml", "pastebin", "logging", "warnings", "faulthandler",
    "capture", "stepwise", "debugging", "threadexception", "unraisableexception", "setuponly", "setupplan",
)  # fmt: skip


class _Collector:
    """Keeps what pytest found, and what it could not load."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.wanted: Callable[[CaseInfo], bool] = lambda _: True
        self.cases: dict[str, CaseInfo] = {}
        self.problems: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in list(items):
            try:
                info = describe_item(item)
            except UnusableAssignment as error:
                self.problems.append(str(error))
            else:
                if self.wanted(info):
                    self.cases[item.nodeid] = info
                else:
                    items.remove(item)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.problems.append(f"{report.nodeid}: {_last_line(report.longreprtext)}")

    def pytest_internalerror(self, excrepr: Any) -> None:
        self.problems.append(f"pytest itself failed: {_last_line(str(excrepr))}")


class _Recorder(_Collector):
    """Runs the cases on one examination and keeps a verdict for each."""

    def __init__(self, assignment: Assignment, examination: Examination) -> None:
        super().__init__(assignment)
        self.examination = examination
        self.verdicts: dict[str, Case] = {}
        self.unusable: UnusableAssignment | None = None
        self.observations = 0

    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[pytest_plugin.EXAMINATIONS] = {self.assignment.name: self.examination}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        self.observations = self.examination.observations
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        report: pytest.TestReport = yield
        info = self.cases[item.nodeid]
        if call.when == "call" and report.passed:
            self.verdicts[item.nodeid] = Case(info.id, info.title, info.points, info.points, "passed")
        elif not report.passed:
            outcome, hint, detail = self._why(item, call)
            self.verdicts[item.nodeid] = Case(info.id, info.title, 0.0, info.points, outcome, hint, detail)
        return report

    def _why(self, item: pytest.Item, call: pytest.CallInfo[None]) -> tuple[Outcome, str, str]:
        assert call.excinfo is not None
        error = call.excinfo.value
        if isinstance(error, Verdict):
            return error.outcome, error.hint, error.detail
        line = next(
            (e for e in reversed(call.excinfo.traceback) if Path(e.path) == item.path), call.excinfo.traceback[-1]
        )
        detail = f"{Path(line.path).name}:{line.lineno + 1}: {call.excinfo.exconly()[:1500]}"
        if isinstance(error, UnusableAssignment):
            self.unusable = error
        elif call.when != "call" or self.examination.observations == self.observations:
            self.unusable = UnusableAssignment(f"{item.path}: {item.name} fails before it has looked: {detail}")
        if isinstance(error, AssertionError):
            return "failed", NOT_HELD, detail
        return "error", UNJUDGED, detail


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("E ")]
    return (errors or lines or ["no reason given"])[-1].removeprefix("E").strip()


def _pytest(assignment: Assignment, plugin: _Collector, *options: str) -> None:
    if str(assignment.root) not in sys.path:
        sys.path.insert(0, str(assignment.root))
    arguments = [
        str(assignment.folder),
        "--import-mode=importlib",
        f"--rootdir={assignment.root}",
        f"--confcutdir={assignment.root}",
        "-o",
        "addopts=",
    ]
    arguments += ["-c", os.devnull, *options]
    for name in QUIET:
        arguments += ["-p", f"no:{name}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        patch.delenv("PYTEST_ADDOPTS", raising=False)
        patch.delenv("PYTEST_PLUGINS", raising=False)
        code = pytest.main(arguments, plugins=[pytest_plugin, plugin])
    if code == pytest.ExitCode.NO_TESTS_COLLECTED and not plugin.problems:
        raise UnusableAssignment(f"{assignment.folder}: no hidden cases (test_*.py) there")
    if code in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED):
        plugin.problems.append(f"{assignment.folder}: pytest ended with {pytest.ExitCode(code).name}")
    if plugin.problems:
        raise UnusableAssignment(plugin.problems[0])


def collect_cases(assignment: Assignment) -> tuple[CaseInfo, ...]:
    """The assignment's hidden cases in pytest's order.

    Raises UnusableAssignment when a file cannot be loaded, or the cases and assignment.toml disagree.
    """
    collector = _Collector(assignment)
    _pytest(assignment, collector, "--collect-only")
    cases = tuple(collector.cases.values())
    sums = Counter[str]()
    for case in cases:
        sums[case.question] += case.points  # type: ignore[assignment]
    toml = assignment.folder / "assignment.toml"
    for question in sums:
        if question not in {q.id for q in assignment.questions}:
            raise UnusableAssignment(f"{toml}: there are cases for question {question!r}, which it does not list")
    for question_ in assignment.questions:
        total = round_points(sums[question_.id])
        if total != question_.points:
            raise UnusableAssignment(
                f"{toml}: question {question_.id!r} has {question_.points:g} points, its cases {total:g}"
            )
    return cases


def run_cases(
    assignment: Assignment, examination: Examination, wanted: Callable[[CaseInfo], bool] | None = None
) -> list[tuple[CaseInfo, Case]]:
    """Runs every hidden case (or the wanted ones) on an examination.

    Raises UnusableAssignment when the cases themselves are at fault.
    """
    recorder = _Recorder(assignment, examination)
    recorder.wanted = wanted or recorder.wanted
    _pytest(assignment, recorder)
    if recorder.unusable is not None:
        raise recorder.unusable
    missing = set(recorder.cases) - set(recorder.verdicts)
    if missing:
        raise UnusableAssignment(f"{assignment.folder}: no verdict on {', '.join(sorted(missing))}")
    return [(info, recorder.verdicts[nodeid]) for nodeid, info in recorder.cases.items()]
