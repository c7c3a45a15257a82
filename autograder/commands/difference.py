"""`autograder diff`: whose marks changed between two gradings, by how much, on which case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from autograder.classroom import read_results
from autograder.commands.display import add_row, make_table, print_table
from autograder.results import Result, round_points


@dataclass(frozen=True)
class Change:
    """What differs for one submission; `cases` are lines like `batch_norm test_values: failed → passed (+2)`."""

    submission: str
    before: str
    after: str
    difference: str
    cases: tuple[str, ...]


def difference(old: Path, new: Path) -> int:
    """Prints the changes between two output folders."""
    before = {result.submission: result for result in read_results(old)}
    after = {result.submission: result for result in read_results(new)}
    changes = list(compare(before, after))
    if not changes:
        click.echo(f"no marks changed in {len(after)} submissions")
        return 0
    table = make_table("submission", "before", "after", "change", "on", right={"before", "after", "change"})
    for change in changes:
        first, *others = change.cases or ("",)
        add_row(table, change.submission, change.before, change.after, change.difference, first)
        for case in others:
            add_row(table, "", "", "", "", case)
    print_table(table)
    click.echo(f"{len(changes)} changed, {len(before.keys() & after.keys())} in both")
    return 0


def compare(before: dict[str, Result], after: dict[str, Result]) -> Iterator[Change]:
    """The submissions whose mark, state or outcome of any case differs, sorted."""
    for id in sorted(before.keys() | after.keys()):
        old, new = before.get(id), after.get(id)
        cases = tuple(_case_changes(old, new)) if old and new else ()
        if _mark(old) != _mark(new) or cases:
            both = old and new and old.status == new.status == "graded"
            points = round_points(new.points - old.points) if both and old and new else 0.0
            yield Change(id, _mark(old), _mark(new), f"{points:+g}" if both else "", cases)


def _mark(result: Result | None) -> str:
    if result is None:
        return "absent"
    return f"{round_points(result.points):g}" if result.status == "graded" else result.status


def _case_changes(old: Result, new: Result) -> Iterator[str]:
    before = {(q.id, case.id): case for q in old.questions for case in q.cases}
    after = {(q.id, case.id): case for q in new.questions for case in q.cases}
    for key in dict.fromkeys([*before, *after]):
        was, now = before.get(key), after.get(key)
        outcomes = was.outcome if was else "absent", now.outcome if now else "absent"
        points = round_points((now.points if now else 0.0) - (was.points if was else 0.0))
        if outcomes[0] != outcomes[1] or points:
            yield f"{key[0]} {key[1].rpartition('::')[2]}: {outcomes[0]} → {outcomes[1]} ({points:+g})"
