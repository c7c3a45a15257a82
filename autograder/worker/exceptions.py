"""Exceptions in words: what was raised, and from which line of the notebook."""

from __future__ import annotations

import traceback
from dataclasses import dataclass


@dataclass(frozen=True)
class Raised:
    """Stands in an observation for a value that could not be had, because getting it raised."""

    type: str
    message: str


def describe(error: BaseException) -> str:
    """One or two lines on an exception: its type, its text, and the notebook line it came from."""
    text = f"{type(error).__name__}: {_text_of(error)}"
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} (line {error.lineno})"[:600]
    if place := student_line(error):
        return f"{text} ({place})"
    return text


def _text_of(error: BaseException) -> str:
    try:
        return str(error)[:500]
    except BaseException:
        return "(its text cannot be shown)"


def student_line(error: BaseException) -> str:
    """Where in the notebook the exception came from: the innermost frame that runs a cell's code."""
    try:
        frames = traceback.extract_tb(error.__traceback__, limit=-60)
    except BaseException:
        return ""
    for frame in reversed(frames):
        if "ipykernel_" in frame.filename or "ipython-input-" in frame.filename or frame.filename.startswith("<ipy"):
            where = "" if frame.name in ("<module>", "<cell line: 1>") else f" of {frame.name}"
            line = (frame.line or "").strip()
            return f"line {frame.lineno}{where}: {line}"[:300]
    return ""
