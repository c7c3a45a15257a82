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
    """Looks every 50 ms at the processes below `top`; above the limit it ends them.

    Pids are as the sandbox numbers them: the warm parent is spared, the notebook's own process goes last.
    """

    def __init__(self, top: int, limit: int, warm: int) -> None:
        super().__init__(name="memory-keeper", daemon=True)
        self.top, self.limit, self.warm = top, limit, warm
        self.spared: set[int] = {1, warm}
        self.last_resort: int | None = None
        self.ended = 0
        self.host_warm = 0
        self.namespace = ""
        self.stopped = threading.Event()

    def run(self) -> None:
        rounds = 0
        base = 0
        while not self.stopped.wait(PERIOD):
            rounds += 1
            pids = [self.top, *tree(self.top)]
            self.end_namespaces(pids)
            private = {pid: private_bytes(pid) for pid in pids}
            if not base:
                base = next((private[pid] for pid in pids if pid_inside(pid) == self.warm), 0)
            if not base:
                continue
            upper = sum(max(0, size - base) for size in private.values())
            if rounds % MEMFD_EVERY == 0:
                upper += memfd_bytes(pids)
            if upper > self.limit:
                self.look_closely(pids)

    def end_namespaces(self, pids: list[int]) -> None:
        """Ends what has made a user namespace of its own: in it, it could mount memory that nobody counts."""
        own = {pid: pid_inside(pid) for pid in pids} if not self.namespace else {}
        for pid, inside in own.items():
            if inside == self.warm:
                self.host_warm, self.namespace = pid, user_namespace(pid)
        for pid in tree(self.host_warm) if self.namespace else ():
            if user_namespace(pid) not in ("", self.namespace):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                    self.ended += 1

    def look_closely(self, pids: list[int]) -> None:
        """Sums proportional set sizes, and acts when even that is above the limit."""
        own = {pid: pid_inside(pid) for pid in pids}
        sizes = {pid: proportional_bytes(pid) for pid in pids if own[pid] not in self.spared}
        if sum(sizes.values()) + memfd_bytes(list(sizes)) <= self.limit:
            return
        for pid in [pid for pid in sizes if own[pid] != self.last_resort] or list(sizes):
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
