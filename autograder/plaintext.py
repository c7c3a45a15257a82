"""Text that came from a notebook or a file name, made fit to show: no control codes, no lone surrogates, bounded."""

from __future__ import annotations

import re

# Terminal sequences: CSI (colours, cursor), OSC (titles, links), and the two-character ones.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[@-Z\\^_])")
# Everything else that moves the cursor or turns the direction of reading, and lone surrogates, which no file can hold.
_UNSHOWN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def plain(text: object, limit: int = 4000) -> str:
    """The text without escapes and control characters; what exceeds `limit` characters is counted, not shown."""
    shown = str(text)
    rest = max(0, len(shown) - 4 * limit)  # bounds the work, too
    shown = shown[: 4 * limit].replace("\r\n", "\n").replace("\r", "\n")
    shown = _UNSHOWN.sub("\N{REPLACEMENT CHARACTER}", _ESCAPES.sub("", shown))
    rest += max(0, len(shown) - limit)
    return f"{shown[:limit]} [{rest:,} more characters]" if rest else shown


def one_line(text: object, limit: int = 300) -> str:
    """The same on one line, for tables, terminals and CSV."""
    return " ".join(plain(text, limit).split())
