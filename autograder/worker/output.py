"""Printed output of a notebook, kept up to a bound."""

from __future__ import annotations

import io


class TooMuchOutput(BaseException):
    """Raised in the printing code once it has printed far more than anyone reads."""


class BoundedOutput(io.TextIOBase):
    """A text stream that keeps its first `kept` characters and refuses more than `most`."""

    def __init__(self, kept: int, most: int) -> None:
        self.kept, self.most = kept, most
        self.written = 0
        self.parts: list[str] = []
        self.room = kept

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def write(self, text: str) -> int:
        self.written += len(text)
        if self.room > 0:
            self.parts.append(text[: self.room])
            self.room -= len(text)
        if self.written > self.most:
            raise TooMuchOutput(f"printed more than {self.most >> 20} MB")
        return len(text)

    def take(self) -> str:
        """The text kept since the last call; starts afresh."""
        text = "".join(self.parts)
        cut = self.written > self.kept
        self.parts, self.room, self.written = [], self.kept, 0
        return text + ("\n… more was printed and is left out" if cut else "")
