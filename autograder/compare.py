"""Compares a student's observation with the reference's: structure first, then shape, dtype, values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from autograder.isolation.observation import Unsupported
from autograder.worker.exceptions import Raised

# Room for another right order of operations, in units of the largest expected entry.
RELATIVE = {
    torch.float64: 1e-9,
    torch.float32: 2e-5,
    torch.float16: 5e-3,
    torch.bfloat16: 4e-2,
}
NUMBER_RELATIVE = 1e-5
TINY = 1e-12


@dataclass(frozen=True)
class Difference:
    """One difference: where it lies, what the student may read, and what only the instructor may."""

    path: str
    hint: str
    detail: str = ""


def differences(
    student: Any, expected: Any, *, rtol: float | None = None, atol: float | None = None, path: str = ""
) -> Iterator[Difference]:
    """Yields every difference between two observations (plain data, tensors, arrays).

    NumPy arrays and tensors compare alike; a number may stand for a 0-d tensor. Tolerances: relative to the
    largest expected magnitude of the array, by dtype, unless `rtol` or `atol` are given.
    """
    where = f"`{path}`" if path else "the result"
    if isinstance(student, Raised) or isinstance(expected, Raised):
        yield from _exception_differences(student, expected, path, where)
    elif isinstance(student, Unsupported):
        yield Difference(path, f"{where} is of a type that cannot be compared: {student.what}")
    elif expected is not None and student is None:
        yield Difference(path, f"{where} is None: is something not returned, or not filled in yet?")
    elif isinstance(expected, (torch.Tensor, np.ndarray)):
        yield from _array_differences(student, _tensor(expected), rtol, atol, path, where)
    elif isinstance(expected, bool) or expected is None or isinstance(expected, str):
        if type(student) is not type(expected) or student != expected:
            detail = f"{path}: {student!r}, expected {expected!r}"
            yield Difference(path, f"{where} is {_short(student)}, which is not right", detail)
    elif isinstance(expected, (int, float, complex)):
        yield from _number_differences(student, expected, rtol, atol, path, where)
    elif isinstance(expected, dict):
        yield from _dict_differences(student, expected, rtol, atol, path, where)
    elif isinstance(expected, (list, tuple)):
        yield from _sequence_differences(student, expected, rtol, atol, path, where)
    else:
        raise TypeError(f"the reference's observation holds a {type(expected).__name__}")


def _exception_differences(student: Any, expected: Any, path: str, where: str) -> Iterator[Difference]:
    if not isinstance(student, Raised):
        yield Difference(path, f"{where}: it should have been refused with an exception")
    elif not isinstance(expected, Raised):
        yield Difference(path, f"{where}: it raised {student.message}", f"{path}: {student.message}")
    elif student.type != expected.type:
        yield Difference(path, f"{where}: it raised {student.message}, another exception than the one asked for")


def _tensor(value: torch.Tensor | np.ndarray) -> torch.Tensor:
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


def _array_differences(
    student: Any, expected: torch.Tensor, rtol: float | None, atol: float | None, path: str, where: str
) -> Iterator[Difference]:
    if isinstance(student, (bool, int, float)) and expected.ndim == 0:
        student = torch.tensor(student, dtype=expected.dtype)
    if not isinstance(student, (torch.Tensor, np.ndarray)):
        yield Difference(path, f"{where} is a {_kind(student)} where a tensor or array is asked for")
        return
    got = _tensor(student)
    if got.shape != expected.shape:
        shapes = f"{tuple(got.shape)} where {tuple(expected.shape)} is asked for"
        yield Difference(path, f"{where} has shape {shapes}")
        return
    if got.dtype != expected.dtype:
        dtypes = f"{_name(got.dtype)} where {_name(expected.dtype)} is asked for"
        yield Difference(path, f"{where} has dtype {dtypes}")
        return
    yield from _value_differences(got, expected, rtol, atol, path, where)


def _value_differences(
    got: torch.Tensor, expected: torch.Tensor, rtol: float | None, atol: float | None, path: str, where: str
) -> Iterator[Difference]:
    if not (expected.is_floating_point() or expected.is_complex()):
        if not torch.equal(got, expected):
            yield Difference(path, f"{where} has wrong values", f"{path}: {got}\nexpected {expected}")
        return
    wide = torch.complex128 if expected.is_complex() else torch.float64
    x, y = got.to(wide), expected.to(wide)
    finite = torch.isfinite(y)
    if not torch.equal(torch.isfinite(x), finite):
        yield Difference(path, f"{where} has entries that are not finite, or finite ones where none should be")
        return
    scale = float(y[finite].abs().max()) if finite.any() else 0.0
    relative = RELATIVE.get(expected.dtype, 1e-5) if rtol is None else rtol
    absolute = (relative * scale if rtol is None else 0.0) + TINY if atol is None else atol
    error = (x - y).abs()
    wrong = (error > absolute + relative * y.abs()) & finite
    wrong |= ~finite & ~((x == y) | (torch.isnan(x.abs()) & torch.isnan(y.abs())))
    if wrong.any():
        masked = torch.where(wrong & finite, error, torch.full_like(error, -1.0))
        at = (
            tuple(int(i) for i in np.unravel_index(int(masked.argmax()), tuple(masked.shape))) if masked.numel() else ()
        )
        share = f"{int(wrong.sum())} of {wrong.numel()} entries"
        detail = f"{path}: {share} wrong; at {at} {x[at].item():.9g}, expected {y[at].item():.9g}"
        yield Difference(path, f"{where} has wrong values ({share})", detail)


def _number_differences(
    student: Any, expected: complex, rtol: float | None, atol: float | None, path: str, where: str
) -> Iterator[Difference]:
    if isinstance(student, (torch.Tensor, np.ndarray)) and student.ndim == 0:
        student = student.item()
    if isinstance(student, bool) or not isinstance(student, (int, float, complex)):
        yield Difference(path, f"{where} is a {_kind(student)} where a number is asked for")
        return
    if isinstance(expected, int) and student == expected:
        return
    relative = (0.0 if isinstance(expected, int) else NUMBER_RELATIVE) if rtol is None else rtol
    same_nan = isinstance(expected, float) and math.isnan(expected) and student != student
    if not same_nan and student != expected and not abs(student - expected) <= (atol or 0.0) + relative * abs(expected):
        yield Difference(path, f"{where} has a wrong value", f"{path}: {student!r}, expected {expected!r}")


def _dict_differences(
    student: Any, expected: dict[Any, Any], rtol: float | None, atol: float | None, path: str, where: str
) -> Iterator[Difference]:
    if not isinstance(student, dict):
        yield Difference(path, f"{where} is a {_kind(student)} where a dict is asked for")
        return
    for key in expected:
        below = f"{path}.{key}" if path else str(key)
        if key not in student:
            yield Difference(below, f"`{below}` is missing")
        else:
            yield from differences(student[key], expected[key], rtol=rtol, atol=atol, path=below)
    for key in student:
        if key not in expected:
            yield Difference(f"{path}.{key}", f"{where} has an entry too many: {_short(key)}")


def _sequence_differences(
    student: Any, expected: list[Any] | tuple[Any, ...], rtol: float | None, atol: float | None, path: str, where: str
) -> Iterator[Difference]:
    if isinstance(student, (torch.Tensor, np.ndarray)) and student.ndim == 1 and all(_is_number(e) for e in expected):
        student = student.tolist()
    if not isinstance(student, (list, tuple)):
        yield Difference(path, f"{where} is a {_kind(student)} where a {_kind(expected)} is asked for")
        return
    if len(student) != len(expected):
        yield Difference(path, f"{where} has {len(student)} entries where {len(expected)} are asked for")
        return
    for index, (mine, right) in enumerate(zip(student, expected, strict=True)):
        yield from differences(mine, right, rtol=rtol, atol=atol, path=f"{path}[{index}]")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex)) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    return {"Tensor": "tensor", "ndarray": "NumPy array"}.get(type(value).__name__, type(value).__name__)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
