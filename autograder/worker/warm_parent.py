"""The warm parent: libraries loaded, no student code, no case; forks one process per submission.

It is told what to do on a socket by the grader process and reports facts; it decides nothing about marks.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from autograder.worker.frames import receive_frame, send_frame

MOST_COMMAND = 64 << 10
SHARED_PLACES = [Path("/tmp"), Path("/var/tmp"), Path("/dev/shm")]


class WarmParent:
    """Waits for commands: fork a submission's process, end strays, clean up."""

    def __init__(self, control: socket.socket, settings: dict[str, Any]) -> None:
        self.control = control
        self.settings = settings
        self.child: int | None = None
        self.own_namespace = bool(settings["own_namespace"])
        from threadpoolctl import ThreadpoolController

        from autograder.worker.shell import CellShell

        self.shell = CellShell()
        self.threads = ThreadpoolController()  # looks through the loaded libraries: once here, not in every fork
        self.scratch = Path(settings["scratch"])
        # What is mounted below the scratch space, such as the environment, is read-only, and stays.
        self.kept = frozenset(path for path in entries(self.scratch) if os.path.ismount(path))
        empty([self.scratch], kept=self.kept)
        self.condition = own_condition()

    def serve(self) -> None:
        """Answers commands until the grader process hangs up."""
        self.say(ready=True, pid=os.getpid())
        while True:
            frame = receive_frame(self.control, MOST_COMMAND)
            if frame is None:
                return
            command, descriptors = json.loads(frame[0]), frame[1]
            if command["do"] == "fork":
                self.fork(command, descriptors[0])
            elif command["do"] == "pids":
                self.say(pids=self.strangers(()))
            elif command["do"] == "kill":
                self.say(left=self.end(tuple(command["keep"]), command["uid"]))
            elif command["do"] == "clean":
                self.say(odd=self.clean(command["uid"]))

    def say(self, **facts: Any) -> None:
        send_frame(self.control, json.dumps(facts).encode())

    def fork(self, command: dict[str, Any], descriptor: int) -> None:
        """Forks a submission's process, unless this parent is no longer what it was."""
        channel = socket.socket(fileno=descriptor)
        if (now := own_condition()) != self.condition:
            changed = sorted(name for name in now if now[name] != self.condition[name])
            self.say(odd=f"the warm parent was tampered with: {', '.join(changed)}")
            channel.close()
            return
        self.child = os.fork()
        if self.child == 0:
            from autograder.worker import notebook_process

            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.control.close()
            notebook_process.start(channel, self.shell, self.threads, command)
        channel.close()
        self.say(pid=self.child)

    def strangers(self, keep: tuple[int, ...]) -> list[int]:
        """Processes that belong to the submission, `keep` aside."""
        if self.own_namespace:
            spared = {1, os.getpid(), *keep}
            return [pid for pid in processes() if pid not in spared]
        return [pid for pid in descendants(os.getpid()) if pid not in keep]

    def end(self, keep: tuple[int, ...], uid: int | None) -> int:
        """Ends the submission's processes, `keep` aside; returns how many would not go."""
        for _ in range(100):
            self.reap()
            victims = self.strangers(keep)
            if uid is not None and not self.own_namespace and not keep:
                as_uid(uid, end_everything)
                victims = [pid for pid in processes() if owner(pid) == uid]
            if not victims:
                return 0
            for pid in victims:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)
        return len(self.strangers(keep))

    def reap(self) -> None:
        """Collects children that have ended."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    def clean(self, uid: int | None) -> str:
        """Ends everything of the submission and empties its scratch space; returns what could not be put right."""
        if left := self.end((), uid):
            return f"{left} processes could not be ended"
        self.child = None
        if uid is not None:
            as_uid(uid, lambda: empty([self.scratch, *SHARED_PLACES], self.kept, uid))
        empty([self.scratch, *SHARED_PLACES] if self.own_namespace else [self.scratch], self.kept)
        if remains := set(entries(self.scratch)) - self.kept:
            return f"files left in the scratch space: {', '.join(map(str, remains))[:200]}"
        if self.own_namespace and system_v_objects():
            return "System V objects left behind"
        gc.collect()
        return ""


def entries(folder: Path) -> list[Path]:
    """What lies in a folder; nothing when it cannot be read."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def empty(places: list[Path], kept: frozenset[Path] = frozenset(), uid: int | None = None) -> None:
    """Removes what lies in these folders, `kept` aside, or only what belongs to `uid`."""
    for path in {path for place in places for path in entries(place)} - kept:
        with contextlib.suppress(OSError):
            if uid is not None and path.lstat().st_uid != uid:
                continue
            if path.is_dir() and not path.is_symlink():
                open_folders(path)
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def open_folders(top: Path) -> None:
    """Lets folders be listed and emptied that were closed by their owner."""
    for folder, subfolders, _ in os.walk(top):
        with contextlib.suppress(OSError):
            os.chmod(folder, 0o700)
        for name in subfolders:
            with contextlib.suppress(OSError):
                path = Path(folder, name)
                if not path.is_symlink():
                    path.chmod(0o700)


def as_uid(uid: int, action: Any) -> None:
    """Runs an action in a short-lived child that has taken the submission's uid."""
    child = os.fork()
    if child == 0:
        try:
            from autograder.worker.limits import become

            become(uid)
            action()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def end_everything() -> None:
    """SIGKILL to every process this uid may signal, itself last."""
    os.kill(-1, signal.SIGKILL)


def processes() -> list[int]:
    """All process ids that /proc shows."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if Path("/proc").is_dir() else []


def owner(pid: int) -> int | None:
    """The uid a process runs as, or None when it has gone."""
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None


def descendants(top: int) -> list[int]:
    """Children of a process, their children and so on."""
    import psutil

    try:
        return [process.pid for process in psutil.Process(top).children(recursive=True)]
    except psutil.Error:
        return []


def system_v_objects() -> bool:
    """Whether shared memory, semaphores or message queues are left in this IPC namespace."""
    for kind in ("shm", "sem", "msg"):
        with contextlib.suppress(OSError):
            if len(Path(f"/proc/sysvipc/{kind}").read_text().splitlines()) > 1:
                return True
    return False


def own_condition() -> dict[str, Any]:
    """What a process of the same uid could have changed about this one."""
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    condition: dict[str, Any] = {name: resource.getrlimit(getattr(resource, name)) for name in names}
    condition["niceness"] = os.nice(0)
    if hasattr(os, "sched_getaffinity"):
        condition["affinity"] = sorted(os.sched_getaffinity(0))
        condition["scheduler"] = os.sched_getscheduler(0)
    return condition


def preload(modules: list[str]) -> None:
    """Imports what submissions will import, and settles one thread for all of them."""
    import torch

    from autograder.worker import huge_pages, notebook_process, stand_ins  # noqa: F401

    torch.set_num_threads(1)
    for name in ("numpy", "IPython", *modules):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    rehearse()
    stand_ins.install()
    gc.collect()
    gc.freeze()
    huge_pages.gather()


def rehearse() -> None:
    """Does once what probes do, so that every fork inherits what torch imports and sets up on first use.

    An optimizer's first step alone imports a second's worth of torch.
    """
    import torch

    from autograder.worker.encode import encode_reply
    from autograder.worker.numeric_state import reset_numeric_state
    from autograder.worker.watchers import FAMILIES, watched

    reset_numeric_state()
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for dtype in (torch.float64, torch.float32):
        x = torch.randn(8, 4, dtype=dtype, requires_grad=True)
        with watched((*FAMILIES, "nn.init")):
            ((x - x.mean(dim=0)) / torch.sqrt(x.var(dim=0) + 1e-5)).backward(torch.randn(8, 4, dtype=dtype))
    optimizer.zero_grad()
    torch.nn.BCEWithLogitsLoss()(model(x), torch.zeros(8, 1)).backward()
    optimizer.step()
    encode_reply("observation", {"x": x, "grad": x.grad, "state": dict(model.state_dict())})
    reset_numeric_state()


def main(descriptor: int, settings: dict[str, Any]) -> None:
    """Entry point in the sandbox: the control socket is inherited as `descriptor`."""
    from autograder.worker.limits import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, PR_SET_PDEATHSIG, prctl

    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # what a submission forks twice still ends up below this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)
    preload(settings["preload"])
    parent = WarmParent(control, settings)
    parent.serve()
    if settings["remove"]:  # the grader process has ended, perhaps without time to tidy up
        parent.end((), None)
        shutil.rmtree(settings["remove"], ignore_errors=True)
    sys.exit(0)
