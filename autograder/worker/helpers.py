"""Small helpers that probes may use; they run beside student code and hold no expected value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def exception_of(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> str | None:
    """The name of the exception that the call raises, or None."""
    try:
        function(*arguments, **keywords)
    except Exception as error:
        return type(error).__name__
    return None
