"""Reads the notebooks that students really hand in, and repairs them into plain code cells."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from autograder import archives
from autograder.errors import UnreadableSubmission
from autograder.notebook_scripts import databricks_python, looks_like_python, split_script
from autograder.notebook_text import decode
from autograder.plaintext import one_line

MAX_BYTES = 100 * 2**20
MAX_CODE = 8 * 2**20
MAX_CELLS = 2000

_MINOR = 5  # the newest 4.x whose meaning is known here
_LARGE = 5 * 2**20


SKIPPED_TAG = "otter_ignore"


@dataclass(frozen=True)
class CodeCell:
    """One code cell; `index` counts all cells of the notebook, from 0."""

    index: int
    source: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Notebook:
    """What of a notebook matters to grading, and notes on what had to be repaired to get at it."""

    cells: tuple[CodeCell, ...]
    notes: tuple[str, ...] = ()


def graded_cells(notebook: Notebook) -> list[CodeCell]:
    """The cells that grading runs: all code cells but those tagged as demonstrations."""
    return [cell for cell in notebook.cells if SKIPPED_TAG not in cell.tags]


def read_notebook(data: bytes, filename: str) -> Notebook:
    """Reads a notebook of any version and state, or a script; nothing in it is run.

    nbformat's own converters are not used: they need valid outputs and metadata, which are exactly what is broken,
    while the code cells of every version are two keys away.

    Raises `UnreadableSubmission` with one sentence when there is no getting at the code.
    """
    if len(data) > MAX_BYTES:
        raise UnreadableSubmission(f"it is {len(data) / 2**20:,.0f} MB; at most {MAX_BYTES // 2**20} MB are read")
    if archives.is_zip(data):
        return _from_zip(data)
    text, notes = decode(data)
    script = PurePath(filename).suffix.lower() == ".py"
    if script or not text.lstrip().startswith(("{", "[", "<<<<<<<")):
        cells = _from_script(text, script, notes)
    else:
        cells = _from_json(text, len(data), notes)
    return _bounded(cells, notes)


def _from_zip(data: bytes) -> Notebook:
    try:
        found = [member for member in archives.members(data) if member.parts[-1].lower().endswith(".ipynb")]
        if len(found) != 1:
            what = "no notebook" if not found else f"{len(found)} notebooks"
            raise UnreadableSubmission(f"it is a zip file under a notebook's name, with {what} in it; one is needed")
        content = found[0].read()
    except archives.ZipTrouble as trouble:
        raise UnreadableSubmission(f"it is a zip file under a notebook's name, and cannot be read: {trouble}") from None
    name = "/".join(found[0].parts)
    if archives.is_zip(content):
        raise UnreadableSubmission(f"it is a zip file under a notebook's name, and {name} in it is one again")
    inner = read_notebook(content, name)
    return Notebook(
        inner.cells, (f"the file was a zip under a notebook's name; read {one_line(name)} in it", *inner.notes)
    )


def _from_script(text: str, expected: bool, notes: list[str]) -> list[CodeCell]:
    text = _newlines(text, notes)
    if expected and text.lstrip().startswith("{") and isinstance(parsed := _quietly(text), dict) and _cell_list(parsed):
        notes.append("a notebook saved under the name of a script")
        return list(_code_cells(parsed, notes))
    if not expected and not looks_like_python(text):
        raise UnreadableSubmission(f"it is not a notebook: the file begins with {one_line(text.lstrip()[:40])!r}")
    pieces, note = split_script(text)
    notes.append(note)
    return [
        CodeCell(index, _cleaned(piece.source, notes), piece.tags)
        for index, piece in enumerate(pieces)
        if piece.source.strip()
    ]


def _from_json(text: str, size: int, notes: list[str]) -> list[CodeCell]:
    parsed = _parse(text, notes)
    if isinstance(parsed, dict) and _cell_list(parsed) is None and isinstance(parsed.get("content"), dict):
        parsed = parsed["content"]  # as Jupyter's contents API wraps it
    if not isinstance(parsed, dict) or _cell_list(parsed) is None:
        raise UnreadableSubmission("it is JSON, but no notebook: it has no list of cells")
    cells = list(_code_cells(parsed, notes))
    if size > _LARGE and size > 10 * sum(len(cell.source) for cell in cells):
        notes.append(f"nearly all of the file's {size / 2**20:.0f} MB were outputs, which are not needed")
    return cells


def _parse(text: str, notes: list[str]) -> Any:
    try:
        return _load(text, notes)
    except json.JSONDecodeError as error:
        if "\n<<<<<<< " in "\n" + text:
            return _without_conflict(text, notes)
        raise UnreadableSubmission(_syntax_reason(text, error)) from None


def _load(text: str, notes: list[str]) -> Any:
    # Without `strict`, line breaks inside strings pass; floats for integers, since an integer can be too long to read.
    decoder = json.JSONDecoder(strict=False, parse_int=float, object_hook=_without_outputs)
    start = len(text) - len(text.lstrip())
    try:
        parsed, end = decoder.raw_decode(text, start)
    except RecursionError:
        raise UnreadableSubmission("it is not a notebook: its JSON is nested too deeply") from None
    if text[end:].strip("\x00 \t\r\n"):
        if isinstance(parsed, dict) and _cell_list(parsed) is not None:
            notes.append("text after the end of the notebook was left out")
        else:
            raise json.JSONDecodeError("Extra data", text, end)
    return parsed


def _quietly(text: str) -> Any:
    try:
        return _load(text, [])
    except (json.JSONDecodeError, UnreadableSubmission):
        return None


def _without_outputs(value: dict[str, Any]) -> dict[str, Any]:
    """Lets go of outputs as soon as they are parsed: they are most of a file's memory."""
    if "outputs" in value:
        value["outputs"] = None
    return value


def _without_conflict(text: str, notes: list[str]) -> Any:
    for side in ("first", "second"):
        parsed = _quietly(_side(text, side))
        if isinstance(parsed, dict) and _cell_list(parsed) is not None:
            notes.append(f"the file had unresolved git merge conflicts; the {side} side of each was taken")
            return parsed
    raise UnreadableSubmission("it has unresolved git merge conflicts (<<<<<<<), and neither side is a whole notebook")


def _side(text: str, wanted: str) -> str:
    """One side of every conflict; the third, between `|||||||` and `=======`, is what both began from."""
    kept, side = [], ""
    for line in text.splitlines(keepends=True):
        if line.startswith("<<<<<<< "):
            side = "first"
        elif side and line.startswith("|||||||"):
            side = "base"
        elif side and line.startswith("======="):
            side = "second"
        elif side and line.startswith(">>>>>>> "):
            side = ""
        elif side in ("", wanted):
            kept.append(line)
    return "".join(kept)


def _syntax_reason(text: str, error: json.JSONDecodeError) -> str:
    if error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip("\x00 \t\r\n")):
        lines = text.count("\n") + 1
        return f"the file is cut off: it ends in the middle of the notebook, on line {lines:,}; hand in the whole file"
    return f"it is not a notebook: invalid JSON on line {error.lineno:,}, column {error.colno:,} ({error.msg})"


def _cell_list(notebook: dict[str, Any]) -> list[Any] | None:
    """All cells in order: under `cells` since version 4, under worksheets before."""
    if isinstance(cells := notebook.get("cells"), list):
        return cells
    if not isinstance(sheets := notebook.get("worksheets"), list):
        return None
    return [
        cell
        for sheet in sheets
        if isinstance(sheet, dict) and isinstance(sheet.get("cells"), list)
        for cell in sheet["cells"]
    ]


def _code_cells(notebook: dict[str, Any], notes: list[str]) -> Iterator[CodeCell]:
    cells = _cell_list(notebook) or []
    metadata = _table(notebook.get("metadata"))
    _note_version(notebook, notes)
    _note_language(metadata, notes)
    _note_ids(cells, notes)
    databricks = any("databricks" in str(key) for key in metadata)
    for index, cell in enumerate(cells):
        if not isinstance(cell, dict):
            _note(notes, "entries that are no cells were left out")
            continue
        if not _is_code(cell, notes):
            continue
        source = _cleaned(_source(cell, notes), notes)
        if databricks:
            source = databricks_python(source)
        yield CodeCell(index, source, _tags(cell))


def _is_code(cell: dict[str, Any], notes: list[str]) -> bool:
    kind = cell.get("cell_type")
    if isinstance(kind, str):
        return kind.lower() == "code"
    _note(notes, "cells without a type were taken for code if they look like it")
    return any(key in cell for key in ("outputs", "execution_count", "input", "prompt_number"))


def _source(cell: dict[str, Any], notes: list[str]) -> str:
    source = next((cell[key] for key in ("source", "input", "code") if cell.get(key) is not None), "")
    if isinstance(source, str):
        return source
    if not isinstance(source, list):
        _note(notes, "a cell whose source is no text was taken as empty")
        return ""
    lines = [line for line in source if isinstance(line, str)]
    if len(lines) < len(source):
        _note(notes, "source lines that are no text were left out")
    if len(lines) > 1 and not any(line.endswith(("\n", "\r")) for line in lines):
        _note(notes, "source lines without line breaks were put on lines of their own")
        return "\n".join(lines)
    return "".join(lines)


def _cleaned(source: str, notes: list[str]) -> str:
    source = _newlines(source, notes)
    if "\x00" in source:
        _note(notes, "null characters were taken out of the code")
        source = source.replace("\x00", "")
    if re.search("[\ud800-\udfff]", source):
        _note(notes, "broken characters (lone surrogates) in the code were replaced")
        # Two halves that stand together are one character; only what is left over is broken.
        source = source.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return source


def _newlines(text: str, notes: list[str]) -> str:
    if "\r" in text:
        _note(notes, "Windows or old Mac line ends were turned into plain ones")
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def _tags(cell: dict[str, Any]) -> tuple[str, ...]:
    tags = _table(cell.get("metadata")).get("tags")
    if isinstance(tags, str):
        tags = tags.split(",")
    if not isinstance(tags, list):
        return ()
    return tuple(tag.strip() for tag in tags if isinstance(tag, str) and tag.strip())


def _note_version(notebook: dict[str, Any], notes: list[str]) -> None:
    major, minor = notebook.get("nbformat"), notebook.get("nbformat_minor", 0)
    if not isinstance(major, float):
        notes.append("the notebook does not say its format version; read as version 4")
    elif major < 4:
        notes.append(f"an old notebook (format {major:g}), read as version 4")
    elif major > 4 or (isinstance(minor, float) and minor > _MINOR):
        notes.append(f"a notebook of a newer format ({major:g}.{minor}), read as version 4".replace(".0)", ")"))


def _note_language(metadata: dict[str, Any], notes: list[str]) -> None:
    named = (_table(metadata.get("kernelspec")).get("language"), _table(metadata.get("language_info")).get("name"))
    language = next((name for name in named if isinstance(name, str) and name), "python")
    if "python" not in language.lower():
        notes.append(f"the notebook was saved for another language ({one_line(language, 40)}); run as Python")


def _note_ids(cells: list[Any], notes: list[str]) -> None:
    ids = [cell["id"] for cell in cells if isinstance(cell, dict) and isinstance(cell.get("id"), str)]
    if len(set(ids)) < len(ids):
        notes.append("several cells share an id; ids were ignored")


def _note(notes: list[str], note: str) -> None:
    if note not in notes:
        notes.append(note)


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _bounded(cells: list[CodeCell], notes: list[str]) -> Notebook:
    if len(cells) > MAX_CELLS:
        raise UnreadableSubmission(f"it has {len(cells):,} code cells; at most {MAX_CELLS:,} are run")
    if (length := sum(len(cell.source) for cell in cells)) > MAX_CODE:
        raise UnreadableSubmission(f"it holds {length / 2**20:.0f} MB of code; at most {MAX_CODE // 2**20} MB are run")
    if not any(cell.source.strip() for cell in cells):
        notes.append("the notebook has no code")
    return Notebook(tuple(cells), tuple(notes))
