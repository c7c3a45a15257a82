"""Runs a hostile notebook in a sandbox and prints, as JSON, what it reached. Started by test_isolation.py.

usage: python -m tests.attack MODE PROJECT SECRETS PORT
SECRETS is a folder that holds what must stay out of reach beside the project: results and another submission.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from autograder.isolation import Sandbox, open_sandbox
from autograder.isolation.notebook_run import NotebookRun
from autograder.isolation.observation import Reply
from autograder.probes import pack
from autograder.project import Assignment, load_assignment
from tests.support import as_notebook

ATTACK = r"""
import ctypes, gc, os, resource, signal, socket, subprocess, sys
PROJECT, SECRETS, PORT, GRADER = {project!r}, {secrets!r}, {port}, {grader}
reached = {{}}

def attempt(name, action):
    try:
        value = action()
    except BaseException:
        return
    if value not in (None, False, [], "", b"", -1):
        reached[name] = repr(value)[:300]

def read(path):
    with open(path, "rb") as file:
        return file.read(200)

def named(top, *names):
    return [os.path.join(f, n) for f, _, files in os.walk(top) for n in files if n in names]

attempt("hidden cases", lambda: read(PROJECT + "/assignments/tiny/test_scale.py"))
attempt("solutions", lambda: read(PROJECT + "/solutions/tiny.py"))
attempt("project listed", lambda: os.listdir(PROJECT + "/assignments"))
attempt("results", lambda: read(SECRETS + "/results/other.json"))
attempt("another submission", lambda: read(SECRETS + "/other.ipynb"))
attempt("results written", lambda: open(SECRETS + "/results/mine.json", "w").write("full marks"))
attempt("found by name", lambda: named({search!r}, "test_tally.py", "tiny.py", "other.ipynb", "other.json"))
attempt("engine loaded", lambda: [m for m in sys.modules if m.startswith(("autograder.exam", "autograder.ref", "solutions"))])
attempt("network", lambda: socket.create_connection(("127.0.0.1", PORT), 2))
attempt("grader signalled", lambda: os.kill(GRADER, 0) is None)
attempt("grader memory", lambda: read(f"/proc/{{GRADER}}/mem") or read(f"/proc/{{GRADER}}/maps"))
attempt("grader environment", lambda: read(f"/proc/{{GRADER}}/environ"))
attempt("grader files", lambda: os.listdir(f"/proc/{{GRADER}}/fd"))
attempt("parent memory", lambda: open(f"/proc/{{os.getppid()}}/mem", "rb"))
attempt("through another's root", lambda: [p for p in os.listdir("/proc") if p.isdigit()
    and p not in (str(os.getpid()), "self") and os.path.exists(f"/proc/{{p}}/root{{PROJECT}}/solutions")])
attempt("parent traced", lambda: ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0)
attempt("root again", lambda: os.setuid(0) is None)
attempt("root again by group", lambda: os.setgroups([0]) is None)
attempt("mount", lambda: subprocess.run(["mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode == 0)
attempt("environment", lambda: [v for v in os.environ.values() if PROJECT in v or SECRETS in v])
attempt("inherited descriptors", lambda: [
    link for fd in os.listdir("/proc/self/fd")
    for link in [os.path.exists(f"/proc/self/fd/{{fd}}") and os.readlink(f"/proc/self/fd/{{fd}}")]
    if link and not link.startswith(("socket:", "/dev/null", "/proc/", "/dev/pts"))])
attempt("sockets", lambda: (len([fd for fd in os.listdir("/proc/self/fd")
    if os.path.exists(f"/proc/self/fd/{{fd}}") and os.readlink(f"/proc/self/fd/{{fd}}").startswith("socket:")]) > 2))
attempt("no limits", lambda: resource.getrlimit(resource.RLIMIT_NPROC)[0] == resource.RLIM_INFINITY)
attempt("limits raised", lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)) is None)
attempt("parent signalled", lambda: os.kill(os.getppid(), 0) is None)
attempt("parent limited", lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CORE))
uid = os.getuid()
"""

LEFT_RUNNING = r"""
import os, sys, time
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(1)
            while True:
                time.sleep(0.05)
        os._exit(0)
    os.wait()
"""


def what_was_reached(nb: Any) -> Any:
    return {"reached": nb.reached, "uid": nb.uid}


def sleepers(nb: Any) -> Any:
    import os

    mine = os.getuid()
    return sorted(
        int(pid)
        for pid in os.listdir("/proc")
        if pid.isdigit() and os.stat(f"/proc/{pid}").st_uid == mine and int(pid) not in (os.getpid(), os.getppid())
    )


def running(sandbox: Sandbox, assignment: Assignment, cell: str) -> int:
    """How many other processes of its uid a notebook of this cell sees."""
    with NotebookRun(sandbox, as_notebook(cell).cells, assignment.limits) as run:
        reply = run.observe(pack(sleepers, ()), seconds=5)
    assert isinstance(reply, Reply)
    return len(reply.value)


def main() -> None:
    mode, project, secrets, port = sys.argv[1:]
    assignment = load_assignment("tiny", Path(project))
    facts = {"project": project, "secrets": secrets, "port": int(port), "grader": os.getpid()}
    search = "/" if mode == "bwrap" else str(Path(project).parent)
    with open_sandbox(mode, assignment) as sandbox:
        answers: dict[str, Any] = {"mode": sandbox.mode, "in_force": sandbox.in_force}
        with NotebookRun(sandbox, as_notebook(ATTACK.format(**facts, search=search)).cells, assignment.limits) as run:
            reply = run.observe(pack(what_was_reached, ()), seconds=5)
            assert isinstance(reply, Reply) and reply.kind == "observation", (reply, run.cell_results)
            answers.update(reply.value)
        before = running(sandbox, assignment, "uid = 0")
        answers["ran on"] = running(sandbox, assignment, LEFT_RUNNING) - before
        answers["outlived"] = running(sandbox, assignment, "uid = 0") - before
        answers["replaced"] = sandbox.replaced
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
