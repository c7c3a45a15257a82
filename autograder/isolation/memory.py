"""The keeper: watches what one sandbox's processes use together, and ends them when it is too much.

RLIMIT_AS bounds each process; only a look from outside sees their sum, shared memory and memfds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path

PERIOD = 0.05
MEMFD_EVERY = 10


class MemoryKeeper(threading.Thread):
    """Looks every 50 ms at the processes below a sandbox's warm parent; above the limit it ends them.

    `top` is the process that was started here, `warm` and `last_resort` are pids as the sandbox numbers them: the
    warm parent, and the notebook's own process, which goes last.
    """

    def __init__(self, top: int, limit: int, warm: int, last_resort: int) -> None:
        super().__init__(name="memory-keeper", daemon=True)
        self.top, self.limit, self.warm, self.last_resort = top, limit, warm, last_resort
        self.ended = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        parent = next((pid for pid in [self.top, *tree(self.top)] if pid_inside(pid) == self.warm), None)
        if parent is None:
            return
        inherited, namespace = private_bytes(parent), user_namespace(parent)
        rounds = 0
        while not self.stopped.wait(PERIOD):
            rounds += 1
            pids = tree(parent)
            # In a user namespace of its own a process could mount memory that nobody counts.
            self.end([pid for pid in pids if user_namespace(pid) not in ("", namespace)])
            upper = sum(max(0, private_bytes(pid) - inherited) for pid in pids)
            if rounds % MEMFD_EVERY == 0:
                upper += memfd_bytes(pids)
            if upper > self.limit:
                self.look_closely(pids)

    def look_closely(self, pids: list[int]) -> None:
        """Sums proportional set sizes, and acts when even that is above the limit."""
        if sum(map(proportional_bytes, pids)) + memfd_bytes(pids) > self.limit:
            self.end([pid for pid in pids if pid_inside(pid) != self.last_resort] or pids)

    def end(self, pids: list[int]) -> None:
        """Ends these processes."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                self.ended += 1

    def stop(self) -> None:
        """Ends the watch."""
        self.stopped.set()
        self.join()


def tree(top: int) -> list[int]:
    """A process's descendants, from the kernel's own lists of children; empty where it keeps none."""
    found, waiting = [], [top]
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError, ValueError):
            for task in os.listdir(f"/proc/{pid}/task"):
                children = [int(child) for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
                found += children
                waiting += children
    return found


def private_bytes(pid: int) -> int:
    """Anonymous and shared memory of a process, without mapped files; 0 when it has gone.

    A fork maps all of its parent's anonymous memory from the start, but files only as it touches them.
    """
    total = 0
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(("RssAnon:", "RssShmem:")):
                total += int(line.split()[1]) << 10
    return total


def proportional_bytes(pid: int) -> int:
    """Memory of a process with shared pages divided among their users; its private memory where that is closed."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    except (OSError, IndexError, ValueError):
        pass
    return private_bytes(pid)


def memfd_bytes(pids: list[int]) -> int:
    """Memory held in memfds, which no process's resident size need show."""
    total, seen = 0, set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    path = f"/proc/{pid}/fd/{name}"
                    if os.readlink(path).startswith("/memfd:"):
                        status = os.stat(path)
                        if status.st_ino not in seen:
                            seen.add(status.st_ino)
                            total += status.st_blocks * 512
    return total


def pid_inside(pid: int) -> int:
    """The pid under which the innermost namespace knows a process; 0 when it has gone."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    except (OSError, ValueError):
        pass
    return 0


def user_namespace(pid: int) -> str:
    """The name of a process's user namespace; empty when it has gone or may not be asked."""
    try:
        return os.readlink(f"/proc/{pid}/ns/user")
    except OSError:
        return ""
