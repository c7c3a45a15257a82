"""Top-level functions and classes in a piece of source: finding them, replacing them, telling given from solution."""

from __future__ import annotations

import ast
import builtins
import dis
from collections.abc import Iterator
from types import CodeType

BEGIN, END = "# BEGIN SOLUTION", "# END SOLUTION"

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions(source: str) -> dict[str, str]:
    """The source of every top-level function and class, decorators included, by name.

    Raises SyntaxError if `source` is not Python.
    """
    lines = source.splitlines()
    return {node.name: "\n".join(lines[_span(node, lines)]) for node in _nodes(source)}


def replace_definition(source: str, name: str, replacement: str) -> str | None:
    """`source` with its top-level definition of `name` replaced; None if it defines no such name.

    `replacement` need not be valid Python: examples of broken submissions are made with it.
    """
    try:
        node = next((node for node in _nodes(source) if node.name == name), None)
    except SyntaxError:  # a cell with magics defines nothing that an author would replace
        return None
    if node is None:
        return None
    lines = source.splitlines()
    lines[_span(node, lines)] = replacement.strip("\n").splitlines()
    return "\n".join(lines)


def without_markers(source: str) -> str:
    """`source` without the lines that mark where a solution begins and ends."""
    return "\n".join(line for line in source.splitlines() if not line.strip().startswith((BEGIN, END)))


def split_solution(source: str) -> tuple[list[str], list[str]]:
    """The lines of `source`, stripped: those given to students, and those between the solution markers."""
    given: list[str] = []
    solution: list[str] = []
    inside = False
    for line in map(str.strip, source.splitlines()):
        if line.startswith((BEGIN, END)):
            inside = line.startswith(BEGIN)
        else:
            (solution if inside else given).append(line)
    return given, solution


def needed_names(source: str) -> set[str]:
    """Names that `source` reads from its surroundings: neither built in nor bound by `source` itself.

    Annotations count, since a notebook evaluates them.
    """
    needed: set[str] = set()
    bound: set[str] = set()
    for level, code in enumerate(_code_objects(compile(source, "<cell>", "exec", dont_inherit=True))):
        # In a module or class body the plain instructions are LOAD_NAME and STORE_NAME; functions use LOAD_GLOBAL.
        stored = {i.argval for i in dis.get_instructions(code) if i.opname == "STORE_NAME"}
        read = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_NAME", "LOAD_GLOBAL")}
        if level == 0:
            bound = stored
        needed |= read - stored
    return {name for name in needed - bound if not hasattr(builtins, name) and not name.startswith("__")}


def bound_names(source: str) -> set[str]:
    """Names that a cell binds at its top level: imports, assignments, definitions."""
    plain = "\n".join(line for line in source.splitlines() if not line.startswith(("%", "!")))
    try:
        code = compile(plain, "<cell>", "exec", dont_inherit=True)
    except SyntaxError:
        return set()
    return {i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_NAME", "STORE_GLOBAL")}


def _nodes(source: str) -> Iterator[Definition]:
    return (node for node in ast.parse(source).body if isinstance(node, Definition))


def _span(node: Definition, lines: list[str]) -> slice:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    last = node.end_lineno or node.lineno
    for number in range(last, len(lines)):  # comments that end the body are not in the tree
        if lines[number].startswith((" ", "\t")):
            last = number + 1
        elif lines[number]:
            break
    return slice(first - 1, last)


def _code_objects(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_objects(constant)
