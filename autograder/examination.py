"""One submission under examination: a case's `compare` and `observe`, and the verdicts they end in."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from autograder.compare import Difference, differences
from autograder.errors import UnusableAssignment
from autograder.isolation import open_sandbox
from autograder.isolation.notebook_run import AGAIN, MEMORY, Lost, NotebookRun
from autograder.isolation.observation import Reply
from autograder.notebook import CodeCell, graded_cells, read_notebook
from autograder.probes import PackedProbe, pack
from autograder.project import Assignment
from autograder.reference import Reference, reference_of
from autograder.results import Outcome
from autograder.verdict import Verdict
from autograder.worker.exceptions import Raised

MOST_DIFFERENCES = 8
MEMORY_HINT = "It used more memory than a submission may: look for something that grows without end."
AGAIN_HINT = (
    "The notebook ended its own process again and again: look for what ends Python later, such as a thread or a timer."
)
EXIT_HINT = "It called exit() or sys.exit(), which ends Python: return the result instead."

LOST_HINTS = {
    "timeout": "It ran out of time: look for an endless loop, or for work that could be done once.",
    "crashed": "It ended the whole Python process: look for exit calls, native code, or memory that grows.",
    "error": "What it returned could not be read.",
}


class Examination:
    """What the cases of one submission ask, answered by its worker and by the reference."""

    def __init__(self, run: NotebookRun, reference: Reference) -> None:
        self.run = run
        self.reference = reference
        self.observations = 0
        self.alone = False
        self.shared = False
        self._replies: dict[tuple[str, tuple[str, ...], str | None], Reply | Lost] = {}

    def begin_case(self, *, alone: bool) -> None:
        """Forgets what the case before used. `alone`: parts of probes run in forks of their own."""
        self.alone, self.shared = alone, False

    def observe(
        self,
        probe: Callable[..., Any],
        inputs: tuple[Any, ...],
        *,
        seconds: float,
        forbid: tuple[str, ...] = (),
        part: str | None = None,
    ) -> Any:
        """The student's observation (or this part of it); raises `Verdict` when there is none.

        Asked twice, it runs once.
        """
        observed = self._observe(probe, pack(probe, inputs), seconds, forbid, question="", part=part)
        if part is not None and not _has_part(observed, part):
            raise Verdict("error", LOST_HINTS["error"], f"no part named {part!r}")
        found = _part(observed, part)
        if part is not None and isinstance(found, Raised):
            raise Verdict("error", f"It raised {found.message}", found.message)
        return found

    def compare(
        self,
        probe: Callable[..., Any],
        inputs: tuple[Any, ...],
        *,
        seconds: float,
        forbid: tuple[str, ...] = (),
        rtol: float | None = None,
        atol: float | None = None,
        question: str = "",
        part: str | None = None,
    ) -> None:
        """Runs the probe on both sides; raises `Verdict` unless the observations (or this part of them) agree."""
        packed = pack(probe, inputs)
        expected = self.reference.observe(probe, packed)
        if expected.kind != "observation":
            code = probe.__code__
            raise UnusableAssignment(
                f"{code.co_filename}:{code.co_firstlineno}: probe {probe.__name__} fails on the solutions: "
                f"{expected.facts.get('message', expected.kind)}"
            )
        if part is not None and not _has_part(expected.value, part):
            code = probe.__code__
            raise UnusableAssignment(
                f"{code.co_filename}:{code.co_firstlineno}: probe {probe.__name__} returns no part named {part!r}"
            )
        student = self._observe(probe, packed, seconds, forbid, question, part)

        def found_against(value: Any) -> list[Difference]:
            return list(differences(_part(student, part), _part(value, part), rtol=rtol, atol=atol))

        found = found_against(expected.value)
        if not found:
            return
        if self.shared:
            raise Verdict("failed", found[0].hint)  # judged again alone: no diagnosis yet
        if isinstance(raised := _part(student, part), Raised):
            hint = self._diagnose_raised_part(probe, packed, question, raised, part)
            raise Verdict("error", f"It raised {raised.message}" + (f". {hint}" if hint else ""), raised.message)
        hint = self._diagnose(probe, packed, question, found_against)
        raise Verdict("failed", _sentence(hint or found[0].hint), _listed(found))

    def _observe(
        self,
        probe: Callable[..., Any],
        packed: PackedProbe,
        seconds: float,
        forbid: tuple[str, ...],
        question: str,
        part: str | None,
    ) -> Any:
        only = part if self.alone else None
        self.shared = self.shared or (part is not None and not self.alone)
        key = (packed.digest, forbid, only)
        if key not in self._replies:
            self._replies[key] = self.run.observe(packed, seconds=seconds, forbid=forbid, part=only)
        reply = self._replies[key]
        if isinstance(reply, Lost):
            outcome: Outcome = reply.outcome if reply.outcome in ("timeout", "crashed") else "error"  # type: ignore[assignment]
            hint = MEMORY_HINT if reply.why == MEMORY else AGAIN_HINT if reply.why == AGAIN else LOST_HINTS[outcome]
            raise Verdict(outcome, hint, reply.why)
        if reply.kind != "observation":
            raise self._no_observation(probe, packed, reply, question)
        self.observations += 1
        return reply.value

    def _no_observation(self, probe: Callable[..., Any], packed: PackedProbe, reply: Reply, question: str) -> Verdict:
        facts = reply.facts
        match reply.kind:
            case "missing" if facts.get("unfilled"):
                return Verdict("missing", f"`{facts.get('name')}` is not filled in yet.")
            case "missing":
                name = facts.get("name")
                return Verdict("missing", f"`{name}` is not defined: was its cell deleted, or did it fail to run?")
            case "shortcut":
                names = ", ".join(map(str, facts.get("names") or []))
                return Verdict("failed", f"This is to be written by hand, but it calls the library's own: {names}.")
            case "raised" if facts.get("type") == "SystemExit":
                return Verdict("error", EXIT_HINT, str(facts.get("message")))
            case "raised":
                message = str(facts.get("message"))
                hint = self._diagnose_exception(probe, packed, reply, question)
                return Verdict("error", hint or f"It raised {message}", message)
        return Verdict("error", LOST_HINTS["error"], f"a reply of kind {reply.kind}")

    def _suspects(self, question: str) -> list[Any]:
        """Known mistakes, those of the question first."""
        return sorted(self.reference.mistakes, key=lambda mistake: mistake.question != question)

    def _diagnose(
        self,
        probe: Callable[..., Any],
        packed: PackedProbe,
        question: str,
        found_against: Callable[[Any], list[Difference]],
    ) -> str | None:
        """The hint of the first known mistake that observes just what the student's code does."""
        for mistake in self._suspects(question):
            reply = self.reference.observe(probe, packed, mistake)
            if reply.kind == "observation" and not found_against(reply.value):
                return str(mistake.hint)
        return None

    def _diagnose_raised_part(
        self, probe: Callable[..., Any], packed: PackedProbe, question: str, raised: Raised, part: str | None
    ) -> str | None:
        """The hint of the first known mistake of the question whose part raises the same."""
        for mistake in self._suspects(question):
            if mistake.question != question:
                continue
            reply = self.reference.observe(probe, packed, mistake)
            known = _part(reply.value, part) if reply.kind == "observation" else None
            if isinstance(known, Raised) and known.type == raised.type and known.message in raised.message:
                return str(mistake.hint)
        return None

    def _diagnose_exception(
        self, probe: Callable[..., Any], packed: PackedProbe, reply: Reply, question: str
    ) -> str | None:
        for mistake in self._suspects(question):
            if mistake.question != question:
                continue
            known = self.reference.observe(probe, packed, mistake)
            same_type = known.kind == "raised" and known.facts.get("type") == reply.facts.get("type")
            if same_type and str(known.facts.get("message")) in str(reply.facts.get("message")):
                return f"It raised {reply.facts.get('message')}. {mistake.hint}"
        return None


def _has_part(observation: Any, part: str) -> bool:
    return isinstance(observation, dict) and part in observation


def _part(observation: Any, part: str | None) -> Any:
    """The named entry of an observation (None when it has none of that name); all of it when no part is named."""
    if part is None or not isinstance(observation, dict):
        return observation
    return observation.get(part)


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else text + "."


def _listed(found: list[Difference]) -> str:
    lines = [difference.detail or difference.hint for difference in found[:MOST_DIFFERENCES]]
    if len(found) > MOST_DIFFERENCES:
        lines.append(f"… and {len(found) - MOST_DIFFERENCES} more")
    return "\n".join(lines)


@contextlib.contextmanager
def examination_of(assignment: Assignment, submission: str | None, isolation: str) -> Iterator[Examination]:
    """An examination of one notebook file (None: of the reference solutions), for pytest by hand."""
    if submission is None:
        cells = [CodeCell(0, assignment.solutions.read_text(encoding="utf-8"), ())]
    else:
        path = Path(submission)
        cells = graded_cells(read_notebook(path.read_bytes(), path.name))
    with open_sandbox(isolation, assignment) as sandbox, NotebookRun(sandbox, cells, assignment.limits) as run:
        yield Examination(run, reference_of(assignment))
