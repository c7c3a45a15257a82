"""`autograder list`, `autograder build` and `autograder validate`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from autograder.commands.display import add_row, make_table, print_table
from autograder.errors import AutograderError
from autograder.project import Assignment, find_root, list_assignments, load_assignment


def chosen(names: Sequence[str]) -> list[Assignment]:
    """The assignments named, or all; raises `AutograderError` when there are none."""
    root = find_root()
    known = list_assignments(root)
    if not (names or known):
        raise AutograderError(f"{root / 'assignments'}: no assignments there")
    return [load_assignment(name, root) for name in (names or known)]


def list_all() -> int:
    """Prints every assignment's questions with their points and number of cases."""
    from autograder.catalogue import collect_cases

    for assignment in chosen(()):
        counts = [case.question for case in collect_cases(assignment)]
        click.echo(f"{assignment.name}: {assignment.title} ({assignment.possible:g} points)")
        table = make_table("question", "points", "cases", "title", right={"points", "cases"})
        for question in assignment.questions:
            add_row(table, question.id, f"{question.points:g}", counts.count(question.id), question.title)
        print_table(table)
        click.echo()
    return 0


def build(names: Sequence[str], check: bool) -> int:
    """Builds the releases and the Otter archives, or says what in `student/` is out of date."""
    from autograder.build import build_release, stale_files

    if check:
        stale = [f"{path}" for assignment in chosen(names) for path in stale_files(assignment)]
        for path in stale:
            click.echo(f"out of date: {path}", err=True)
        if stale:
            click.echo("autograder: run `autograder build` and commit student/", err=True)
        return 1 if stale else 0
    from autograder.build.archive import build_archive
    from autograder.build.release import student_folder

    for assignment in chosen(names):
        build_release(assignment)
        click.echo(f"{assignment.name}: {student_folder(assignment)}")
        click.echo(f"{assignment.name}: {build_archive(assignment)}")
    return 0


def validate(names: Sequence[str], repeat: int, every: int) -> int:
    """Proves the grading of each assignment; returns 1 when a proof fails."""
    from autograder.validate import validate as prove

    outcomes = [prove(assignment, repeat=repeat, every=every) for assignment in chosen(names)]
    return 0 if all(outcomes) else 1
