"""From the bytes of a hand-in to its text: encodings, and files that are something else."""

from __future__ import annotations

import codecs
import re

from autograder.errors import UnreadableSubmission

_OTHERS = {
    b"%PDF-": "a PDF document",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"Rar!": "a RAR archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"\x1f\x8b": "a gzip archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"\xd0\xcf\x11\xe0": "an old Office document",
    b"{\\rtf": "a text document",
    b"SQLite format 3\x00": "a database",
    b"\x7fELF": "a program",
    b"MZ": "a program",
    b"\x80\x04\x95": "a pickle",
    b"\x80\x05\x95": "a pickle",
    b"\x89HDF": "an HDF5 file",
}

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_MARKUP = re.compile(
    r"\s*(?:<!--.{0,2000}?-->\s*)*<(!doctype|html|head|body|\?xml|script|div|vscode\.cell)\b", re.I | re.S
)


def _bytes_as_latin(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    wrong = error.object[error.start : error.end]
    try:
        return wrong.decode("cp1252"), error.end
    except UnicodeDecodeError:
        return wrong.decode("latin-1"), error.end


codecs.register_error("autograder.latin", _bytes_as_latin)


def decode(data: bytes) -> tuple[str, list[str]]:
    """The text of a hand-in, without BOM, and notes on what its encoding was.

    Raises `UnreadableSubmission` for an empty file and for files that are recognisably something else.
    """
    if not data.strip(b" \t\r\n\x00\xef\xbb\xbf\xff\xfe"):
        raise UnreadableSubmission("the file is empty")
    for magic, kind in _OTHERS.items():
        if data.startswith(magic):
            raise UnreadableSubmission(f"it is {kind}, not a notebook; the .ipynb file is needed")
    text, notes = _decode(data)
    if _MARKUP.match(text[:8000]):
        raise UnreadableSubmission("it is a web page (HTML) saved under a notebook's name; the .ipynb file is needed")
    if text.startswith("version https://git-lfs"):
        raise UnreadableSubmission("it is a Git LFS pointer, not the notebook itself; run `git lfs pull` and send that")
    return text, notes


def _decode(data: bytes) -> tuple[str, list[str]]:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _strictly(data, encoding, f"had a byte-order mark ({encoding.removesuffix('-sig').upper()})")
    if encoding := _wide(data):
        return _strictly(data, encoding, f"was encoded in {encoding.upper()}")
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError:
        text = data.decode("utf-8", "autograder.latin")
        return text, ["the file was not UTF-8; its bytes that made no sense were read as Windows/Latin-1 letters"]


def _strictly(data: bytes, encoding: str, note: str) -> tuple[str, list[str]]:
    try:
        return data.decode(encoding), [f"the file {note}"]
    except UnicodeDecodeError:
        return data.decode(encoding, "replace"), [f"the file {note} and had damaged characters, now replaced"]


def _wide(data: bytes) -> str:
    """UTF-16 or UTF-32 without a mark: JSON and Python begin with two ASCII characters, so the zeros tell."""
    zeros = "".join("0" if byte == 0 else "x" for byte in data[:4])
    return {"x000": "utf-32-le", "000x": "utf-32-be", "x0x0": "utf-16-le", "0x0x": "utf-16-be"}.get(zeros, "")
