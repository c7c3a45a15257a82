"""What the author of an assignment imports: `require`, `mistake`, `alternative`."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from autograder.errors import UnusableAssignment
from autograder.verdict import Verdict


def require(condition: object, hint: str, detail: str = "") -> None:
    """Fails the case unless `condition` is true.

    `hint` is what the student reads; hidden inputs and expected values belong in `detail`.
    """
    if not condition:
        raise Verdict("failed", hint, detail)


@dataclass(frozen=True)
class Variant:
    """A function or class of the solutions, written another way.

    `caught_by` holds the cases (`"test_file.py::test_name"`, or with a parameter id in brackets) that must
    fail because of it; empty for an alternative, which must get full marks.
    """

    name: str
    question: str
    defines: str
    source: str
    hint: str = ""
    caught_by: tuple[str, ...] = ()


REGISTRY = "__variants__"


def variants(module: Any) -> tuple[Variant, ...]:
    """Everything a module registered with `mistake` or `alternative`, in order."""
    return tuple(vars(module).get(REGISTRY, ()))


def _register(definition: Any, variant: Variant) -> Variant:
    vars(sys.modules[definition.__module__]).setdefault(REGISTRY, []).append(variant)
    return variant


def _variant_source(definition: Callable[..., Any] | type) -> str:
    """The definition's source without the decorator that registers it.

    A file holds many definitions of one name, so it is found by its line, not by its name.
    """
    function = inspect.unwrap(definition)
    if isinstance(definition, type):
        function = next(member for member in vars(definition).values() if isinstance(member, FunctionType))
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename))
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first <= code.co_firstlineno <= (node.end_lineno or first):
                kept = [d for d in node.decorator_list if not _registers(d)]
                decorators = [f"@{ast.get_source_segment(text, decorator)}\n" for decorator in kept]
                lines = text.splitlines(keepends=True)[node.lineno - 1 : node.end_lineno]
                return "".join(decorators + lines)
    raise UnusableAssignment(f"{code.co_filename}:{code.co_firstlineno}: only top-level definitions can be registered")


def _registers(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id in ("mistake", "alternative")


def mistake(question: str, name: str, *, hint: str, caught_by: str | tuple[str, ...]) -> Callable[[Any], Variant]:
    """Registers a known student mistake.

    The decorated function or class takes the place of the solution of the same name; it runs in the solutions'
    namespace, so it may use whatever the notebook has in scope there, and nothing else of this file.
    """
    cases = (caught_by,) if isinstance(caught_by, str) else tuple(caught_by)

    def register(definition: Any) -> Variant:
        source = _variant_source(definition)
        return _register(definition, Variant(name, question, definition.__name__, source, hint, cases))

    return register


def alternative(question: str, name: str) -> Callable[[Any], Variant]:
    """Registers a right answer written another way: it must get full marks."""

    def register(definition: Any) -> Variant:
        return _register(definition, Variant(name, question, definition.__name__, _variant_source(definition)))

    return register
