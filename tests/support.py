"""Small makers that several test files share."""

from __future__ import annotations

from pathlib import Path

from autograder.notebook import CodeCell, Notebook

ROOT = Path(__file__).resolve().parent.parent
TINY = ROOT / "tests" / "projects" / "tiny"
HW4 = "hw4_pytorch_init_norm"


def as_notebook(*sources: str, tags: tuple[str, ...] = ()) -> Notebook:
    """A notebook of these code cells."""
    return Notebook(cells=tuple(CodeCell(i, source, tags) for i, source in enumerate(sources)), notes=())
