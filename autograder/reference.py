"""The reference solutions, and variants of them, as namespaces that a probe can run on in this process."""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from autograder.authoring import Variant, variants
from autograder.errors import UnusableAssignment
from autograder.isolation.observation import Reply, decode_reply
from autograder.probes import PackedProbe
from autograder.project import Assignment
from autograder.worker.encode import encode_reply
from autograder.worker.names import Names
from autograder.worker.numeric_state import reset_numeric_state


def load_namespace(assignment: Assignment, variant: Variant | None = None) -> dict[str, Any]:
    """Runs the solutions, then the variant's definition, in a module of their own; returns its names.

    The files handed out can be imported while it runs, as in the notebook's folder.
    """
    suffix = f"__{variant.question}__{variant.name}" if variant else ""
    module = types.ModuleType(f"solutions.{assignment.name}{suffix}")
    module.__file__ = str(assignment.solutions)
    sys.modules[module.__name__] = module
    try:
        with _importable(str(assignment.files)):
            exec(compile(assignment.solutions.read_text(encoding="utf-8"), module.__file__, "exec"), vars(module))
            if variant:
                exec(compile(variant.source, f"<{variant.name}>", "exec"), vars(module))
    except Exception as error:
        what = f"variant {variant.name!r}" if variant else "the solutions"
        raise UnusableAssignment(
            f"{assignment.solutions}: {what} cannot be run: {type(error).__name__}: {error}"
        ) from error
    return vars(module)


class _importable:
    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        sys.path.insert(0, self.folder)

    def __exit__(self, *_: object) -> None:
        sys.path.remove(self.folder)


def load_variants(assignment: Assignment, kind: str) -> tuple[Variant, ...]:
    """The assignment's registered `mistakes` or `alternatives`; none when it has no such file."""
    if not (assignment.folder / f"{kind}.py").is_file():
        return ()
    if str(assignment.root) not in sys.path:
        sys.path.insert(0, str(assignment.root))
    module = importlib.import_module(f"assignments.{assignment.name}.{kind}")
    return variants(module)


class Reference:
    """Observations of the solutions and their variants, each made once and kept as bytes."""

    def __init__(self, assignment: Assignment) -> None:
        torch.set_num_threads(1)
        self.assignment = assignment
        self._replies: dict[tuple[str, str], bytes] = {}
        self._namespaces: dict[Variant | None, dict[str, Any]] = {}

    @functools.cached_property
    def mistakes(self) -> tuple[Variant, ...]:
        """The known mistakes, in the order of their file."""
        return load_variants(self.assignment, "mistakes")

    def _namespace(self, variant: Variant | None) -> dict[str, Any]:
        if variant not in self._namespaces:
            self._namespaces[variant] = load_namespace(self.assignment, variant)
        return self._namespaces[variant]

    def observe(self, probe: Callable[..., Any], packed: PackedProbe, variant: Variant | None = None) -> Reply:
        """What the probe observes on the reference (or a variant), through the same encoding as a student's."""
        key = (packed.digest, f"{variant.question}/{variant.name}" if variant else "")
        if key not in self._replies:
            self._replies[key] = self._observe(packed, variant)
        return decode_reply(self._replies[key])

    def _observe(self, packed: PackedProbe, variant: Variant | None) -> bytes:
        probe, inputs = packed.unpack()
        names = Names(self._namespace(variant))
        reset_numeric_state(packed.seed)
        try:
            return encode_reply("observation", probe(names, *inputs))
        except Exception as error:
            return encode_reply("raised", type=type(error).__name__, message=str(error)[:600])


_references: dict[tuple[Path, str, str], Reference] = {}


def reference_of(assignment: Assignment) -> Reference:
    """The reference of an assignment; one per process, for what it observes is kept."""
    return _references.setdefault((assignment.root, assignment.name, assignment.digest), Reference(assignment))
