"""Hidden cases as pytest items: which question, how many points, which title."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from autograder.errors import UnusableAssignment

MARKERS = (
    "question(id): the question of assignment.toml that a case belongs to",
    "points(n): what a case is worth; 1 when it does not say",
    "limit(seconds): CPU seconds that the student's code may use in this case",
)


@dataclass(frozen=True)
class CaseInfo:
    """One hidden case: `id` is its place in pytest's terms, below the assignment's folder."""

    id: str
    question: str
    title: str
    points: float


def assignment_name(path: Path) -> str | None:
    """The assignment whose folder a test file lies in, or None."""
    for folder in path.parents:
        if folder.parent.name == "assignments" and (folder / "assignment.toml").is_file():
            return folder.name
    return None


def describe_item(item: pytest.Item) -> CaseInfo:
    """Question, points and title of a case; raises UnusableAssignment with file and line when they do not say."""
    place = f"{item.path}:{(item.reportinfo()[1] or 0) + 1}"
    question = _argument(item, "question", place)
    if question is None:
        raise UnusableAssignment(f'{place}: {item.name} has no mark question("…")')
    points = _argument(item, "points", place)
    points = 1.0 if points is None else points
    if isinstance(points, bool) or not isinstance(points, (int, float)) or points < 0:
        raise UnusableAssignment(f"{place}: points({points!r}) is no number of points")
    function = getattr(item, "function", None)
    title = ((getattr(function, "__doc__", None) or "").strip().splitlines() or [""])[0]
    if not title:
        raise UnusableAssignment(f"{place}: {item.name} has no docstring, which is the title that students see")
    callspec = getattr(item, "callspec", None)
    if callspec is not None:
        title = f"{title} [{callspec.id}]"
    return CaseInfo(f"{item.path.name}::{item.name}", str(question), title, float(points))


def cpu_limit(item: pytest.Item, default: float) -> float:
    """CPU seconds for one probe of this case."""
    seconds = _argument(item, "limit", str(item.path), keyword="seconds")
    return default if seconds is None else float(seconds)


def _argument(item: pytest.Item, marker: str, place: str, keyword: str | None = None) -> Any:
    mark = item.get_closest_marker(marker)
    if mark is None:
        return None
    if keyword is not None and keyword in mark.kwargs:
        return mark.kwargs[keyword]
    if len(mark.args) != 1:
        raise UnusableAssignment(f"{place}: the mark {marker} takes one argument")
    return mark.args[0]
