"""Starts the warm parent in the chosen kind of confinement."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

import autograder.worker
from autograder.errors import IsolationUnavailable
from autograder.isolation import bwrap
from autograder.project import Assignment

WORKER = Path(autograder.worker.__file__).parent
START = (
    "import sys, json; sys.path.insert(0, sys.argv[3]);"
    "from autograder.worker.warm_parent import main; main(int(sys.argv[1]), json.loads(sys.argv[2]))"
)
PASSED_ON = ("OPENBLAS_", "MKL_", "ATEN_", "LC_", "LANG")
START_SECONDS = 60.0
SCRATCH_MB = 256


@dataclass
class Launched:
    """A running warm parent: its process here, its control socket, its words on standard error."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    words: IO[bytes]
    scratch: Path
    handed_out: str | None
    own_namespace: bool
    remove: Path | None

    def last_words(self) -> str:
        """The last line on standard error, for a message."""
        self.words.seek(0)
        lines = self.words.read()[-4000:].decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """Ends the warm parent and everything in its sandbox."""
        self.control.close()
        survivors = [] if self.own_namespace else _descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        for survivor in survivors:
            survivor.kill()
        self.words.close()
        if self.remove is not None:
            shutil.rmtree(self.remove, ignore_errors=True)


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return []


def launch(mode: str, assignment: Assignment) -> Launched:
    """Starts a warm parent under `mode` (bwrap, uid or none); raises IsolationUnavailable with one line."""
    files = assignment.files if assignment.files.is_dir() else None
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    words = tempfile.TemporaryFile()  # noqa: SIM115
    if mode == "bwrap":
        prefix = [*bwrap.command(WORKER, files, assignment.root, SCRATCH_MB), "--"]
        library, scratch, handed_out, remove = bwrap.WORKER_LIBRARY, bwrap.SCRATCH, bwrap.HANDED_OUT, None
    else:
        remove = Path(tempfile.mkdtemp(prefix="autograder-"))
        library, scratch, handed_out = _lay_out(remove, files, open_to_all=mode == "uid")
        prefix = []
        if mode == "uid":
            refuse_readable(assignment)
            refuse_unreachable_interpreter()
    settings = {
        "preload": list(assignment.preload),
        "own_namespace": mode == "bwrap",
        "scratch": str(scratch),
        "remove": str(remove) if remove else None,
    }
    python = [sys.executable, "-s", "-P", "-c", START, str(there.fileno()), json.dumps(settings), str(library)]
    try:
        process = subprocess.Popen(
            [*prefix, *python],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=words,
            env=clean_environment(scratch),
            cwd="/" if mode == "bwrap" else scratch,
            pass_fds=[there.fileno()],
            start_new_session=True,
        )
    except OSError as error:
        raise IsolationUnavailable(f"the worker cannot be started: {error}") from None
    finally:
        there.close()
    handed_out_path = str(handed_out) if files else None
    return Launched(process, here, words, scratch, handed_out_path, mode == "bwrap", remove)


def _lay_out(top: Path, files: Path | None, open_to_all: bool) -> tuple[Path, Path, Path]:
    """Copies what a worker needs to a folder of its own, for the modes without a mount namespace."""
    library, scratch, handed_out = top / "library", top / "scratch", top / "handed_out"
    (library / "autograder").mkdir(parents=True)
    shutil.copyfile(WORKER.parent / "__init__.py", library / "autograder" / "__init__.py")
    shutil.copytree(WORKER, library / "autograder" / "worker", ignore=shutil.ignore_patterns("__pycache__"))
    if files is not None:
        shutil.copytree(files, handed_out, ignore=shutil.ignore_patterns("__pycache__"))
    scratch.mkdir()
    if open_to_all:
        for folder, _, names in os.walk(top):
            Path(folder).chmod(0o755)
            for name in names:
                Path(folder, name).chmod(0o644)
        scratch.chmod(0o1777)
    return library, scratch, handed_out


def refuse_readable(assignment: Assignment) -> None:
    """Raises IsolationUnavailable when another uid could read the cases or solutions."""
    for path in (assignment.folder, assignment.solutions):
        if all(folder.stat().st_mode & 0o001 for folder in path.parents) and path.stat().st_mode & 0o005:
            raise IsolationUnavailable(
                f"isolation 'uid' needs {path} closed to other users: "
                f"chmod 700 {assignment.root}/assignments {assignment.root}/solutions, then run again"
            )


def refuse_unreachable_interpreter() -> None:
    """Raises IsolationUnavailable when another uid could not run this Python: every answer would seem missing."""
    for folder in bwrap.interpreter_folders():
        closed = [path for path in (folder, *folder.parents) if not path.stat().st_mode & 0o001]
        if closed:
            raise IsolationUnavailable(
                f"isolation 'uid' needs a Python that other users can run; {closed[-1]} is closed to them: "
                "install it elsewhere, or chmod o+x that folder"
            )


def clean_environment(scratch: Path) -> dict[str, str]:
    """The worker's whole environment: one thread, no network for pip, nothing of the grader's own."""
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "IPYTHONDIR": str(scratch / ".ipython"),
        "MPLCONFIGDIR": str(scratch / ".matplotlib"),
        "MPLBACKEND": "Agg",
        "USER": "student",
        "LOGNAME": "student",
        "LANG": "C.UTF-8",
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MALLOC_ARENA_MAX": "2",
        "PIP_NO_INDEX": "1",
        "PIP_RETRIES": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "TQDM_DISABLE": "1",
    }
    for library in ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "VECLIB_MAXIMUM"):
        environment[f"{library}_NUM_THREADS"] = "1"
    for name, value in os.environ.items():
        if name.startswith(PASSED_ON) and name not in environment:
            environment[name] = value
    return environment


def unused_uid(attempt: int) -> int:
    """A uid that nobody has and no process runs under, within what a container maps."""
    running = {process.info["uids"].real for process in psutil.process_iter(["uids"]) if process.info["uids"]}
    for step in range(1000):
        uid = 20_000 + (os.getpid() * 101 + attempt + step) % 40_000
        try:
            pwd.getpwuid(uid)
        except KeyError:
            if uid not in running:
                return uid
    raise IsolationUnavailable("no unused uid between 20000 and 60000 for the worker")
