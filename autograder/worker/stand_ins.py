"""Stand-ins for modules that a notebook imports for its surroundings, not for its answers.

`otter` costs 0.9 s to import and would grade in the wrong place; `google.colab` exists only there.
"""

from __future__ import annotations

import sys
import types
from typing import Any


class Inert:
    """Answers every attribute and call with itself, and grades nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, *_: Any, **__: Any) -> Inert:
        return self

    def __getattr__(self, name: str) -> Inert:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __iter__(self) -> Any:
        return iter(())

    def __repr__(self) -> str:
        return ""


def _module(name: str, **attributes: Any) -> types.ModuleType:
    module = types.ModuleType(name, "Stand-in used while grading.")
    module.__path__ = []  # lets `import name.anything` look further
    vars(module).update(attributes)
    sys.modules[name] = module
    return module


def install() -> None:
    """Registers the stand-ins, so that `import` finds them first."""
    inert = Inert()
    _module("otter", Notebook=Inert, __version__="0", __getattr__=lambda name: _inert(inert, name))
    drive, files = Inert(), _module("google.colab.files", upload=dict, download=inert)
    colab = _module("google.colab", drive=drive, files=files, userdata=inert, output=inert, auth=inert)
    sys.modules["google.colab.drive"] = _module("google.colab.drive", mount=inert, flush_and_unmount=inert)
    google = sys.modules.get("google") or _module("google")
    vars(google)["colab"] = colab


def _inert(inert: Inert, name: str) -> Inert:
    if name.startswith("__"):
        raise AttributeError(name)
    return inert
