"""Limits and identity of a worker process, applied by itself before any student code runs."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

FIXED_LIMITS = {
    "RLIMIT_CORE": 0,
    "RLIMIT_FSIZE": 256 << 20,
    "RLIMIT_NOFILE": 512,
    "RLIMIT_MEMLOCK": 0,
    "RLIMIT_MSGQUEUE": 0,
}

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38


def prctl(option: int, value: int) -> None:
    """Linux `prctl`; raises OSError when the kernel refuses, does nothing elsewhere."""
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")


def address_space() -> int:
    """Bytes of address space this process has mapped; 0 where /proc does not tell."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return 0


def apply_limits(memory_bytes: int, processes: int) -> None:
    """Sets the limits of one submission's processes; each may map `memory_bytes` beyond what it has now."""
    for name, value in FIXED_LIMITS.items():
        if hasattr(resource, name):  # not every system knows every limit
            resource.setrlimit(getattr(resource, name), (value, value))
    if mapped := address_space():
        limit = mapped + memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))


def limit_cpu(seconds: float, hard: bool) -> None:
    """Lets the process use about `seconds` more of CPU; then SIGXCPU ends it (and SIGKILL, with `hard`)."""
    used = sum(os.times()[:2])
    soft = int(used + seconds) + 1
    ceiling = soft + 1 if hard else resource.RLIM_INFINITY
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, ceiling))


def first_victim_when_memory_is_short() -> None:
    """Asks the kernel to end this process before any other when memory runs out."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def become(uid: int) -> None:
    """Gives up root for good: all ids become `uid`, no supplementary groups, no new privileges."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if os.getresuid() != (uid, uid, uid) or os.getgroups():
        raise OSError("the worker could not give up its rights")
