"""What a hostile notebook reaches from inside, in each kind of confinement."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.errors import AutograderError, IsolationUnavailable
from autograder.isolation import open_sandbox
from autograder.isolation.bwrap import find_bwrap
from autograder.isolation.notebook_run import NotebookRun
from autograder.isolation.observation import Reply
from autograder.probes import pack
from autograder.project import Assignment, load_assignment
from tests.support import ROOT, TINY, as_notebook

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="isolation needs Linux")
AS_ROOT = os.geteuid() == 0
ORDINARY_UID = 4242

# Without a uid of its own, a worker may signal the warm parent, which is then replaced; it holds nothing of value.
SAME_UID = {"parent signalled", "parent limited"}


def interpreter_made_visible() -> list[str]:
    """A view of this machine in which a home folder closed to others does not hide the interpreter."""
    view = ["--dev-bind", "/", "/"]
    for prefix in sorted({sys.base_prefix, sys.prefix}):
        home = next((p for p in reversed(Path(prefix).parents) if p.exists() and not p.stat().st_mode & 0o001), None)
        if home is not None:
            view += ["--perms", "0755", "--tmpfs", str(home)]
            for parent in [p for p in reversed(Path(prefix).parents) if p.is_relative_to(home) and p != home]:
                view += ["--perms", "0755", "--dir", str(parent)]
            view += ["--ro-bind", prefix, prefix]
    return view


def as_ordinary_user() -> list[str]:
    """Command prefix: an unprivileged user, as on an instructor's laptop."""
    if not AS_ROOT:
        return []
    drop = [
        f"--reuid={ORDINARY_UID}",
        f"--regid={ORDINARY_UID}",
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
    ]
    return [find_bwrap(), *interpreter_made_visible(), "--", "setpriv", *drop]


def as_container_root() -> list[str]:
    """Command prefix: root with a container's usual capabilities, where bubblewrap cannot start, and no network."""
    if not AS_ROOT:
        pytest.skip("a container's root needs root")
    capabilities = ("SETUID", "SETGID", "KILL", "CHOWN", "DAC_OVERRIDE", "FOWNER")
    kept = [word for name in capabilities for word in ("--cap-add", f"CAP_{name}")]
    isolated = ["--unshare-pid", "--unshare-net", *interpreter_made_visible(), "--proc", "/proc", "--cap-drop", "ALL"]
    return [find_bwrap(), *isolated, *kept, "--"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project beside results and another submission, readable by everyone unless a test closes it."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        if folder.stat().st_uid == os.getuid():
            folder.chmod(0o755)
    shutil.copytree(TINY, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "secrets" / "results").mkdir(parents=True)
    (tmp_path / "secrets" / "results" / "other.json").write_text("{}")
    (tmp_path / "secrets" / "other.ipynb").write_text("{}")
    return tmp_path / "project"


@pytest.fixture
def port() -> Iterator[int]:
    """A service on this machine's loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def attack(prefix: list[str], mode: str, project: Path, port: int) -> dict:
    secrets = project.parent / "secrets"
    command = [*prefix, sys.executable, "-m", "tests.attack", mode, str(project), str(secrets), str(port)]
    environment = {**os.environ, "HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_as_root_in_bubblewrap_nothing_is_reached(project, port):
    if not AS_ROOT:
        pytest.skip("the sandbox as root needs root")
    found = attack([], "bwrap", project, port)
    assert found["reached"] == {}
    assert found["uid"] != 0
    assert (found["mode"], found["ran on"], found["outlived"], found["replaced"]) == ("bwrap", 2, 0, 0)


def test_as_an_ordinary_user_in_bubblewrap_nothing_of_the_graders_is_reached(project, port):
    found = attack(as_ordinary_user(), "bwrap", project, port)
    assert set(found["reached"]) <= SAME_UID
    assert (found["mode"], found["ran on"], found["outlived"]) == ("bwrap", 2, 0)


def test_in_a_container_with_a_uid_of_its_own_nothing_is_reached(project, port):
    for closed in (project, project.parent / "secrets"):
        closed.chmod(0o700)
    found = attack(as_container_root(), "uid", project, port)
    assert found["reached"] == {}
    assert found["uid"] not in (0, os.getuid())
    assert (found["mode"], found["ran on"], found["outlived"]) == ("uid", 2, 0)


def test_auto_takes_uid_where_bubblewrap_cannot_start(project, port):
    project.chmod(0o700)
    (project.parent / "secrets").chmod(0o700)
    assert attack(as_container_root(), "auto", project, port)["mode"] == "uid"


def test_uid_refuses_a_project_that_others_can_read(project, port):
    prefix = as_container_root()
    command = [*prefix, sys.executable, "-m", "tests.attack", "uid", str(project), str(project), str(port)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "closed to other users: chmod 700" in done.stderr


def test_none_reaches_what_the_others_hide(project, port):
    """The same attack without isolation: it shows that the attack works."""
    found = attack([], "none", project, port)
    reached = {
        "hidden cases",
        "solutions",
        "results",
        "another submission",
        "found by name",
        "network",
        "grader signalled",
    }
    assert reached <= set(found["reached"])
    assert "NOT ISOLATED" in " ".join(found["in_force"])


def test_where_bubblewrap_cannot_start_one_line_says_why(tiny: Assignment, monkeypatch, tmp_path):
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(IsolationUnavailable) as refused:
        open_sandbox("bwrap", tiny)
    message = str(refused.value)
    assert "setting up uid map: Permission denied" in message
    assert "AppArmor" in message and "otter grade" in message and "\n" not in message


def test_an_unknown_mode_is_refused(tiny: Assignment):
    with pytest.raises(AutograderError, match="auto, bwrap, uid, none"):
        open_sandbox("chroot", tiny)


def test_a_project_below_a_bound_folder_is_hidden(tmp_path, monkeypatch):
    """An environment that holds the project itself would show it through its own bind."""
    from autograder.isolation import bwrap

    project = tmp_path / "venv" / "course"
    shutil.copytree(TINY, project)
    monkeypatch.setattr(bwrap, "SYSTEM_FILES", (*bwrap.SYSTEM_FILES, str(tmp_path / "venv")))
    assignment = load_assignment("tiny", project)
    worker = ROOT / "autograder" / "worker"
    command = bwrap.command(worker, None, assignment.root, 16)
    listing = subprocess.run(
        [*command, "--", "ls", str(tmp_path / "venv"), str(project)], capture_output=True, text=True
    )
    assert listing.returncode == 0, listing.stderr
    assert "course" in listing.stdout and "solutions" not in listing.stdout


def test_an_environment_below_the_scratch_space_stays_and_is_read_only(tiny: Assignment, tmp_path, monkeypatch):
    """A checkout in /tmp has its environment where submissions write and where everything of theirs is removed."""
    from autograder.isolation import bwrap

    environment = tmp_path / "checkout" / "environment"
    environment.mkdir(parents=True)
    (environment / "module.py").write_text("here = True")
    if not environment.is_relative_to(bwrap.SCRATCH):
        pytest.skip("temporary folders are not in /tmp here")
    folders = [*bwrap.interpreter_folders(), environment]
    monkeypatch.setattr(bwrap, "interpreter_folders", lambda: folders)
    cell = f"""import os, sys
sys.path.append({str(environment)!r})
import module
written = []
for folder in ({str(environment)!r}, {str(tmp_path)!r}, {str(tmp_path.parent)!r}):
    try:
        open(folder + "/left", "w").close()
        written.append(folder)
    except OSError:
        pass
listed = sorted(os.listdir({str(tmp_path / "checkout")!r}))
"""
    with open_sandbox("bwrap", tiny) as sandbox:
        for _ in range(2):
            with NotebookRun(sandbox, as_notebook(cell).cells, tiny.limits) as run:
                reply = run.observe(pack(written_and_listed, ()), seconds=5)
            assert isinstance(reply, Reply) and reply.value == ([], ["environment"]), (reply, run.cell_results)
        assert sandbox.replaced == 0


def written_and_listed(nb):
    return nb.written, nb.listed


def test_a_worker_that_cannot_read_the_interpreter_is_refused_not_marked(tiny: Assignment, tmp_path, monkeypatch):
    if not AS_ROOT:
        pytest.skip("needs root: an ordinary user reads what it runs")
    from autograder.isolation import launch

    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setattr(launch, "START", f"import sys; sys.path.append({str(closed)!r});" + launch.START)
    monkeypatch.setattr(launch, "refuse_unreachable_interpreter", lambda: None)
    monkeypatch.setattr(launch, "refuse_readable", lambda assignment: None)
    with pytest.raises(IsolationUnavailable, match="is closed to uid"), open_sandbox("uid", tiny) as sandbox:
        sandbox.fork()
