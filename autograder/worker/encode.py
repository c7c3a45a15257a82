"""Observations as bytes: JSON for the structure, safetensors for the arrays. Never a pickle."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors.torch
import torch

from autograder.worker.exceptions import Raised

MAGIC = b"SRv1"
HEADER = struct.Struct("!4sQQ")

MAX_DEPTH = 16
MAX_NODES = 50_000
MAX_ENTRIES = 2_000  # of a dict: its keys may be made to collide
MAX_TEXT = 20_000
MAX_DIGITS = 300
MAX_ARRAYS = 4096
MAX_ARRAY_BYTES = 48 << 20

Node = list[Any]
TOO_LARGE: Node = ["unsupported", f"arrays of more than {MAX_ARRAY_BYTES >> 20} MB"]


class _Encoder:
    def __init__(self) -> None:
        self.arrays: dict[str, torch.Tensor] = {}
        self.nodes = 0
        self.array_bytes = 0

    def node(self, value: Any, depth: int = 0) -> Node:
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            return ["unsupported", "a structure nested too deep or with too many entries"]
        if value is None:
            return ["none"]
        if isinstance(value, (bool, np.bool_)):
            return ["bool", bool(value)]
        if isinstance(value, (int, np.integer)):
            if int(value).bit_length() > 3 * MAX_DIGITS:
                return ["unsupported", "an integer of hundreds of digits"]
            return ["int", str(int(value))]
        if isinstance(value, (float, np.floating)):
            return ["float", encode_float(float(value))]
        if isinstance(value, (complex, np.complexfloating)):
            return ["complex", encode_float(float(value.real)), encode_float(float(value.imag))]
        if isinstance(value, str):
            return ["str", value[:MAX_TEXT]]
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, np.ndarray):
            return self.ndarray(value)
        if isinstance(value, Mapping) and len(value) > MAX_ENTRIES:
            return ["unsupported", f"a dict of more than {MAX_ENTRIES} entries"]
        if isinstance(value, Mapping):
            return ["dict", [[self.node(k, depth + 1), self.node(v, depth + 1)] for k, v in value.items()]]
        if isinstance(value, (list, tuple)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return [kind, [self.node(item, depth + 1) for item in value]]
        if isinstance(value, Raised):
            return ["raised", value.type, value.message]
        return ["unsupported", f"{type(value).__module__}.{type(value).__qualname__}"[:200]]

    def tensor(self, value: torch.Tensor) -> Node:
        if value.layout != torch.strided or value.is_quantized or value.device.type == "meta":
            return ["unsupported", f"a tensor of layout {value.layout} on {value.device}"]
        if not self.has_room(value.numel() * value.element_size()):
            return TOO_LARGE
        with torch.no_grad():
            plain = torch.empty(value.shape, dtype=value.dtype).copy_(torch.Tensor.detach(value))
        return ["tensor", self.stored(plain)]

    def has_room(self, count: int) -> bool:
        self.array_bytes += count
        return self.array_bytes <= MAX_ARRAY_BYTES and len(self.arrays) < MAX_ARRAYS

    def ndarray(self, value: np.ndarray) -> Node:
        if not self.has_room(value.nbytes):
            return TOO_LARGE
        try:
            plain = torch.from_numpy(np.array(value, dtype=value.dtype.newbyteorder("="), copy=True, order="C"))
        except TypeError:
            return ["unsupported", f"a NumPy array of {value.dtype}"]
        return ["ndarray", self.stored(plain)]

    def stored(self, tensor: torch.Tensor) -> str:
        key = str(len(self.arrays))
        self.arrays[key] = tensor
        return key


def encode_float(value: float) -> str:
    """A float as text that reads back to the same bits (NaN payloads aside)."""
    return value.hex() if math.isfinite(value) else repr(value)


def encode_reply(kind: str, value: Any = None, **facts: Any) -> bytes:
    """One reply: its kind, the observation (or None) and further facts that JSON can hold."""
    encoder = _Encoder()
    document = json.dumps({"kind": kind, "value": encoder.node(value), **facts}).encode()
    blob = safetensors.torch.save(encoder.arrays)
    return HEADER.pack(MAGIC, len(document), len(blob)) + document + blob


def tensor_bytes(tensor: torch.Tensor) -> bytes:
    """A tensor's entries in row-major order, as the machine stores them."""
    plain = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor)
    return plain.reshape(-1).view(torch.uint8).numpy().tobytes()


def tensor_from_bytes(data: bytes, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """The tensor that `tensor_bytes` took apart."""
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape)
