"""A notebook that tries, from inside, to reach what it must not reach, and says what it reached."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from typing import Any

import nbformat

MARKER = "/pwned"
# What the notebook says at last.
FINDINGS = r"attempts made: \d+; reached: (?P<reached>[^;]*); uid (?P<uid>\d+)"

SETUP = """
import contextlib, ctypes, os, pathlib, resource, signal, socket
attempts, reached = [], []

@contextlib.contextmanager
def attempt(what):
    attempts.append(what)
    try:
        yield
    except (OSError, ImportError, ValueError):
        return
    except BaseException as error:
        what = f"{what}? {error!r}"
    reached.append(what)

def refuse(unless):
    if not unless:
        raise PermissionError
"""

FILES = """
for name in ("source", "results", "submission", "handed_in", "content"):
    with attempt(f"list {name}"):
        os.listdir(f"/autograder/{name}")
for name in ("results/results.json", "results/results.pkl", "source/run_otter.py", "run_autograder",
             "source/engine/autograder/results.py", "submission/x.ipynb"):
    with attempt(f"write {name}"):
        open(f"/autograder/{name}", "a").close()
for name in ("source/requirements.autograder.zip", "submission_metadata.json"):
    with attempt(f"read {name}"):
        open(f"/autograder/{name}", "rb").read(1)
with attempt("close a folder of the grader"):
    os.chmod("/autograder/results", 0)
with attempt("find hidden cases, solutions or notebooks"):
    found = []
    for folder, folders, names in os.walk("/"):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in ("/proc", "/sys", "/dev")
                      and name != "site-packages"]
        found += [name for name in [*folders, *names]
                  if name in ("assignments", "solutions") or name.startswith("hw4_") or name.endswith(".ipynb")]
    refuse(unless=found)
with attempt("import the solutions"):
    __import__("solutions")
with attempt("import the cases"):
    __import__("assignments")
"""

PROCESSES = """
mine = {os.getpid()}
others = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in mine]
libc = ctypes.CDLL(None, use_errno=True)
with attempt("see the grader's environment"):
    refuse(unless=[open(f"/proc/{pid}/environ", "rb").read() for pid in others if pid == 1])
with attempt("be root"):
    os.setuid(0)
for pid in others:
    try:
        owner = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        continue
    if owner == os.getuid() and pid != 1:
        continue
    with attempt("signal another process"):
        os.kill(pid, 0)
    with attempt("read another process's memory"):
        open(f"/proc/{pid}/mem", "rb")
    with attempt("limit another process"):
        resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1))
    with attempt("trace another process"):
        refuse(unless=libc.ptrace(16, pid, 0, 0) == 0)
    with attempt("see another process's folder"):
        os.listdir(f"/proc/{pid}/cwd")
"""

# Connecting a datagram socket sends nothing; it only asks whether there is a way to the address.
NETWORK = """
for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
    with attempt("have a way to the network"), socket.socket(family, socket.SOCK_DGRAM) as connection:
        connection.connect((address, 9))
with attempt("look up a name"):
    socket.getaddrinfo("example.invalid", 80)
"""

REPORT = """
found = ", ".join(sorted(set(reached))) or "nothing"
raise RuntimeError(f"attempts made: {len(attempts)}; reached: {found}; uid {os.getuid()}")
"""


def hostile_notebook() -> str:
    """The notebook; its last cell raises an error that says what was reached."""
    cells = [nbformat.v4.new_code_cell(source) for source in (SETUP, FILES, PROCESSES, NETWORK, REPORT)]
    return str(nbformat.writes(nbformat.v4.new_notebook(cells=cells)))


class _Runs:
    """Unpickles to whatever its code makes."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return exec, (self.code,)


def hostile_zip(marker: str = MARKER) -> bytes:
    """A submission that runs code in whoever unpickles its log, or imports what lies in its folder.

    The code makes the file `marker`.
    """
    code = f"open({marker!r}, 'w').close()"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("submission.ipynb", nbformat.writes(nbformat.v4.new_notebook()))
        archive.writestr(".OTTER_LOG", pickle.dumps(_Runs(code)))
        for module in ("nbformat", "otter", "torch", "autograder"):
            archive.writestr(f"{module}/__init__.py", code)
        archive.writestr("sitecustomize.py", code)
    return buffer.getvalue()
