"""Probes on their way to the worker: looked at before they leave, then packed by value."""

from __future__ import annotations

import dis
import functools
import hashlib
import io
import sys
import types
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cloudpickle
import torch

from autograder.errors import UnusableAssignment
from autograder.worker.encode import tensor_bytes, tensor_from_bytes

# Libraries that every worker has, and the worker package: nothing here can hold an expected value.
ALLOWED_MODULES = frozenset(
    {"autograder.worker", "builtins", "collections", "contextlib", "copy", "functools", "io", "itertools", "math",
     "numpy", "operator", "pandas", "random", "statistics", "torch", "typing", "warnings"}
)  # fmt: skip


@dataclass(frozen=True)
class PackedProbe:
    """A probe and its inputs as bytes for the worker; `digest` identifies the pair within this process."""

    probe: bytes
    inputs: bytes
    digest: str
    seed: int

    def unpack(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Fresh copies of the probe and its inputs."""
        return cloudpickle.loads(self.probe), cloudpickle.loads(self.inputs)


class _Packer(cloudpickle.Pickler):  # type: ignore[misc]
    """Packs tensors by their content: PyTorch's own pickles hold addresses, so that equal tensors differ."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is torch.Tensor and value.layout == torch.strided and not value.requires_grad:
            return tensor_from_bytes, (tensor_bytes(value), value.dtype, tuple(value.shape))
        return super().reducer_override(value)


def pack(probe: Callable[..., Any], inputs: tuple[Any, ...]) -> PackedProbe:
    """Checks a probe and packs it with its inputs; raises UnusableAssignment with file and line.

    The seed that both sides set before the probe is fixed by the probe's name alone.
    """
    packed = _pack_probe(probe)
    with io.BytesIO() as buffer:
        _Packer(buffer).dump(inputs)
        data = buffer.getvalue()
    seed = zlib.crc32(f"{probe.__module__}.{probe.__qualname__}".encode())
    return PackedProbe(packed, data, hashlib.sha256(packed + data).hexdigest(), seed)


@functools.lru_cache(maxsize=4096)
def _pack_probe(probe: Callable[..., Any]) -> bytes:
    check(probe)
    module = sys.modules.get(probe.__module__)
    if module is None or _allowed(module.__name__):
        return bytes(cloudpickle.dumps(probe))
    cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(probe))
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def check(probe: Callable[..., Any]) -> None:
    """Refuses a probe whose globals, defaults or closure reach data, the solutions or pytest."""
    if not isinstance(probe, types.FunctionType):
        raise UnusableAssignment(f"a probe must be a plain function, not {probe!r}")
    _check_function(probe, set())


def _check_function(function: types.FunctionType, seen: set[int]) -> None:
    if id(function) in seen:
        return
    seen.add(id(function))
    for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        if default is not None and not isinstance(default, bool):
            raise _refused(function, f"the default {default!r}", "pass it as an input")
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        _check_value(function, name, cell.cell_contents, seen)
    for name in sorted(_global_names(function.__code__) - {"__name__"}):
        if name in function.__globals__:
            _check_value(function, name, function.__globals__[name], seen)


def _check_value(function: types.FunctionType, name: str, value: Any, seen: set[int]) -> None:
    if isinstance(value, types.ModuleType):
        if not _allowed(value.__name__):
            raise _refused(function, f"the module `{name}`", "a worker may not see it")
    elif isinstance(value, types.FunctionType) and value.__module__ == function.__module__:
        _check_function(value, seen)
    elif not (callable(value) and _allowed(getattr(value, "__module__", None) or "")):
        what = type(value).__name__
        raise _refused(function, f"`{name}` ({what})", "pass data as an input; keep expected values in the case")


def _allowed(module: str) -> bool:
    return any(module == name or module.startswith(name + ".") for name in ALLOWED_MODULES)


def _global_names(code: types.CodeType) -> set[str]:
    names = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return names


def _refused(function: types.FunctionType, what: str, remedy: str) -> UnusableAssignment:
    code = function.__code__
    return UnusableAssignment(
        f"{code.co_filename}:{code.co_firstlineno}: probe {function.__name__} uses {what}: {remedy}"
    )
