"""Small helpers that probes may use; they run beside student code and hold no expected value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograder.worker.exceptions import Raised, describe
from autograder.worker.names import Missing


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
    missing, or still a stub, is missing for all of them.
    """
    observed: dict[str, Any] = {}
    for name, part in parts.items():
        try:
            observed[name] = part()
        except (Missing, NotImplementedError):
            raise
        except Exception as error:
            observed[name] = Raised(type(error).__name__[:100], describe(error)[:600])
    return observed
