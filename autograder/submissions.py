"""Finds the submissions in what an instructor has: files, folders, students' zips, downloads from a learning platform.

- A file that is named is a submission.
- In a folder every notebook is one, at any depth, and every zip is one student's, unless it looks like a download.
- A zip is a download when it holds zips, or notebooks in several folders, or is named and holds several notebooks;
  it is then read like a folder. Otter's exports and zips inside zips are always one student's.
- A script is a submission unless it lies with exactly one notebook: then it is a module of that notebook.
- A student's folder or zip in which there is no notebook is a submission, too: an unreadable one.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from autograder import archives
from autograder.archives import ZipTrouble
from autograder.errors import AutograderError
from autograder.notebook import MAX_BYTES
from autograder.notebook_scripts import has_cell_marks
from autograder.plaintext import one_line
from autograder.submission_ids import assign_ids

MAX_FILES = 100_000

_OTTER_MARKS = {".OTTER_LOG", "__zip_filename__"}
# Files that somebody may have handed in instead of a notebook.
_INSTEAD = {".pdf", ".html", ".htm", ".docx", ".doc", ".odt", ".rar", ".7z", ".tar", ".tgz", ".gz", ".rmd", ".qmd"}


@dataclass(frozen=True)
class Submission:
    """One hand-in. `id` names its files and its row; `name` is where it was found; `reason` says why not to read it."""

    id: str
    name: str
    filename: str
    path: Path | None
    sha256: str
    reason: str = ""

    def read(self) -> bytes:
        """The notebook's bytes; raises OSError."""
        assert self.path is not None, "an unreadable submission has no content"
        return self.path.read_bytes()


@dataclass(frozen=True)
class _Entry:
    """A file or a folder, on disk or in a zip."""

    parts: tuple[str, ...]
    read: Callable[[], bytes]
    problem: str = ""
    path: Path | None = None
    folder: bool = False

    @property
    def name(self) -> str:
        return self.parts[-1]

    @property
    def suffix(self) -> str:
        return PurePath(self.name.lower().removesuffix(".txt").removesuffix(".json")).suffix

    @property
    def is_notebook(self) -> bool:
        return not self.folder and (self.suffix == ".ipynb" or self.name.lower() == ".ipynb")

    @property
    def is_zip(self) -> bool:
        return not self.folder and self.name.lower().endswith(".zip")

    @property
    def is_script(self) -> bool:
        return not self.folder and self.name.lower().endswith(".py")

    @property
    def is_instead(self) -> bool:
        return not self.folder and self.suffix in _INSTEAD


@dataclass(frozen=True)
class _Found:
    """A hand-in before its id is known; `outer` tells apart what is called the same in two of the paths given."""

    parts: tuple[str, ...]
    outer: str
    filename: str
    path: Path | None
    sha256: str
    reason: str = ""
    source: Path | None = None


@dataclass
class _Finder:
    scratch: Path
    assignment: str
    handed_out: frozenset[str]
    ignored: Callable[[str], None]
    written: int = 0
    budget: int = archives.MAX_TOTAL

    def given(self, path: Path, skip: frozenset[Path]) -> Iterator[_Found]:
        """The hand-ins in one of the paths given; the order is that of the names."""
        try:
            real = path.resolve()
            mode = real.stat().st_mode
        except (OSError, RuntimeError):
            raise AutograderError(f"{path}: there is no such file or folder") from None
        if stat.S_ISDIR(mode):
            yield from self._folder(path, real, skip)
            return
        if not stat.S_ISREG(mode):
            raise AutograderError(f"{path}: neither a file nor a folder")
        entry = _disk_entry(real, (one_line(real.name, 150),))
        if entry.is_zip or (not entry.is_notebook and _starts_like_zip(real)):
            found = list(self._zip(entry, named=True))
        else:
            found = [self._file(entry)]
        yield from (replace(one, outer=str(path.parent)) for one in found)

    def _folder(self, given: Path, real: Path, skip: frozenset[Path]) -> Iterator[_Found]:
        entries = list(_walk(real, (), skip, [0]))
        found = list(self._hand_ins(entries, depth=1))
        if not found:
            raise AutograderError(f"{given}: no notebook, script or zip in this folder or below it")
        yield from (replace(one, outer=str(given)) for one in found)

    def _hand_ins(self, entries: Sequence[_Entry], depth: int) -> Iterator[_Found]:
        """What a folder, or a download read as one, holds."""
        notebooks: dict[tuple[str, ...], int] = {}
        for entry in entries:
            if entry.is_notebook:
                notebooks[entry.parts[:-1]] = notebooks.get(entry.parts[:-1], 0) + 1
        spoken_for: set[tuple[str, ...]] = set()
        for entry in sorted(entries, key=lambda entry: entry.parts):
            taken = False
            if entry.is_zip:
                yield from self._zip(entry, named=False, depth=depth)
                taken = True
            elif entry.is_notebook or self._is_hand_in(entry, notebooks):
                yield self._file(entry)
                taken = True
            if taken:
                spoken_for.update(entry.parts[:depth] for depth in range(len(entry.parts)))
            elif not entry.folder:
                self.ignored("/".join(entry.parts))
        yield from self._students_without(entries, spoken_for, notebooks)

    def _is_hand_in(self, entry: _Entry, notebooks: dict[tuple[str, ...], int]) -> bool:
        if entry.folder:
            return bool(entry.problem)
        if not (entry.is_script or entry.is_instead) or entry.name in self.handed_out:
            return False
        if entry.is_script and not entry.problem and has_cell_marks(_beginning(entry)):
            return True
        above = [entry.parts[:depth] for depth in range(len(entry.parts))]
        return not any(notebooks.get(folder) == 1 for folder in above)

    def _students_without(
        self, entries: Sequence[_Entry], spoken_for: set[tuple[str, ...]], notebooks: dict[tuple[str, ...], int]
    ) -> Iterator[_Found]:
        """Where each student has a folder: those whose folder holds no hand-in."""
        if () in notebooks or not any(len(folder) == 1 for folder in spoken_for):
            return
        folders = {entry.parts[:1] for entry in entries if len(entry.parts) > 1 or entry.folder}
        for folder in sorted(folders - spoken_for):
            inside = [
                "/".join(e.parts[1:]) for e in entries if e.parts[:1] == folder and len(e.parts) > 1 and not e.folder
            ]
            if not any(entry.parts == folder and entry.problem for entry in entries):
                yield _unreadable(folder, f"no notebook in this folder{_listing(inside)}")

    def _zip(self, entry: _Entry, *, named: bool, depth: int = 1) -> Iterator[_Found]:
        parts = (*entry.parts[:-1], _without_suffix(entry.name))
        try:
            inside = self._open(entry, depth)
        except (ZipTrouble, OSError) as trouble:
            yield _unreadable(parts, _reason(trouble), entry.path)
            return
        if not self._is_download(inside, named, depth):
            yield replace(self._student_zip(parts, inside, depth), source=entry.path)
            return
        for one in self._hand_ins(_without_common_folder(inside), depth + 1):
            yield replace(one, parts=one.parts if named else (*parts, *one.parts), source=entry.path)

    def _open(self, entry: _Entry, depth: int) -> list[_Entry]:
        if entry.problem:
            raise ZipTrouble(entry.problem)
        if depth > archives.MAX_DEPTH:
            raise ZipTrouble(f"zip files inside zip files, more than {archives.MAX_DEPTH} deep")
        members = archives.members(entry.read() if entry.path is None else entry.path.open("rb"))
        return [_Entry(member.parts, member.read, member.problem) for member in members]

    def _is_download(self, inside: list[_Entry], named: bool, depth: int) -> bool:
        if depth > 1 or _OTTER_MARKS & {entry.name for entry in inside}:
            return False
        notebooks = [entry for entry in inside if entry.is_notebook]
        if any(entry.is_zip for entry in inside):
            return len(notebooks) + sum(entry.is_zip for entry in inside) > 1
        return len(notebooks) > 1 and (named or len({entry.parts[:-1] for entry in notebooks}) > 1)

    def _student_zip(self, parts: tuple[str, ...], inside: list[_Entry], depth: int) -> _Found:
        """The one notebook of a student's zip: the only one, or the only one named after the assignment."""
        notebooks = [entry for entry in inside if entry.is_notebook]
        zips = [entry for entry in inside if entry.is_zip]
        scripts = [entry for entry in inside if entry.is_script and entry.name not in self.handed_out]
        candidates = notebooks or zips or scripts
        if len(candidates) > 1:
            candidates = [entry for entry in candidates if self._is_named(entry)] or candidates
        if len(candidates) > 1:
            names = _listing(["/".join(entry.parts) for entry in candidates], ": ")
            return _unreadable(parts, f"the zip file holds {len(candidates)} notebooks, and one is graded{names}")
        if not candidates:
            listing = _listing(["/".join(entry.parts) for entry in inside])
            return _unreadable(parts, f"the zip file holds no notebook{listing}")
        chosen = candidates[0]
        if chosen.is_zip:
            [only] = self._zip(chosen, named=False, depth=depth + 1)
            return replace(only, parts=parts)
        return replace(self._file(chosen), parts=parts)

    def _is_named(self, entry: _Entry) -> bool:
        letters = "".join(filter(str.isalnum, self.assignment.lower()))
        return bool(letters) and letters in "".join(filter(str.isalnum, entry.name.lower()))

    def _file(self, entry: _Entry) -> _Found:
        """The hand-in that a file is; a member of a zip is put into the scratch folder under a name of ours."""
        parts = (*entry.parts[:-1], _without_suffix(entry.name))
        if entry.problem:
            return _unreadable(parts, entry.problem, entry.path)
        try:
            content = entry.read()
        except (ZipTrouble, OSError) as trouble:
            return _unreadable(parts, _reason(trouble), entry.path)
        path = entry.path or self._keep(content)
        if path is None:
            return _unreadable(parts, f"the zip files hold more than {archives.MAX_TOTAL // 2**30} GB of notebooks")
        return _Found(parts, "", entry.name, path, hashlib.sha256(content).hexdigest(), source=entry.path)

    def _keep(self, content: bytes) -> Path | None:
        self.budget -= len(content)
        if self.budget < 0:
            return None
        path = self.scratch / f"{self.written:06}"
        self.written += 1
        try:
            self.scratch.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            raise AutograderError(f"{self.scratch}: cannot unpack a zip file there ({error.strerror})") from None
        return path


def find_submissions(
    paths: Iterable[Path],
    scratch: Path,
    *,
    assignment: str = "",
    handed_out: Iterable[str] = (),
    skip: Iterable[Path] = (),
    ignored: Callable[[str], None] = lambda name: None,
) -> list[Submission]:
    """Every submission in the given files and folders, sorted by id; the same file given twice counts once.

    `scratch` receives what has to be taken out of zips. `assignment` decides between two notebooks of one student;
    `handed_out` names files that are not the students' own; folders in `skip` are passed over; `ignored` is told of
    each file that is no submission.

    Raises `AutograderError` for a path that does not exist and a folder without any submission.
    """
    finder = _Finder(scratch, assignment, frozenset(handed_out), ignored)
    passed_over = frozenset(path.resolve() for path in skip)
    found: list[_Found] = []
    seen: set[Path] = set()
    for path in paths:
        new = [one for one in finder.given(path, passed_over) if one.source is None or one.source not in seen]
        seen.update(one.source for one in new if one.source is not None)
        found = list(dict.fromkeys([*found, *new]))
    ids = assign_ids([(one.parts, one.outer) for one in found])
    submissions = [
        Submission(id, "/".join(one.parts), one.filename, one.path, one.sha256, one.reason)
        for id, one in zip(ids, found, strict=True)
    ]
    return sorted(submissions, key=lambda submission: (submission.id.lower(), submission.id))


def _walk(folder: Path, above: tuple[str, ...], skip: frozenset[Path], count: list[int]) -> Iterator[_Entry]:
    try:
        children = sorted(os.scandir(folder), key=lambda child: child.name)
    except OSError as error:
        yield _Entry(above or (folder.name,), _nothing, f"the folder cannot be read ({error.strerror})", folder=True)
        return
    for child in children:
        parts = (*above, one_line(child.name, 150) or "unnamed")
        path = Path(child.path)
        if archives.is_litter((child.name,)) or path in skip:
            continue
        count[0] += 1
        if count[0] > MAX_FILES:
            raise AutograderError(f"more than {MAX_FILES:,} files; give the folder that holds the submissions")
        if child.is_dir(follow_symlinks=False):
            if not child.name.startswith("."):
                yield _Entry(parts, _nothing, folder=True)
                yield from _walk(path, parts, skip, count)
        elif child.is_symlink() and child.is_dir():
            yield _Entry(parts, _nothing, "it is a symbolic link to a folder, and those are not followed", folder=True)
        elif not child.name.startswith(".") or child.name.endswith(".ipynb"):
            yield _disk_entry(path, parts)


def _disk_entry(path: Path, parts: tuple[str, ...]) -> _Entry:
    try:
        status = path.lstat()
    except OSError as error:
        return _Entry(parts, _nothing, f"it cannot be read ({error.strerror})", path)
    if stat.S_ISLNK(status.st_mode):
        return _Entry(parts, _nothing, "it is a symbolic link, and those are not followed", path)
    if not stat.S_ISREG(status.st_mode):
        return _Entry(parts, _nothing, "it is not an ordinary file", path)
    entry = _Entry(parts, path.read_bytes, "", path)
    if status.st_size > MAX_BYTES and not entry.is_zip:
        size = f"it is {status.st_size / 2**20:,.0f} MB; at most {MAX_BYTES // 2**20} MB are read"
        return replace(entry, problem=size)
    return entry


def _beginning(entry: _Entry) -> str:
    try:
        return entry.read()[:100_000].decode("utf-8", "replace").lstrip("\ufeff")
    except (ZipTrouble, OSError):
        return ""


def _starts_like_zip(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return archives.is_zip(file.read(4))
    except OSError:
        return False


def _without_common_folder(entries: list[_Entry]) -> list[_Entry]:
    while len({entry.parts[0] for entry in entries}) == 1 and all(len(entry.parts) > 1 for entry in entries):
        entries = [replace(entry, parts=entry.parts[1:]) for entry in entries]
    return entries


def _without_suffix(name: str) -> str:
    lower = name.lower()
    for suffix in (".ipynb.txt", ".ipynb.json", ".ipynb", ".zip", ".py"):
        if lower.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return name


def _listing(names: list[str], before: str = "; found: ") -> str:
    shown = ", ".join(sorted(names)[:5])
    return (before + one_line(shown, 250) + (f" and {len(names) - 5} more" if len(names) > 5 else "")) if names else ""


def _reason(trouble: ZipTrouble | OSError) -> str:
    return f"it cannot be read ({trouble.strerror})" if isinstance(trouble, OSError) else str(trouble)


def _unreadable(parts: tuple[str, ...], reason: str, source: Path | None = None) -> _Found:
    return _Found(parts, "", parts[-1], None, "", reason, source)


def _nothing() -> bytes:
    return b""
