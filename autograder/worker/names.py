"""The notebook's names as a probe sees them, and what tells an unfilled stub."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from types import FunctionType
from typing import Any


class Missing(Exception):
    """A name that a probe needs is not there, or still a stub."""

    def __init__(self, name: str, unfilled: bool) -> None:
        super().__init__(f"{name} is {'not filled in' if unfilled else 'not defined'}")
        self.name = name
        self.unfilled = unfilled


class Names:
    """Attribute access to a notebook's namespace: `nb.batch_norm`.

    Raises `Missing` for a name that is not defined, and for a function or class that is still a stub.
    """

    def __init__(self, namespace: dict[str, Any]) -> None:
        vars(self)["_namespace"] = namespace

    def __getattr__(self, name: str) -> Any:
        namespace: dict[str, Any] = vars(self)["_namespace"]
        if name not in namespace:
            raise Missing(name, unfilled=False)
        value = namespace[name]
        for stub in unfilled(value, name):
            raise Missing(stub, unfilled=True)
        return value


_EMPTY_BODY = {
    "RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "COPY_FREE_VARS", "MAKE_CELL", "CACHE",
    "EXTENDED_ARG",
}  # fmt: skip


def does_nothing(function: FunctionType) -> bool:
    """Whether the body is only constants, `pass` or `...`, returning None."""
    code = function.__code__
    instructions = list(dis.get_instructions(code))
    if any(i.opname not in _EMPTY_BODY for i in instructions):
        return False
    returned = [i.argval for i in instructions if i.opname in ("LOAD_CONST", "RETURN_CONST")]
    return bool(returned) and returned[-1] is None


def _has_ellipsis(function: FunctionType) -> bool | None:
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return None
    return any(line.strip() == "..." or line.rstrip().endswith(": ...") for line in source.splitlines())


def unfilled(value: Any, name: str) -> Iterator[str]:
    """Names of the functions in `value` (a function, or a class's methods) that are still stubs.

    A method that does nothing on purpose (`pass`) is not a stub.
    """
    if isinstance(value, FunctionType):
        if does_nothing(value) and _has_ellipsis(value) is not False:
            yield name
    elif inspect.isclass(value):
        for attribute, member in vars(value).items():
            if isinstance(member, FunctionType) and does_nothing(member) and _has_ellipsis(member):
                yield f"{name}.{attribute}"
