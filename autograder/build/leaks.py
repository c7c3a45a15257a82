"""Nothing that students must not have may be in what they get: solution lines and hidden cases."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from autograder.build.definitions import definitions, split_solution
from autograder.build.master import Sources
from autograder.errors import UnusableAssignment

WORD = re.compile(r"\w+")
TELLING = 4  # words; a shorter line (`return out`, `with torch.no_grad():`) gives nothing away


def check_leaks(sources: Sources, given: dict[str, str]) -> None:
    """Raises UnusableAssignment if a text in `given` (by file name) holds a solution line or a hidden case."""
    secrets = [(line, "solution") for line in solution_lines(sources.solutions)]
    for path in sorted(sources.assignment.folder.glob("*.py")):
        if path.name != "notebook.py":
            secrets += [(line, path.name) for line in hidden_lines(path)]
    for name, text in given.items():
        text = _alike(text)
        for line, origin in secrets:
            if _alike(line) in text:
                where = "a solution line" if origin == "solution" else f"a line of the hidden {origin}"
                raise UnusableAssignment(f"{sources.where}: {name} would give students {where}: {line}")


def solution_lines(solutions: str) -> list[str]:
    """The lines that students must write, stripped.

    Lines that students are given elsewhere, and those too short to tell anything, are no secret.
    """
    given: set[str] = set()
    secret: list[str] = []
    for source in definitions(solutions).values():
        shown, hidden = split_solution(source)
        given |= set(shown)
        secret += hidden
    telling = [line for line in secret if line not in given and len(WORD.findall(line)) >= TELLING]
    return list(dict.fromkeys(line.removeprefix("return ") for line in telling))


def hidden_lines(path: Path) -> Iterator[str]:
    """Lines of a hidden module that identify it: what its probes do with the notebook, the heads of its tests."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise UnusableAssignment(f"{path}, line {error.lineno}: {error.msg}") from None
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        if node.name.startswith("test_"):
            yield lines[node.lineno - 1].strip()
        elif node.args.args and node.args.args[0].arg == "nb":
            for line in map(str.strip, lines[node.lineno - 1 : node.end_lineno]):
                if re.search(r"\bnb\b", line) and len(WORD.findall(line)) >= TELLING:
                    yield line


def _alike(text: str) -> str:
    """Text in which a line is found again after Otter Assign has rewritten its quotes."""
    return text.replace('"', "'")
