"""One submission's process: runs cells and, in forks of itself, probes; answers on a fresh channel each time."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import shutil
import socket
import sys
import types
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import ThreadpoolController

from autograder.worker import limits
from autograder.worker.encode import encode_reply
from autograder.worker.exceptions import describe
from autograder.worker.frames import receive_frame
from autograder.worker.helpers import run_only
from autograder.worker.names import Missing, Names
from autograder.worker.numeric_state import reset_numeric_state
from autograder.worker.output import BoundedOutput
from autograder.worker.shell import CellShell
from autograder.worker.watchers import watched

# Kept before any student code runs: a notebook that patches `os` for its own tests is still served.
fork, leave, wait_for = os.fork, os._exit, os.waitpid

MOST_REQUEST = 256 << 20
MESSAGE = 600


class NotebookProcess:
    """Serves requests on its control socket until that closes; never returns to the warm parent's code."""

    def __init__(
        self, control: socket.socket, shell: CellShell, threads: ThreadpoolController, settings: dict[str, Any]
    ) -> None:
        self.control = control
        self.shell = shell
        self.settings = settings
        self.output: BoundedOutput = shell.capture(int(settings["output_kb"]) << 10)
        self.threads = threads
        self.definitions: dict[str, Any] = {}

    def serve(self) -> None:
        """Answers one request after another."""
        while (frame := receive_frame(self.control, MOST_REQUEST)) is not None:
            payload, (descriptor,) = frame
            request = pickle.loads(payload)  # from the grader process: the trusted side may pickle towards here
            with socket.socket(fileno=descriptor) as channel:
                if request["do"] == "cell":
                    channel.sendall(self.run_cell(request))
                elif request["do"] == "settle":
                    channel.sendall(encode_reply("settled", notes=self.restore_overwritten()))
                else:
                    self.fork_probe(request, channel)

    def run_cell(self, request: dict[str, Any]) -> bytes:
        """Runs one cell in this process; the reply says how it went and what it printed."""
        cpu, wall = request["cpu_seconds"], request["wall_seconds"]
        limits.limit_cpu(cpu + 3, hard=False)
        outcome, message = self.shell.run(request["source"], cpu, wall)
        self.note_definitions()
        return encode_reply("cell", outcome=outcome, message=message[:MESSAGE], printed=self.output.take())

    def note_definitions(self) -> None:
        """Remembers what each name held while it was a function, a class or a module."""
        for name, value in self.shell.namespace.items():
            if not name.startswith("_") and isinstance(value, (types.FunctionType, types.ModuleType, type)):
                self.definitions[name] = value

    def restore_overwritten(self) -> list[str]:
        """Gives a function, class or module back the name that a later cell used for plain data."""
        notes = []
        for name, value in self.definitions.items():
            now = self.shell.namespace.get(name, value)
            if now is not value and not callable(now) and not isinstance(now, types.ModuleType):
                self.shell.namespace[name] = value
                notes.append(f"`{name}` was overwritten by a later cell; its definition was graded")
        return notes

    def fork_probe(self, request: dict[str, Any], channel: socket.socket) -> None:
        """Runs a probe in a fork, so that a case sees the notebook as its last cell left it."""
        gc.freeze()
        child = fork()
        if child == 0:
            status = 1
            try:
                self.control.close()
                limits.limit_cpu(request["cpu_seconds"], hard=True)
                channel.sendall(self.probe_reply(request))
                status = 0
            finally:
                leave(status)
        channel.close()
        with contextlib.suppress(ChildProcessError):
            wait_for(child, 0)

    def probe_reply(self, request: dict[str, Any]) -> bytes:
        """The reply to a probe: an observation, or why there is none."""
        self.output.take()
        with contextlib.suppress(OSError):
            os.chdir(self.settings["folder"])
        with self.threads.limit(limits=1):
            reset_numeric_state(request["seed"])
            try:
                run_only(request["part"])
                probe, inputs = pickle.loads(request["probe"]), pickle.loads(request["inputs"])
                with watched(tuple(request["forbid"])) as shortcuts:
                    value = probe(Names(self.shell.namespace), *inputs)
                if shortcuts:
                    return encode_reply("shortcut", names=sorted(shortcuts))
                return encode_reply("observation", value)
            except Missing as missing:
                return encode_reply("missing", name=missing.name, unfilled=missing.unfilled)
            except NotImplementedError as error:
                return encode_reply("missing", name=describe(error)[:MESSAGE], unfilled=True)
            except SystemExit:
                return encode_reply("raised", type="SystemExit", message="the code called exit() or sys.exit()")
            except BaseException as error:
                return encode_reply("raised", type=type(error).__name__[:100], message=describe(error)[:MESSAGE])


def start(control: socket.socket, shell: CellShell, threads: ThreadpoolController, settings: dict[str, Any]) -> None:
    """What the forked process does first: a session, limits and an identity of its own. Does not return."""
    try:
        importable = [path for path in sys.path if os.path.isdir(path)]
        os.setsid()
        keep_only(control)
        if settings["uid"] is not None:
            limits.become(int(settings["uid"]))
        os.umask(0o022)
        limits.prctl(limits.PR_SET_NO_NEW_PRIVS, 1)
        limits.prctl(limits.PR_SET_DUMPABLE, 1)
        limits.first_victim_when_memory_is_short()
        limits.apply_limits(int(settings["memory_mb"]) << 20, int(settings["processes"]))
        refuse_unreadable(importable)
        enter_folder(Path(settings["folder"]), settings["handed_out"])
        os.dup2(0, 2)
        torch.set_num_threads = _one_thread  # type: ignore[assignment]
        process = NotebookProcess(control, shell, threads, settings)
        control.sendall(b"R")
        process.serve()
    except BaseException as error:
        os.write(2, f"worker: {type(error).__name__}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(0)


def refuse_unreadable(folders: list[str]) -> None:
    """Raises OSError when this process, as who it is now, cannot import from these folders.

    Otherwise every answer would seem missing, and the submission would get nothing.
    """
    for folder in folders:
        if not os.access(folder, os.R_OK | os.X_OK):
            raise OSError(f"{folder} is closed to uid {os.getuid()}")


def keep_only(control: socket.socket) -> None:
    """Closes every inherited descriptor but the control socket; standard input and output lead nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nowhere, standard)  # standard error stays until the process is set up, for its last words
    own = control.fileno()
    os.closerange(3, own)
    os.closerange(own + 1, 4096)
    os.set_inheritable(own, False)


def enter_folder(folder: Path, handed_out: str | None) -> None:
    """Makes the submission's own working folder, with a copy of the handed-out files, and enters it."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    if handed_out and Path(handed_out).is_dir():
        shutil.copytree(handed_out, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
    os.chdir(folder)
    home = str(folder)
    os.environ.update(HOME=home, PWD=home, MPLCONFIGDIR=f"{home}/.matplotlib", IPYTHONDIR=f"{home}/.ipython")
    sys.path.insert(0, "")


def _one_thread(_: int) -> None:
    print("(grading runs on one thread: set_num_threads does nothing here)")
