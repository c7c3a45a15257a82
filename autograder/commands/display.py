"""Progress and tables on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from autograder.plaintext import one_line
from autograder.results import Result, round_points

_NOT_TERMINAL_WIDTH = 160


class Progress:
    """Counts results on stderr: a bar on a terminal, else a line for each."""

    def __init__(self, total: int, what: str) -> None:
        self._total = total
        self._count = 0
        self._bar: Bar | None = None
        if sys.stderr.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(what, total=total)

    def advance(self, result: Result) -> None:
        """One more result is there."""
        self._count += 1
        if self._bar is not None:
            self._bar.advance(self._task)
        else:
            mark = shown_points(result) if result.status == "graded" else f"ungradable: {one_line(result.reason)}"
            click.echo(f"[{self._count}/{self._total}] {result.submission}: {mark}", err=True)

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def shown_points(result: Result) -> str:
    return f"{round_points(result.points):g} / {round_points(result.possible):g}"


def marks_table(results: Sequence[Result]) -> Table:
    """A line for each submission: its points, and where it lost some or why it could not be graded."""
    table = make_table("submission", "points", "state", "remarks", right={"points"})
    for result in results:
        graded = result.status == "graded"
        remark = _lost(result) if graded else result.reason
        add_row(table, result.submission, shown_points(result) if graded else "-", result.status, remark)
    return table


def _lost(result: Result) -> str:
    lost = [
        f"{question.id} {round_points(question.points):g}/{round_points(question.possible):g}"
        for question in result.questions
        if question.points < question.possible
    ]
    return ", ".join(lost)


def make_table(*columns: str, right: frozenset[str] | set[str] = frozenset()) -> Table:
    """An empty table; text too long for its column is folded, never cut."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def add_row(table: Table, *cells: object) -> None:
    """Adds a row of text that may be anybody's: no markup, no control codes."""
    table.add_row(*(Text(one_line(cell)) for cell in cells))


def print_table(table: Table) -> None:
    """Prints to stdout; a file or pipe gets a wide table rather than one folded to eighty columns."""
    console = Console(file=sys.stdout)
    if console.is_terminal:
        console.print(table)
        return
    console = Console(file=sys.stdout, width=_NOT_TERMINAL_WIDTH)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())
