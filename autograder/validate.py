"""Proves an assignment's grading: right answers pass, known mistakes are caught and named, verdicts are stable."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from autograder.authoring import Variant
from autograder.build import notebook_with, solution_notebook, unfilled_notebook
from autograder.case_items import CaseInfo
from autograder.catalogue import run_cases
from autograder.examination import Examination
from autograder.grading import cases_of
from autograder.isolation import Sandbox, open_sandbox
from autograder.isolation.notebook_run import NotebookRun
from autograder.notebook import graded_cells, read_notebook
from autograder.project import Assignment
from autograder.reference import load_variants, reference_of
from autograder.results import Case

Judged = list[tuple[CaseInfo, Case]]
Wanted = Callable[[CaseInfo], bool]


@dataclass(frozen=True)
class Proof:
    """One thing proved or not: what, and every way in which it does not hold."""

    what: str
    faults: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.faults


class Prover:
    """Grades notebooks made from the solutions and compares the verdicts with what they must be."""

    def __init__(self, assignment: Assignment, sandbox: Sandbox) -> None:
        self.assignment, self.sandbox = assignment, sandbox

    def judge(self, notebook: bytes, wanted: Wanted | None = None) -> Judged:
        """The verdicts on one notebook, of all cases or the wanted ones."""
        cells = graded_cells(read_notebook(notebook, "notebook.ipynb"))
        with NotebookRun(self.sandbox, cells, self.assignment.limits) as run:
            return run_cases(self.assignment, Examination(run, reference_of(self.assignment)), wanted)

    def solutions_pass(self) -> Proof:
        """The reference solutions get full marks."""
        return Proof("the solutions get full marks", _not_passed(self.judge(solution_notebook(self.assignment))))

    def stubs_earn_nothing(self) -> Proof:
        """The notebook as handed out gets no marks."""
        judged = self.judge(unfilled_notebook(self.assignment))
        earned = [f"{info.id} gives {case.points:g} points" for info, case in judged if case.points]
        return Proof("the unfilled notebook gets nothing", earned)

    def alternative_passes(self, alternative: Variant) -> Proof:
        """A right answer written another way gets full marks."""
        judged = self.judge(notebook_with(self.assignment, {alternative.defines: alternative.source}))
        return Proof(f"{alternative.question}: {alternative.name} is right too", _not_passed(judged))

    def mistake_is_caught(self, mistake: Variant) -> Proof:
        """A known mistake fails the cases that should catch it, and its hint is what the student reads."""
        known = {info.id for info in cases_of(self.assignment)}
        faults = [f"there is no case {name}" for name in mistake.caught_by if not _matching(name, known)]

        def wanted(info: CaseInfo) -> bool:
            return info.question == mistake.question or any(_matching(name, {info.id}) for name in mistake.caught_by)

        judged = self.judge(notebook_with(self.assignment, {mistake.defines: mistake.source}), wanted)
        lost = {info.id: case for info, case in judged if case.outcome != "passed"}
        faults += [f"{name} does not catch it" for name in mistake.caught_by if not _matching(name, set(lost))]
        if lost and not any(mistake.hint in case.hint for case in lost.values()):
            others = "; ".join(sorted({case.hint for case in lost.values()}))
            faults.append(f"its hint is not what the student reads, but: {others}")
        return Proof(f"{mistake.question}: {mistake.name} is caught and named", faults)

    def proofs(self, every: int = 1) -> Iterator[Proof]:
        """All proofs, or those of every n-th mistake and alternative."""
        yield self.solutions_pass()
        yield self.stubs_earn_nothing()
        for alternative in load_variants(self.assignment, "alternatives")[::every]:
            yield self.alternative_passes(alternative)
        for mistake in load_variants(self.assignment, "mistakes")[::every]:
            yield self.mistake_is_caught(mistake)


def _matching(name: str, ids: set[str]) -> bool:
    """Whether a case's name, with or without its parameters, is among the ids."""
    return any(id == name or id.startswith(f"{name}[") for id in ids)


def _not_passed(judged: Judged) -> list[str]:
    return [f"{info.id}: {case.outcome}: {case.hint}" for info, case in judged if case.outcome != "passed"]


def validate(
    assignment: Assignment,
    *,
    repeat: int = 1,
    every: int = 1,
    isolation: str = "auto",
    say: Callable[[str], None] = print,
) -> bool:
    """Runs all proofs `repeat` times and says each that fails; True when all hold, every time.

    `every` takes every n-th mistake and alternative only. Raises UnusableAssignment for an assignment that cannot be
    graded at all.
    """
    started, failed, count = time.monotonic(), 0, 0
    cases_of(assignment)
    with open_sandbox(isolation, assignment) as sandbox:
        prover = Prover(assignment, sandbox)
        for turn in range(repeat):
            for proof in prover.proofs(every):
                count += 1
                if not proof.holds:
                    failed += 1
                    say(f"{assignment.name}: NOT PROVED (turn {turn + 1}): {proof.what}")
                    for fault in proof.faults:
                        say(f"    {fault}")
    seconds = time.monotonic() - started
    say(f"{assignment.name}: {count - failed} of {count} proofs hold ({seconds:.0f} s)")
    return failed == 0
