"""How a class did on each case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from autograder.results import Result


@dataclass
class CaseStatistics:
    """One case over all graded submissions: how often each outcome."""

    question: str
    id: str
    title: str
    outcomes: Counter[str] = field(default_factory=Counter)

    @property
    def passed(self) -> float:
        """The share of submissions that passed, 0 to 1."""
        return self.outcomes["passed"] / max(1, self.outcomes.total())


def case_statistics(results: Iterable[Result]) -> list[CaseStatistics]:
    """Statistics of every case in the results, in their order."""
    found: dict[tuple[str, str], CaseStatistics] = {}
    for result in results:
        for question in result.questions:
            for case in question.cases:
                key = question.id, case.id
                statistics = found.setdefault(key, CaseStatistics(question.title, case.id, case.title))
                statistics.outcomes[case.outcome] += 1
    return list(found.values())
