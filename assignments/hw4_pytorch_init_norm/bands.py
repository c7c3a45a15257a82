"""The bands of `bands.toml`, by name."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

BANDS = Path(__file__).with_name("bands.toml")


@functools.cache
def _bands() -> dict[str, Any]:
    return tomllib.loads(BANDS.read_text(encoding="utf-8"))


def band(name: str) -> tuple[float, float]:
    """Lower and upper end of one band, named `table.key` as in the file."""
    table, key = name.split(".")
    low, high = _bands()[table][key]["band"]
    return float(low), float(high)
