"""A notebook running in a sandbox: its cells, then probes against what they left; crashes are replayed."""

from __future__ import annotations

import contextlib
import pickle
import re
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from autograder.isolation.observation import Malformed, Reply, decode_reply, read_header
from autograder.isolation.sandbox import ForkedWorker, Sandbox, WarmParentLost
from autograder.probes import PackedProbe
from autograder.project import Limits
from autograder.results import Cell, CellOutcome
from autograder.worker.encode import HEADER

MOST_RESTARTS = 12
GRACE_SECONDS = 3.0
PING_SECONDS = 5.0

CELL_OUTCOMES: tuple[CellOutcome, ...] = ("ok", "raised", "syntax", "exited", "timeout")
OUT_OF_MEMORY = re.compile(r"^MemoryError|annot allocate memory|can't allocate memory|Unable to allocate|bad_alloc")
AGAIN = "the notebook's process ended again and again"
MEMORY = "used more memory than a submission may"


class CodeCellLike(Protocol):
    """What the runner needs of a cell."""

    @property
    def index(self) -> int: ...
    @property
    def source(self) -> str: ...


@dataclass(frozen=True)
class Lost:
    """No reply to a probe: `outcome` is `timeout`, `crashed` or `error`; `why` is for the instructor."""

    outcome: str
    why: str


class NotebookRun:
    """Runs one submission's cells in order, then answers probes. Use as a context manager."""

    def __init__(self, sandbox: Sandbox, cells: Sequence[CodeCellLike], limits: Limits) -> None:
        self.sandbox, self.cells, self.limits = sandbox, cells, limits
        self.deadline = time.monotonic() + limits.submission_seconds
        self.outcomes: dict[int, Cell] = {}
        self.fatal: set[int] = set()
        self.notes: list[str] = []
        self.restarts = 0
        self.worker: ForkedWorker | None = None

    def __enter__(self) -> NotebookRun:
        self.run_cells()
        return self

    def __exit__(self, *_: object) -> None:
        self.drop_worker()

    @property
    def cell_results(self) -> list[Cell]:
        """What became of each cell, in notebook order."""
        return [self.outcomes[cell.index] for cell in self.cells if cell.index in self.outcomes]

    def drop_worker(self) -> None:
        """Ends the process that holds the notebook's state."""
        if self.worker is not None:
            self.worker.close()
            self.worker = None

    def run_cells(self) -> None:
        """Runs every cell; one that takes the process down is left out of the replay that follows."""
        while not self._run_through():
            self.drop_worker()
            self.restarts += 1

    def _run_through(self) -> bool:
        self.drop_worker()
        self.worker = self.sandbox.fork()
        for cell in self.cells:
            if cell.index in self.fatal:
                continue
            if time.monotonic() > self.deadline or self.restarts > MOST_RESTARTS:
                self.outcomes.setdefault(cell.index, Cell(cell.index, "not run", "the notebook's time was used up"))
                continue
            result = self._run_cell(cell)
            self.outcomes[cell.index] = result
            if result.outcome == "crashed" or cell.index in self.fatal:
                self.fatal.add(cell.index)
                return False
        return self._settle()

    def _run_cell(self, cell: CodeCellLike) -> Cell:
        cpu, wall = self.limits.cell_seconds, self.limits.cell_seconds * self.limits.WALL_FACTOR
        request = {"do": "cell", "source": cell.source, "cpu_seconds": cpu, "wall_seconds": wall}
        started = time.monotonic()
        reply = self._exchange(request, cpu, wall + GRACE_SECONDS)
        if isinstance(reply, Lost):
            self.fatal.add(cell.index)
            if reply.outcome == "timeout":
                return Cell(cell.index, "timeout", f"stopped after {time.monotonic() - started:.0f} s, and left out")
            return Cell(cell.index, "crashed", f"ended the whole process ({reply.why}); the others ran without it")
        outcome = reply.facts.get("outcome")
        message = reply.facts.get("message")
        if reply.kind != "cell" or outcome not in CELL_OUTCOMES or not isinstance(message, str):
            return Cell(cell.index, "raised", "the cell interfered with the grading process")
        if outcome == "raised" and OUT_OF_MEMORY.search(message):
            self.fatal.add(cell.index)  # what it filled would stay filled: the others get a process without it
        return Cell(cell.index, outcome, message)

    def _settle(self) -> bool:
        reply = self._exchange({"do": "settle"}, PING_SECONDS, PING_SECONDS)
        assert self.worker is not None
        with contextlib.suppress(WarmParentLost):
            self.worker.note_settled()
        if isinstance(reply, Reply) and isinstance(notes := reply.facts.get("notes"), list):
            self.notes = [note[:200] for note in notes[:20]]
            return True
        return self.restarts > MOST_RESTARTS

    def observe(
        self, packed: PackedProbe, *, seconds: float, forbid: Sequence[str] = (), part: str | None = None
    ) -> Reply | Lost:
        """Runs a packed probe (or one part of it alone) in a fork of the notebook's process; `seconds` of CPU."""
        if time.monotonic() > self.deadline:
            return Lost("timeout", "the submission's whole time was used up")
        wall = seconds * self.limits.WALL_FACTOR + GRACE_SECONDS
        request = {
            "do": "probe",
            "probe": packed.probe,
            "inputs": packed.inputs,
            "seed": packed.seed,
            "cpu_seconds": seconds,
            "forbid": list(forbid),
            "part": part,
        }
        reply = self._exchange(request, seconds, wall)
        if isinstance(reply, Lost) and not self._recover() and reply.outcome == "crashed":
            # The notebook's process is gone, too: it may have ended by itself. A probe that ends it does so again.
            reply = self._exchange(request, seconds, wall)
            if isinstance(reply, Lost):
                self._recover()
        return reply

    def _recover(self) -> bool:
        """After a lost probe: ends what it left; False when the notebook's process is gone or deaf, and was dropped."""
        try:
            if self.worker is not None:
                self.worker.end_strays()
                if isinstance(self._exchange({"do": "settle"}, PING_SECONDS, PING_SECONDS), Reply):
                    return True
        except WarmParentLost:
            pass
        self.drop_worker()
        return False

    def _restart(self) -> None:
        self.restarts += 1
        if self.restarts <= MOST_RESTARTS:
            self.run_cells()
        if self.restarts > MOST_RESTARTS:
            self.drop_worker()

    def _exchange(self, request: dict[str, Any], cpu: float, wall: float) -> Reply | Lost:
        if self.worker is None:
            self._restart()
        if self.worker is None:
            return Lost("crashed", AGAIN)
        worker, ended_before = self.worker, self.worker.memory_ended
        deadline = time.monotonic() + wall
        started = time.monotonic()
        try:
            channel = worker.request(pickle.dumps(request), wall)
        except OSError:
            return Lost("crashed", "the process had ended")
        with channel:
            reply = read_reply(channel, deadline)
        if isinstance(reply, Reply) or reply.outcome == "timeout":
            if isinstance(reply, Lost):
                with contextlib.suppress(WarmParentLost):
                    worker.end_strays()
            return reply
        if worker.memory_ended > ended_before:
            return Lost("crashed", MEMORY)
        if reply.outcome == "crashed" and time.monotonic() - started >= cpu:
            return Lost("timeout", f"ended after {cpu:g} s of CPU")
        return reply


def read_reply(channel: socket.socket, deadline: float) -> Reply | Lost:
    """One whole reply before the deadline, or what was lost: the end of file is a crash, the deadline a timeout."""
    try:
        header = _receive(channel, HEADER.size, deadline)
        document, arrays = read_header(header)
        return decode_reply(header + _receive(channel, document + arrays, deadline))
    except TimeoutError:
        return Lost("timeout", "no reply before the deadline")
    except (EOFError, ConnectionError):
        return Lost("crashed", "the process ended without a reply")
    except Malformed as error:
        return Lost("error", f"the reply cannot be read: {error}")


def _receive(channel: socket.socket, count: int, deadline: float) -> bytes:
    received = bytearray()
    while len(received) < count:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        channel.settimeout(left)
        part = channel.recv(min(count - len(received), 1 << 20))
        if not part:
            raise EOFError
        received += part
    return bytes(received)
