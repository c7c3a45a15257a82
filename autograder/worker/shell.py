"""Runs a notebook's cells one by one, as Jupyter would, in IPython's InteractiveShell."""

from __future__ import annotations

import builtins
import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell

from autograder.worker.exceptions import describe
from autograder.worker.output import BoundedOutput, TooMuchOutput

MOST_PRINTED = 4 << 20
FRONT_END_MAGICS = ("matplotlib", "gui", "pylab")
EXTENSION_MAGICS = ("load_ext", "reload_ext", "config")


class OutOfTime(BaseException):
    """Raised in a cell that has used up its time."""


class CellShell:
    """An IPython shell without history, terminal or display, whose output is kept up to a bound."""

    def __init__(self) -> None:
        from IPython.core.history import HistoryManager

        HistoryManager.enabled = False  # type: ignore[assignment]
        self.shell: InteractiveShell = InteractiveShell.instance(colors="nocolor")
        self.shell.showtraceback = _silent  # type: ignore[method-assign]
        self.shell.showsyntaxerror = _silent  # type: ignore[method-assign]
        # IPython 9 keeps every exception's formatted traceback in the history: up to seconds, read by nobody here;
        vars(self.shell)["_format_exception_for_storage"] = lambda *_, **__: {}
        # and a copy of everything printed, without bound.
        vars(self.shell)["_tee"] = lambda channel: contextlib.nullcontext()
        vars(self.shell)["ask_exit"] = sys.exit
        self._forgive_magics()

    @property
    def namespace(self) -> dict[str, Any]:
        names: dict[str, Any] = self.shell.user_ns
        return names

    def _forgive_magics(self) -> None:
        """Magics for a front end that is not here do nothing, so the rest of their cell still runs."""
        magics = self.shell.magics_manager.magics["line"]
        for name in FRONT_END_MAGICS:
            magics[name] = _nothing
        for name in EXTENSION_MAGICS:
            magics[name] = _forgiving(magics[name])
        run = self.shell.run_line_magic

        def run_line_magic(magic_name: str, line: str, _stack_depth: int = 1) -> Any:
            try:
                return run(magic_name, line, _stack_depth=_stack_depth + 1)
            except UsageError as error:
                if "not found" not in str(error):
                    raise
                print(f"(%{magic_name} is not available while grading)")
                return None

        self.shell.run_line_magic = run_line_magic  # type: ignore[method-assign]

    def capture(self, kept: int) -> BoundedOutput:
        """Sends everything printed from now on to a bounded buffer."""
        output = BoundedOutput(kept, MOST_PRINTED)
        sys.stdout = sys.stderr = output
        builtins.input = _no_input
        return output

    def run(self, source: str, cpu_seconds: float, wall_seconds: float) -> tuple[str, str]:
        """Runs one cell; returns its outcome (`ok`, `raised`, `syntax`, `exited`, `timeout`) and a message."""
        try:
            with time_limit(cpu_seconds, wall_seconds):
                result = self.shell.run_cell(magic_first(source), store_history=True)
        except OutOfTime:
            return "timeout", _out_of_time(cpu_seconds)
        except BaseException as error:
            return "raised", describe(error)
        finally:
            close_figures()
        return self._outcome(result, cpu_seconds)

    def _outcome(self, result: ExecutionResult, cpu_seconds: float) -> tuple[str, str]:
        if (error := result.error_before_exec) is not None:
            return "syntax", describe(error)
        error = result.error_in_exec
        match error:
            case None:
                return "ok", ""
            case OutOfTime():
                return "timeout", _out_of_time(cpu_seconds)
            case SystemExit():
                return "exited", "the cell ended Python with exit() or sys.exit(); grading went on after it"
            case SyntaxError():
                return "syntax", describe(error)
            case TooMuchOutput():
                return "raised", str(error)
        return "raised", describe(error)


def magic_first(source: str) -> str:
    """Drops comments and blank lines before a cell magic, which Jupyter front ends let pass in places."""
    lines = source.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.strip() and not line.lstrip().startswith("#"):
            return "".join(lines[number:]) if line.startswith("%%") else source
    return source


@contextlib.contextmanager
def time_limit(cpu_seconds: float, wall_seconds: float) -> Iterator[None]:
    """Raises `OutOfTime` in the block after so much CPU or wall-clock time, and again while it is swallowed."""

    def out_of_time(*_: int | FrameType | None) -> None:
        raise OutOfTime

    signals = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
    before = {number: signal.signal(number, out_of_time) for number in signals}
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds, 0.5)
    signal.setitimer(signal.ITIMER_REAL, wall_seconds, 0.5)
    try:
        yield
    finally:
        for timer in signals.values():
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def close_figures() -> None:
    """Closes Matplotlib's figures, as Jupyter's inline backend does after each cell."""
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        with contextlib.suppress(Exception):
            pyplot.close("all")


def _out_of_time(cpu_seconds: float) -> str:
    return f"stopped after {cpu_seconds:g} s: an endless loop, or far too much work for one cell"


def _silent(*_: Any, **__: Any) -> None:
    """Stands in for IPython's printing of tracebacks: the result carries the exception."""


def _nothing(line: str = "", *_: Any) -> None:
    """Stands in for a magic that has nothing to do here."""


def _forgiving(magic: Any) -> Any:
    def run(line: str = "") -> None:
        with contextlib.suppress(Exception):
            magic(line)

    return run


def _no_input(prompt: object = "") -> str:
    raise EOFError("input() has nobody to ask while grading")
