"""What runs in each grader process: one sandbox, opened once, and one submission after another."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import time
from dataclasses import dataclass
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING, Any

from autograder.errors import AutograderError, UnreadableSubmission
from autograder.notebook import read_notebook
from autograder.plaintext import one_line
from autograder.project import Assignment
from autograder.results import Result

if TYPE_CHECKING:
    from autograder.isolation import Sandbox

ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Task:
    """One submission on its way to a grader process."""

    assignment: Assignment
    isolation: str
    submission: str
    filename: str
    sha256: str
    data: bytes
    reason: str = ""


_open: tuple[tuple[str, str], Sandbox, contextlib.ExitStack] | None = None

_one_at_a_time = threading.Lock()  # a Dask worker may have several threads


def prepare() -> None:
    """Runs first in each process: Ctrl-C is the main process's business, which ends this one if it must.

    A handler and not SIG_IGN, which the sandbox, and students' code in it, would inherit.
    """
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, _end_now)
    os.environ.update(ENVIRONMENT)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    # Finalizers run at the ordinary end of a child process, where atexit may not.
    Finalize(None, _close, exitpriority=100)


def _end_with(parent: int) -> None:
    """Ends this process, and the sandbox, when the main process was killed and could not do so itself."""
    while os.getppid() == parent:
        time.sleep(1)
    _end_now()


def _end_now(*_: Any) -> None:
    """Takes the sandbox down tidily, its folders included, whatever is under way."""
    _close()
    os._exit(1)


def grade_one(task: Task) -> Result:
    """Grades one submission; what is wrong with it, or goes wrong on it, ends up in its result.

    Raises only `AutograderError`: an assignment or a sandbox with which nothing can be graded.
    """
    if task.reason:
        return refuse(task)
    with _one_at_a_time:
        try:
            return _graded(task)
        finally:
            free_cycles()


def free_cycles() -> None:
    """Frees the cycles that a run of pytest leaves, so that a class of any size takes the same memory.

    The libraries' hundreds of thousands of objects are set aside after the first submission: looking through them
    again each time would cost more than the grading.
    """
    gc.collect()
    if not gc.get_freeze_count():
        gc.freeze()


def _graded(task: Task) -> Result:
    from autograder.grading import grade_notebook

    try:
        notebook = read_notebook(task.data, task.filename)
        sandbox = _sandbox(task)
        return grade_notebook(
            task.assignment, notebook, submission=task.submission, sha256=task.sha256, sandbox=sandbox
        )
    except UnreadableSubmission as unreadable:
        return refuse(task, str(unreadable))
    except AutograderError:
        _close()
        raise
    except Exception as error:  # a fault of the grader's: it must not take the class down with it
        _close()
        return refuse(task, f"the grader itself failed on it ({one_line(f'{type(error).__name__}: {error}', 200)})")


def refuse(task: Task, reason: str = "") -> Result:
    """The result of a submission that is not graded."""
    from autograder.grading import ungradable

    return ungradable(task.assignment, submission=task.submission, sha256=task.sha256, reason=reason or task.reason)


def _sandbox(task: Task) -> Sandbox:
    global _open
    from autograder.isolation import open_sandbox

    wanted = (task.isolation, str(task.assignment.folder))
    if _open is None or _open[0] != wanted:
        _close()
        stack = contextlib.ExitStack()
        _open = (wanted, stack.enter_context(open_sandbox(task.isolation, task.assignment)), stack)
    return _open[1]


def _close(*_: Any) -> None:
    global _open
    if _open is not None:
        stack, _open = _open[2], None
        with contextlib.suppress(Exception):
            stack.close()
