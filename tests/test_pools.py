"""Running tasks when executors break: nothing is lost, and only the one to blame is given up."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool

import pytest

from autograder.errors import AutograderError
from autograder.pools import DIED, run_all

Work = Callable[[str], str]


class FakeExecutor(Executor):
    """Breaks on a task named `die`, which loses all that were submitted before and are unfinished."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.unfinished: list[Future[str]] = []
        self.stopped: list[bool] = []

    def submit(self, work: Work, task: str) -> Future[str]:  # type: ignore[override]
        future: Future[str] = Future()
        if task == "die":
            future.set_exception(BrokenProcessPool())
        elif task == "slow" and self.workers > 1:
            self.unfinished.append(future)
        else:
            try:
                future.set_result(work(task))
            except Exception as error:
                future.set_exception(error)
        return future


class FakePool:
    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.started: list[FakeExecutor] = []

    def start(self, workers: int) -> FakeExecutor:
        self.started.append(FakeExecutor(workers))
        return self.started[-1]

    def stop(self, executor: FakeExecutor, *, at_once: bool) -> None:
        executor.stopped.append(at_once)


def outcomes(pool: FakePool, *tasks: str, work: Work = str.upper) -> list[str]:
    makers = [lambda task=task: task for task in tasks]
    return list(run_all(pool, work, makers, failed=lambda task, reason: f"{task}: {reason}"))  # type: ignore[arg-type]


def test_what_was_under_way_with_the_one_to_blame_is_done_again() -> None:
    pool = FakePool(3)
    assert sorted(outcomes(pool, "slow", "die", "a", "b")) == ["A", "B", "SLOW", f"die: {DIED}"]


def test_all_may_die() -> None:
    assert outcomes(FakePool(2), *["die"] * 5) == [f"die: {DIED}"] * 5


def test_every_executor_is_stopped_once() -> None:
    pool = FakePool(2)
    outcomes(pool, "a", "die", "b")
    assert all(len(executor.stopped) == 1 for executor in pool.started)
    assert pool.started[-1].stopped == [False]


def test_a_task_that_cannot_be_carried_out_is_given_up() -> None:
    def work(task: str) -> str:
        raise TypeError("no such thing")

    assert outcomes(FakePool(1), "a", work=work) == [
        "a: its grading could not be carried out (TypeError: no such thing)"
    ]


def test_an_error_of_the_users_ends_everything() -> None:
    def work(task: str) -> str:
        raise AutograderError("no sandbox")

    pool = FakePool(1)
    with pytest.raises(AutograderError):
        outcomes(pool, "a", "b", work=work)
    assert pool.started[-1].stopped == [True]


def test_nothing_to_do_starts_nothing() -> None:
    pool = FakePool(2)
    assert outcomes(pool) == []
    assert pool.started == []
