"""Reads zip files that may be hostile: in memory, within limits, never extracting to a name found inside."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from autograder.plaintext import one_line

MAX_MEMBER = 100 * 2**20
MAX_MEMBERS = 20_000
MAX_DIRECTORY = 8 * 2**20
MAX_TOTAL = 4 * 2**30
MAX_RATIO = 1000
MAX_DEPTH = 3

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_CHUNK = 2**20
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_SKIPPED = {"__MACOSX", ".ipynb_checkpoints", "__pycache__", "node_modules", ".git"}


class ZipTrouble(Exception):
    """A zip file, or a member of one, that is not read; the message says why."""


@dataclass(frozen=True)
class Member:
    """A file inside a zip. `parts` are its folder names and its name, made harmless; `problem` says why not to read."""

    parts: tuple[str, ...]
    size: int
    problem: str
    _read: Callable[[], bytes]

    def read(self) -> bytes:
        """The content; raises `ZipTrouble` when it is too large, damaged or locked."""
        if self.problem:
            raise ZipTrouble(self.problem)
        return self._read()


class _Guarded:
    """A file that refuses huge single reads: `zipfile` loads a whole directory before it can be asked its length."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.close = file.seek, file.tell, file.close

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size > MAX_DIRECTORY:
            raise ZipTrouble(f"the zip file lists more than {MAX_MEMBERS:,} files")
        return self._file.read(size)


def is_zip(data: bytes) -> bool:
    return data.startswith(MAGIC)


def is_litter(parts: tuple[str, ...]) -> bool:
    """Whether a path is what systems and tools leave behind, not something handed in."""
    return not parts or not _SKIPPED.isdisjoint(parts) or parts[-1].startswith(("._", ".~")) or parts[-1] == ".DS_Store"


def members(file: IO[bytes] | bytes) -> list[Member]:
    """The files in a zip, without folders and what macOS and Jupyter add; raises `ZipTrouble`."""
    file = io.BytesIO(file) if isinstance(file, bytes) else file
    try:
        if not is_zip(file.read(4)):
            raise ZipTrouble("it is not a zip file, though its name says so")
        length = file.seek(0, io.SEEK_END)
        archive = zipfile.ZipFile(_Guarded(file))
        entries = archive.infolist()
    except ZipTrouble:
        raise
    except Exception:  # whatever a malformed directory makes zipfile raise
        raise ZipTrouble("the zip file is damaged or cut off") from None
    if len(entries) > MAX_MEMBERS:
        raise ZipTrouble(f"the zip file lists more than {MAX_MEMBERS:,} files")
    total = sum(entry.file_size for entry in entries)
    if total > MAX_TOTAL or total > MAX_RATIO * max(length, 1):
        raise ZipTrouble(f"the zip file of {length:,} bytes claims to hold {total:,} bytes")
    return [member for entry in entries for member in _member(archive, entry)]


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[Member]:
    parts = _parts(entry)
    mode = entry.external_attr >> 16
    if is_litter(parts) or entry.filename.endswith(("/", "\\")) or stat.S_ISDIR(mode):
        return
    problem = ""
    if stat.S_IFMT(mode) and not stat.S_ISREG(mode):
        problem = "it is a symbolic link or a special file, and those are not followed"
    elif entry.flag_bits & 0x1:
        problem = "the zip file is locked with a password"
    elif entry.compress_type not in _METHODS:
        problem = f"the zip file uses compression method {entry.compress_type}; pack it as an ordinary zip"
    elif entry.file_size > MAX_MEMBER:
        problem = f"it is {entry.file_size / 2**20:,.0f} MB; at most {MAX_MEMBER // 2**20} MB are read"
    yield Member(parts, entry.file_size, problem, lambda: _content(archive, entry))


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    content = bytearray()
    try:
        with archive.open(entry) as file:
            while chunk := file.read(_CHUNK):
                content += chunk
                if len(content) > MAX_MEMBER:
                    raise ZipTrouble(f"it holds more than {MAX_MEMBER // 2**20} MB")
    except ZipTrouble:
        raise
    except Exception:  # a wrong checksum, a bad stream, a header that contradicts the directory
        raise ZipTrouble("it is damaged inside the zip file") from None
    return bytes(content)


def _parts(entry: zipfile.ZipInfo) -> tuple[str, ...]:
    name = entry.filename
    if not entry.flag_bits & 0x800 and not name.isascii():
        # macOS writes UTF-8 without saying so; zipfile then took it for code page 437.
        try:
            name = name.encode("cp437").decode("utf-8")
        except UnicodeError:
            name = entry.filename
    pieces = (one_line(piece, 150) for piece in name.replace("\\", "/").split("/"))
    return tuple(piece for piece in pieces if piece not in ("", ".", ".."))
