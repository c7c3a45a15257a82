"""Finds or makes what `otter grade` needs: a `docker` command that works, and a base image with Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

PODMAN_AS_DOCKER = Path(__file__).resolve().parent / "podman-as-docker"
DEBIAN = "bookworm"
DEBIAN_IMAGE = f"localhost/starting-right-base:{DEBIAN}"
DEBIAN_PACKAGES = "python3,python3-venv,python3-pip,ca-certificates,jq,curl,unzip,dos2unix,wget"
SYSTEM_PACKAGES = ["podman", "runc", "debootstrap", "debian-archive-keyring"]


class NoContainers(Exception):
    """Containers cannot be had on this machine; the message says why, in one line."""


@dataclass(frozen=True)
class Engine:
    """A `docker` command that works, and the environment in which other programs find the same one."""

    docker: str
    podman: bool

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": f"{Path(self.docker).parent}{os.pathsep}{os.environ['PATH']}"}

    def run(self, *arguments: str, check: bool = True, capture: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.docker, *arguments], check=check, capture_output=capture, text=True)

    def has_image(self, tag: str) -> bool:
        return self.run("image", "inspect", tag, check=False).returncode == 0


def find_engine() -> Engine:
    """Docker where its daemon answers, else podman, installed first when that is possible.

    Raises `NoContainers`.
    """
    docker = shutil.which("docker")
    if docker and _is_docker(docker):
        return Engine(docker, podman=False)
    # As in podman-as-docker/docker: on such machines podman needs runc.
    mixed_cgroups = Path("/sys/fs/cgroup/unified").is_dir()
    if not shutil.which("podman") or (mixed_cgroups and not shutil.which("runc")):
        _install()
    engine = Engine(str(PODMAN_AS_DOCKER / "docker"), podman=True)
    if not _answers([engine.docker, "info"]):
        raise NoContainers("podman is installed, but `podman info` fails; try it by hand")
    return engine


def base_image(engine: Engine) -> str:
    """A base image with Python 3.11 or later: the official one with Docker, a Debian made here with podman.

    Raises `NoContainers`.
    """
    if not engine.podman:
        return "python:3.11-slim"
    if not engine.has_image(DEBIAN_IMAGE):
        _make_debian(engine)
    started = engine.run("run", "--rm", DEBIAN_IMAGE, "python3", "--version", check=False)
    if started.returncode:
        raise NoContainers(f"podman starts no container: {_last_line(started.stderr)}")
    return DEBIAN_IMAGE


def _is_docker(docker: str) -> bool:
    """Whether this is Docker with a daemon that answers, and not podman under its name."""
    named = subprocess.run([docker, "--version"], capture_output=True, text=True, check=False)
    return "podman" not in named.stdout and _answers([docker, "version", "--format", "{{.Server.Version}}"])


def _answers(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


def _install() -> None:
    if os.geteuid() != 0:
        raise NoContainers("neither Docker nor a podman that works is here, and only root can install one")
    if not shutil.which("apt-get"):
        raise NoContainers("neither Docker nor a podman that works is here, nor apt-get to install one with")
    print(f"installing {', '.join(SYSTEM_PACKAGES)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", *SYSTEM_PACKAGES]):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoContainers(f"`{' '.join(command)}` failed: {_last_line(done.stderr)}")


def _make_debian(engine: Engine) -> None:
    if not shutil.which("debootstrap"):
        _install()
    print(f"making a base image, Debian {DEBIAN}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        bootstrap = ["debootstrap", "--variant=minbase", f"--include={DEBIAN_PACKAGES}", DEBIAN, folder]
        done = subprocess.run(bootstrap, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoContainers(f"debootstrap failed: {_last_line(done.stdout + done.stderr)}")
        packed = subprocess.Popen(
            ["tar", "-C", folder, "--exclude=./var/cache/apt/*", "--exclude=./var/lib/apt/lists/*", "-c", "."],
            stdout=subprocess.PIPE,
        )
        subprocess.run(
            [engine.docker, "import", "-", DEBIAN_IMAGE], stdin=packed.stdout, check=True, capture_output=True
        )
        if packed.wait():
            raise NoContainers("tar failed while packing the base image")


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]
