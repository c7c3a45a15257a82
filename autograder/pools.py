"""Runs tasks in grader processes, on this machine or on a Dask cluster; a process that dies costs one task."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from typing import Any, Protocol, TypeVar

from autograder.errors import AutograderError
from autograder.plaintext import one_line

Input = TypeVar("Input")
Output = TypeVar("Output")

END_SECONDS = 3
DIED = "the grader process died while grading it (killed, or out of memory)"


class Pool(Protocol):
    """Where tasks run."""

    workers: int

    def start(self, workers: int) -> Executor: ...

    def stop(self, executor: Executor, *, at_once: bool) -> None: ...


class LocalPool:
    """joblib's loky processes. loky itself and not `joblib.Parallel`, which gives up all tasks when a process dies."""

    def __init__(self, workers: int, initializer: Callable[[], None], environment: dict[str, str]) -> None:
        self.workers = workers
        self._initializer = initializer
        self._environment = environment

    def start(self, workers: int) -> Executor:
        from joblib.externals.loky import ProcessPoolExecutor

        executor: Executor = ProcessPoolExecutor(workers, initializer=self._initializer, env=self._environment)
        return executor

    def stop(self, executor: Executor, *, at_once: bool) -> None:
        if at_once:
            _ask_to_end()
        executor.shutdown(wait=True, kill_workers=at_once)  # type: ignore[call-arg]


def _ask_to_end() -> None:
    """Gives the grader processes a moment to take their sandboxes down before loky kills them."""
    import psutil

    graders = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if any("LokyProcess" in argument for argument in child.cmdline()):
                child.terminate()
                graders.append(child)
    psutil.wait_procs(graders, timeout=END_SECONDS)


class ClusterPool:
    """A Dask scheduler's workers, which need this project at the same path. Raises `AutograderError`."""

    def __init__(self, address: str) -> None:
        try:
            client_class = importlib.import_module("distributed").Client
        except ImportError:
            raise AutograderError("--cluster needs the package `distributed`: pip install distributed") from None
        try:
            self._client = client_class(address, timeout="10s")
        except Exception as error:  # a malformed address, no answer, another version
            line = one_line(error, 200)
            raise AutograderError(f"--cluster {address}: no Dask scheduler answers there ({line})") from None
        self.workers = max(1, len(self._client.scheduler_info(n_workers=-1)["workers"]))

    def start(self, workers: int) -> Executor:
        executor: Executor = self._client.get_executor(pure=False)
        return executor

    def stop(self, executor: Executor, *, at_once: bool) -> None:
        executor.shutdown(wait=not at_once)


def run_all(
    pool: Pool,
    work: Callable[[Input], Output],
    items: Sequence[Callable[[], Input]],
    *,
    failed: Callable[[Input, str], Output],
) -> Generator[Output, None, None]:
    """Yields the outcome of each task as it finishes; `items` make the tasks, each only when its turn has come.

    When a process dies, those that were under way are tried again one by one, so that only the one to blame is lost;
    `failed` makes its outcome, as that of a task that cannot be sent. `AutograderError` ends everything.
    """
    waiting = deque(items)
    suspects: deque[Input] = deque()
    pending: dict[Future[Output], Input] = {}
    executor: Executor | None = None
    alone = done = False
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
            while waiting or suspects or pending:
                if executor is not None and not pending and alone != bool(suspects):
                    pool.stop(executor, at_once=False)
                    executor = None
                if executor is None:
                    alone = bool(suspects)
                    executor = pool.start(1 if alone else pool.workers)
                broken = False
                while not broken and len(pending) < (1 if alone else pool.workers) and (suspects if alone else waiting):
                    task = suspects.popleft() if alone else waiting.popleft()()
                    try:
                        pending[executor.submit(work, task)] = task
                    except BrokenExecutor:
                        broken = True
                        suspects.append(task)
                finished = set() if broken else wait(pending, return_when=FIRST_COMPLETED).done
                for future in finished:
                    task = pending.pop(future)
                    try:
                        outcome = future.result()
                    except (BrokenExecutor, CancelledError):
                        broken = True
                        if alone:
                            yield failed(task, DIED)
                        else:
                            suspects.append(task)
                    except AutograderError:
                        raise
                    except Exception as error:  # could not be sent, or its result could not be read
                        yield failed(task, _reason(error))
                    else:
                        yield outcome
                if broken:
                    # The executor is lost, and with it all that it had; what had finished is done again.
                    suspects.extend(pending.values())
                    pending.clear()
                    pool.stop(executor, at_once=True)
                    executor = None
        done = True
    finally:
        if executor is not None:
            pool.stop(executor, at_once=not done)


def _reason(error: BaseException) -> str:
    if type(error).__name__ == "KilledWorker":
        return DIED
    return f"its grading could not be carried out ({one_line(f'{type(error).__name__}: {error}', 200)})"


def make_pool(jobs: int, cluster: str | None, initializer: Callable[[], Any], environment: dict[str, str]) -> Pool:
    """The pool that the command line asks for."""
    return ClusterPool(cluster) if cluster else LocalPool(max(1, jobs), initializer, environment)
