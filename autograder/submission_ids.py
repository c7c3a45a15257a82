"""Ids for submissions: readable, fit for any file system, and the same whatever else is graded beside them."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

_LENGTH = 80
# `index` is the overview page; the others cannot be file names on Windows.
_RESERVED = {"index", "con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}


def assign_ids(found: Sequence[tuple[tuple[str, ...], str]]) -> list[str]:
    """An id for each (path in what was given, what it was given in), all different even without regard to case.

    An id comes from the path alone. Only where that is not enough (nothing left of a name in another alphabet, two
    paths that read the same) a few digits of a hash of the path follow.
    """
    slugs = [slug("-".join(parts)) for parts, _ in found]
    counts = Counter(id.lower() for id in slugs)
    inner = Counter((slug.lower(), parts) for slug, (parts, _) in zip(slugs, found, strict=True))
    ids: list[str] = []
    for id, (parts, outer) in zip(slugs, found, strict=True):
        lossy = not id or len(id) > _LENGTH or id.lower() in _RESERVED
        if lossy or counts[id.lower()] > 1:
            path = "/".join(parts)
            if inner[id.lower(), parts] > 1:
                path = f"{outer}/{path}"
            digest = hashlib.sha256(path.encode("utf-8", "replace")).hexdigest()[:8]
            id = f"{(id or 'submission')[: _LENGTH - 9].rstrip('-.')}-{digest}"
        ids.append(id)
    return _all_different(ids)


def slug(text: str) -> str:
    """Letters, digits, `.`, `_` and `-` of the text, accents taken off, anything else a single `-`."""
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9._]+", "-", plain)).strip("-._")


def _all_different(ids: list[str]) -> list[str]:
    seen: set[str] = set()
    for place, id in enumerate(ids):
        number = 1
        while ids[place].lower() in seen:
            number += 1
            ids[place] = f"{id}-{number}"
        seen.add(ids[place].lower())
    return ids
