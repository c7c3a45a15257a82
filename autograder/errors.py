"""Errors that end in one clear line: what is wrong, where, and what to do."""

from __future__ import annotations


class AutograderError(Exception):
    """Something the user can put right: the command ends with this line and exit code 2."""


class UnusableAssignment(AutograderError):
    """An assignment whose own files contradict each other or cannot be loaded."""


class IsolationUnavailable(AutograderError):
    """The sandbox that was asked for cannot be started on this machine."""


class UnreadableSubmission(Exception):
    """A submission that cannot be graded; the message is the reason shown in its result."""
