"""Watchers that tell whether a probe went through a library shortcut.

They run in the student's process: they catch honest shortcuts through any alias, and are no security boundary.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType, FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# Fragments of the names of operators, as the dispatcher spells them, and of functions. group_norm and instance_norm
# compute batch norm or layer norm with the right shapes, so they count for both.
FAMILIES: dict[str, tuple[str, ...]] = {
    "batch_norm": ("batch_norm", "instance_norm", "group_norm"),
    "layer_norm": ("layer_norm", "instance_norm", "group_norm"),
    "rms_norm": ("rms_norm", "layer_norm", "group_norm"),
}


class _OperatorWatcher(TorchDispatchMode):
    def __init__(self, fragments: set[str], seen: set[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.fragments, self.seen = fragments, seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        if any(fragment in name for fragment in self.fragments):
            self.seen.add(name)
        return func(*args, **(kwargs or {}))


class _FunctionWatcher(TorchFunctionMode):
    def __init__(self, fragments: set[str], seen: set[str]) -> None:
        super().__init__()
        self.fragments, self.seen = fragments, seen

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if any(fragment in name for fragment in self.fragments):
            self.seen.add(name)
        return func(*args, **(kwargs or {}))


def _init_code() -> dict[CodeType, str]:
    functions = {n: f for n, f in vars(torch.nn.init).items() if n.endswith("_") and not n.startswith("_")}
    plain_fills = {"normal_", "uniform_", "zeros_", "ones_", "constant_"}
    return {f.__code__: f"nn.init.{n}" for n, f in functions.items() if n not in plain_fills and hasattr(f, "__code__")}


@contextmanager
def _calls_watched(code: dict[CodeType, str], seen: set[str]) -> Iterator[None]:
    def hook(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in code:
            seen.add(code[frame.f_code])

    previous: Callable[..., Any] | None = sys.getprofile()
    sys.setprofile(hook)
    try:
        yield
    finally:
        sys.setprofile(previous)


@contextmanager
def watched(families: tuple[str, ...]) -> Iterator[set[str]]:
    """Collects the names of forbidden library calls made inside the block.

    Families: `batch_norm`, `layer_norm`, `rms_norm`, `nn.init`; ValueError for any other.
    """
    unknown = set(families) - set(FAMILIES) - {"nn.init"}
    if unknown:
        raise ValueError(f"unknown family of shortcuts: {', '.join(sorted(unknown))}")
    seen: set[str] = set()
    with ExitStack() as stack:
        if fragments := {fragment for family in families for fragment in FAMILIES.get(family, ())}:
            stack.enter_context(_OperatorWatcher(fragments, seen))
            stack.enter_context(_FunctionWatcher(fragments, seen))
        if "nn.init" in families:
            stack.enter_context(_calls_watched(_init_code(), seen))
        yield seen
