"""Small helpers that probes may use; they run beside student code and hold no expected value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograder.worker.exceptions import Raised, describe
from autograder.worker.names import Missing
from autograder.worker.numeric_state import reset_numeric_state

_only: str | None = None


def run_only(part: str | None) -> None:
    """Makes `attempts` run this part alone; None lets it run all."""
    global _only
    _only = part


def exception_of(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> str | None:
    """The name of the exception that the call raises, or None."""
    try:
        function(*arguments, **keywords)
    except Exception as error:
        return type(error).__name__
    return None


def attempts(**parts: Callable[[], Any]) -> dict[str, Any]:
    """Runs each part and returns what it gave by name; one that raises costs only itself.

    For a probe whose parts are judged by cases of their own: `compare(probe, …, part="gradients")`. A name that is
    missing, or still a stub, is missing for all of them. Every part starts from the same seeds and default settings. A
    case that fails is judged again on its part run alone.
    """
    if _only is not None:
        parts = {name: part for name, part in parts.items() if name == _only}
    observed: dict[str, Any] = {}
    unfilled: list[NotImplementedError] = []
    for name, part in parts.items():
        reset_numeric_state()  # a part may not leave its default dtype or its random state to the next
        try:
            observed[name] = part()
        except Missing:
            raise
        except Exception as error:
            observed[name] = Raised(type(error).__name__[:100], describe(error)[:600])
            if isinstance(error, NotImplementedError):
                unfilled.append(error)
    if unfilled and len(unfilled) == len(parts):
        raise unfilled[0]
    return observed
