"""How a case ends when it does not pass."""

from __future__ import annotations

from _pytest.outcomes import Failed

from autograder.results import Outcome


class Verdict(Failed):
    """Ends a case: an outcome, a hint for the student, a detail for the instructor."""

    def __init__(self, outcome: Outcome, hint: str, detail: str = "") -> None:
        super().__init__(f"{outcome}: {hint}" + (f"\n{detail}" if detail else ""), pytrace=False)
        self.outcome: Outcome = outcome
        self.hint = hint
        self.detail = detail
