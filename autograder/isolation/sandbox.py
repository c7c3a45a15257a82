"""A sandbox and its warm parent: opened once per grader process, lent to one submission at a time."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from typing import Any

from autograder.errors import IsolationUnavailable
from autograder.isolation.launch import START_SECONDS, Launched, launch, unused_uid
from autograder.isolation.memory import MemoryKeeper
from autograder.project import Assignment
from autograder.worker.frames import receive_frame, send_frame

MODES = ("auto", "bwrap", "uid", "none")
ANSWER_SECONDS = 20.0
MOST_ANSWER = 64 << 10
PROCESSES = 128
NO_BWRAP = (
    "bubblewrap cannot start here ({why}); ways out: enable user namespaces or your distribution's AppArmor profile "
    "for bwrap, run as root, grade in containers with `otter grade`, or, for code you trust, --isolation none"
)


class WarmParentLost(Exception):
    """The warm parent did not answer, or said that something is odd; it is replaced."""


class Sandbox:
    """One warm parent under one kind of confinement. Use as a context manager."""

    def __init__(self, mode: str, assignment: Assignment) -> None:
        self.mode = mode
        self.assignment = assignment
        self.launched: Launched | None = None
        self.warm_pid = 0
        self.uids = 0
        self.replaced = 0
        self.start()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def in_force(self) -> list[str]:
        """What confines a worker in this sandbox, in words for the result."""
        layers = [f"mode {self.mode}"]
        if self.mode == "bwrap":
            layers += ["namespaces: mount, pid, network, ipc, uts" + ("" if os.geteuid() == 0 else ", user")]
            layers += ["no network", "read-only system, project hidden"]
        if self.drops_uid:
            layers += ["uid of its own, no capabilities"]
        elif self.mode == "bwrap":
            layers += ["no capabilities, non-dumpable parent"]
        layers += ["limits: address space, processes, files, CPU", "memory keeper"]
        if self.mode == "uid":
            layers += ["network and file system: as the container's"]
        if self.mode == "none":
            layers += ["NOT ISOLATED: limits only"]
        return layers

    @property
    def drops_uid(self) -> bool:
        """Whether each submission gets a uid of its own."""
        return self.mode in ("bwrap", "uid") and hasattr(os, "geteuid") and os.geteuid() == 0

    def start(self) -> None:
        """Starts the warm parent and waits until its libraries are loaded."""
        self.launched = launch(self.mode, self.assignment)
        self.launched.control.settimeout(START_SECONDS)
        try:
            answer = self._answer()
        except (OSError, ValueError, EOFError):
            with contextlib.suppress(Exception):
                self.launched.process.wait(timeout=1)
            why = self.launched.last_words() or "it did not start"
            self.close()
            raise IsolationUnavailable(f"isolation {self.mode!r} cannot be had: {why}") from None
        self.warm_pid = int(answer["pid"])

    def _answer(self) -> Any:
        assert self.launched is not None
        frame = receive_frame(self.launched.control, MOST_ANSWER)
        if frame is None:
            raise EOFError("the warm parent has ended")
        return json.loads(frame[0])

    def close(self) -> None:
        """Ends the warm parent and whatever is left in its sandbox."""
        if self.launched is not None:
            self.launched.close()
            self.launched = None

    def replace(self) -> None:
        """Ends this warm parent and starts another."""
        self.close()
        self.replaced += 1
        self.start()

    def ask(self, seconds: float = ANSWER_SECONDS, descriptor: int | None = None, **command: Any) -> dict[str, Any]:
        """One command to the warm parent and its answer; raises WarmParentLost."""
        if self.launched is None:
            raise WarmParentLost("closed")
        control = self.launched.control
        control.settimeout(seconds)
        try:
            send_frame(control, json.dumps(command).encode(), [] if descriptor is None else [descriptor])
            answer = self._answer()
        except (OSError, ValueError, EOFError) as error:
            raise WarmParentLost(str(error)) from None
        if not isinstance(answer, dict) or answer.get("odd"):
            raise WarmParentLost(str(answer)[:300])
        return answer

    def fork(self) -> ForkedWorker:
        """A fresh worker process for a submission; replaces the warm parent once when it is not fit."""
        try:
            return self._fork()
        except WarmParentLost:
            self.replace()
        try:
            return self._fork()
        except WarmParentLost as error:
            raise IsolationUnavailable(f"isolation {self.mode!r}: a worker cannot be started: {error}") from None

    def _fork(self) -> ForkedWorker:
        assert self.launched is not None
        limits = self.assignment.limits
        uid = None
        if self.drops_uid:
            self.uids += 1
            uid = unused_uid(self.uids)
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with there:
                answer = self.ask(
                    descriptor=there.fileno(),
                    do="fork",
                    uid=uid,
                    memory_mb=limits.memory_mb,
                    processes=PROCESSES,
                    output_kb=limits.output_kb,
                    folder=str(self.launched.scratch / "submission"),
                    handed_out=self.launched.handed_out,
                )
            here.settimeout(ANSWER_SECONDS)
            if here.recv(1) != b"R":
                raise WarmParentLost(self.launched.last_words())
        except (OSError, WarmParentLost) as error:
            here.close()
            raise WarmParentLost(str(error)) from None
        return ForkedWorker(self, here, int(answer["pid"]), uid)

    def clean(self, uid: int | None) -> None:
        """Ends what is left of a submission and empties its scratch space; replaces a parent that cannot."""
        try:
            self.ask(do="clean", uid=uid)
        except WarmParentLost:
            self.replace()


class ForkedWorker:
    """A submission's process as seen from here: requests with a fresh channel each."""

    def __init__(self, sandbox: Sandbox, control: socket.socket, pid: int, uid: int | None) -> None:
        self.sandbox, self.control, self.pid, self.uid = sandbox, control, pid, uid
        self.settled: list[int] = []
        assert sandbox.launched is not None
        limit = sandbox.assignment.limits.memory_mb << 20
        self.keeper: MemoryKeeper | None = None
        if sys.platform.startswith("linux"):
            self.keeper = MemoryKeeper(sandbox.launched.process.pid, limit, sandbox.warm_pid, pid)
            self.keeper.start()

    def request(self, payload: bytes, seconds: float) -> socket.socket:
        """Sends a request; returns the channel its reply will come on. Raises OSError when the process is gone."""
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.control.settimeout(seconds)
        try:
            send_frame(self.control, payload, [there.fileno()])
        except BaseException:
            here.close()
            raise
        finally:
            there.close()
        return here

    def end_strays(self) -> None:
        """Ends whatever the submission runs beyond its own process and what its cells left running."""
        self.sandbox.ask(do="kill", keep=[self.pid, *self.settled], uid=self.uid)

    def note_settled(self) -> None:
        """Remembers what the cells left running: it belongs to the notebook's state."""
        self.settled = [pid for pid in self.sandbox.ask(do="pids")["pids"] if pid != self.pid]

    @property
    def memory_ended(self) -> int:
        """How many processes the keeper has ended so far."""
        return self.keeper.ended if self.keeper else 0

    def close(self) -> None:
        """Ends the submission's processes."""
        if self.keeper:
            self.keeper.stop()
        self.control.close()
        self.sandbox.clean(self.uid)


def open_sandbox(mode: str, assignment: Assignment) -> Sandbox:
    """Opens a sandbox. `auto` takes bwrap, else (as root) uid, and never `none`.

    Raises IsolationUnavailable, one line, when the mode asked for cannot be had.
    """
    if mode not in MODES:
        raise IsolationUnavailable(f"no isolation {mode!r}; there are: {', '.join(MODES)}")
    if mode in ("uid",) and os.geteuid() != 0:
        raise IsolationUnavailable("isolation 'uid' needs root: it gives each submission a uid of its own")
    if mode == "none" or mode == "uid":
        return Sandbox(mode, assignment)
    try:
        return Sandbox("bwrap", assignment)
    except IsolationUnavailable as error:
        why = str(error).removeprefix("isolation 'bwrap' cannot be had: ")
        if mode == "auto" and os.geteuid() == 0:
            return Sandbox("uid", assignment)
        raise IsolationUnavailable(NO_BWRAP.format(why=why)) from None
