"""Reads a worker's reply, distrusting every byte of it."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import safetensors.torch
import torch

from autograder.worker.encode import (
    HEADER,
    MAGIC,
    MAX_ARRAY_BYTES,
    MAX_ARRAYS,
    MAX_DEPTH,
    MAX_ENTRIES,
    MAX_NODES,
    MAX_TEXT,
)
from autograder.worker.exceptions import Raised

MOST_DOCUMENT = 8 << 20
MOST_ARRAYS = MAX_ARRAY_BYTES + (2 << 20)
MOST_NDIM = 16

ITEM_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1,
    "U16": 2, "U32": 4, "U64": 8, "C64": 8,
}  # fmt: skip
# What each kind of reply says besides its value: a flag, a list of texts, or a text of at most so many characters.
FACTS: dict[str, dict[str, int | type]] = {
    "observation": {},
    "missing": {"name": 600, "unfilled": bool},
    "raised": {"type": 100, "message": 1000},
    "shortcut": {"names": list},
    "cell": {"outcome": 20, "message": 1000, "printed": 200_000},
    "settled": {"notes": list},
}


class Malformed(ValueError):
    """A reply that is not what a worker sends."""


@dataclass(frozen=True)
class Unsupported:
    """A returned object that is no plain data; `what` names its type."""

    what: str


@dataclass(frozen=True)
class Reply:
    """A decoded reply: what kind, the observation if it is one, and the further facts."""

    kind: str
    value: Any = None
    facts: dict[str, Any] = field(default_factory=dict)


def read_header(header: bytes) -> tuple[int, int]:
    """Lengths of the document and of the arrays that follow a reply's header; raises `Malformed`."""
    if len(header) != HEADER.size:
        raise Malformed("a header cut short")
    magic, document, arrays = HEADER.unpack(header)
    if magic != MAGIC:
        raise Malformed("no reply of a worker")
    if document > MOST_DOCUMENT or arrays > MOST_ARRAYS:
        raise Malformed(f"a reply of {document + arrays} bytes")
    return document, arrays


def decode_reply(data: bytes) -> Reply:
    """Decodes header, document and arrays; raises `Malformed` for anything out of place."""
    try:
        return _decode_reply(data)
    except Malformed:
        raise
    except Exception as error:  # whatever a reply may do to this reader, it is the reply's fault
        raise Malformed(f"a reply that cannot be read: {type(error).__name__}") from None


def _decode_reply(data: bytes) -> Reply:
    document_length, arrays_length = read_header(data[: HEADER.size])
    body = data[HEADER.size :]
    if len(body) != document_length + arrays_length:
        raise Malformed(f"{len(body)} bytes where {document_length + arrays_length} were announced")
    try:
        document = json.loads(body[:document_length], parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"its document cannot be read: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str) or document["kind"] not in FACTS:
        raise Malformed("a document of no known kind")
    kind, node = document.pop("kind"), document.pop("value", ["none"])
    if document.keys() != FACTS[kind].keys():
        raise Malformed(f"a {kind} with other facts than it should have")
    facts = {name: _fact(FACTS[kind][name], fact) for name, fact in document.items()}
    return Reply(kind, _Decoder(read_arrays(body[document_length:])).value(node), facts)


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


def clean_text(text: str, most: int) -> str:
    """Text cut to a length, with what UTF-8 cannot hold replaced."""
    return text[:most].encode("utf-8", "replace").decode("utf-8")


def _fact(form: int | type, fact: Any) -> Any:
    """A fact in the form it must have: a flag, a list of short texts, or a text of at most so many characters."""
    if form is bool:
        return bool(_only(bool, fact))
    if form is list:
        return [clean_text(_only(str, item), 300) for item in _only(list, fact)[:100]]
    assert isinstance(form, int)
    return clean_text(_only(str, fact), form)


def read_arrays(blob: bytes) -> dict[str, torch.Tensor]:
    """Checks a safetensors blob entry by entry, then loads it; raises `Malformed`."""
    if len(blob) < 8:
        raise Malformed("arrays cut short")
    (header_length,) = struct.unpack("<Q", blob[:8])
    if header_length > min(len(blob) - 8, MOST_DOCUMENT):
        raise Malformed("an array header longer than the arrays")
    try:
        header = json.loads(blob[8 : 8 + header_length])
    except (ValueError, RecursionError):
        raise Malformed("an array header that cannot be read") from None
    if not isinstance(header, dict) or len(header) > MAX_ARRAYS:
        raise Malformed("an array header that is no table")
    spans = []
    for name, entry in header.items():
        if name == "__metadata__":
            raise Malformed("metadata beside the arrays")
        spans.append(_check_array(entry))
    end = 0
    for begin, stop in sorted(spans):
        if begin != end:
            raise Malformed("arrays that overlap or leave gaps")
        end = stop
    if end != len(blob) - 8 - header_length:
        raise Malformed("bytes that belong to no array")
    try:
        loaded: dict[str, torch.Tensor] = safetensors.torch.load(blob)
    except Exception as error:
        raise Malformed(f"arrays that cannot be loaded: {type(error).__name__}") from None
    return loaded


def _check_array(entry: Any) -> tuple[int, int]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise Malformed("an array without dtype, shape and place")
    shape, offsets, dtype = entry["shape"], entry["data_offsets"], entry["dtype"]
    if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
        raise Malformed("an array of an unknown dtype")
    if not isinstance(shape, list) or len(shape) > MOST_NDIM or not all(_is_count(size) for size in shape):
        raise Malformed("an array of an impossible shape")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_count(offset) for offset in offsets):
        raise Malformed("an array in an impossible place")
    if math.prod(shape) * ITEM_BYTES[dtype] != offsets[1] - offsets[0]:
        raise Malformed("an array whose bytes do not fit its shape")
    return offsets[0], offsets[1]


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_ARRAYS


class _Decoder:
    def __init__(self, arrays: dict[str, torch.Tensor]) -> None:
        self.arrays = arrays
        self.nodes = 0

    def value(self, node: Any, depth: int = 0) -> Any:
        self.nodes += 1
        if depth > MAX_DEPTH + 2 or self.nodes > 2 * MAX_NODES:
            raise Malformed("a structure nested too deep or with too many entries")
        if not isinstance(node, list) or not node or not isinstance(node[0], str):
            raise Malformed("an entry that is no node")
        read = getattr(self, f"read_{node[0]}", None)
        if read is None:
            raise Malformed("a node of no known type")
        try:
            return read(depth, *node[1:])
        except (TypeError, ValueError, OverflowError, KeyError) as error:
            if isinstance(error, Malformed):
                raise
            raise Malformed(f"a {node[0]} that cannot be read") from None

    def read_none(self, _: int) -> None:
        return None

    def read_bool(self, _: int, value: Any) -> bool:
        return bool(_only(bool, value))

    def read_int(self, _: int, digits: Any) -> int:
        if len(_only(str, digits)) > 1000:
            raise Malformed("an integer of thousands of digits")
        return int(digits)

    def read_float(self, _: int, text: Any) -> float:
        return decode_float(text)

    def read_complex(self, _: int, real: Any, imaginary: Any) -> complex:
        return complex(decode_float(real), decode_float(imaginary))

    def read_str(self, _: int, text: Any) -> str:
        return clean_text(_only(str, text), MAX_TEXT)

    def read_list(self, depth: int, items: Any) -> list[Any]:
        return [self.value(item, depth + 1) for item in _only(list, items)]

    def read_tuple(self, depth: int, items: Any) -> tuple[Any, ...]:
        return tuple(self.read_list(depth, items))

    def read_dict(self, depth: int, items: Any) -> dict[Any, Any]:
        if len(_only(list, items)) > MAX_ENTRIES:
            raise Malformed("a dict of thousands of entries")
        pairs = [(self.value(key, depth + 1), self.value(value, depth + 1)) for key, value in _only(list, items)]
        if not all(isinstance(key, (str, int, float, bool, tuple, type(None))) for key, _ in pairs):
            raise Malformed("a dict with keys that are no plain data")
        return dict(pairs)

    def read_tensor(self, _: int, key: Any) -> torch.Tensor:
        return self.arrays[_only(str, key)]

    def read_ndarray(self, _: int, key: Any) -> np.ndarray:
        array: np.ndarray = self.arrays[_only(str, key)].numpy()
        return array

    def read_raised(self, _: int, type: Any, message: Any) -> Raised:
        return Raised(clean_text(_only(str, type), 200), clean_text(_only(str, message), 1000))

    def read_unsupported(self, _: int, what: Any) -> Unsupported:
        return Unsupported(clean_text(_only(str, what), 200))


def _only(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise Malformed(f"something that should be a {kind.__name__}")
    return value


def decode_float(text: Any) -> float:
    """Reads what `encode_float` wrote; raises `Malformed` for anything else."""
    if text in ("nan", "inf", "-inf"):
        return float(text)
    if not isinstance(text, str) or len(text) > 40:
        raise Malformed("something that should be a float")
    return float.fromhex(text)
