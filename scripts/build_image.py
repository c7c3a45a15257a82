"""Builds the prebuilt grading image: Python and the pinned environment, in which every assignment can be graded.

    python scripts/build_image.py                                # with Docker, from python:3.11-slim
    python scripts/build_image.py --docker podman --base debian  # any base with Python 3.11 or later

Then: otter grade --image starting-right-grading …
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from autograder.build.archive import environment_files
from autograder.errors import AutograderError
from autograder.project import find_root, list_assignments, load_assignment

IMAGE = "starting-right-grading"
BASE = "python:3.11-slim"
STAGE = "/autograder/source"

# The settings that say where pip finds packages; others (a target folder, say) are this machine's own business.
REACH = {"index-url", "extra-index-url", "find-links", "trusted-host", "proxy", "cert", "client-cert", "no-index"}
REACH |= {"timeout", "default-timeout", "retries"}
SOURCES = {"index-url", "extra-index-url", "find-links", "no-index"}


@dataclass
class PipSettings:
    """How this machine's pip reaches packages, as variables and folders for a container."""

    variables: dict[str, str] = field(default_factory=dict)
    volumes: dict[str, str] = field(default_factory=dict)

    def add(self, key: str, value: str) -> None:
        words = [self._inside(word) for word in value.split()]
        self.variables["PIP_" + key.upper().replace("-", "_")] = " ".join(words)

    def _inside(self, word: str) -> str:
        """The word as it reads in the container; a local file or folder it names is bound there."""
        prefix, path = ("file://", Path(word[7:])) if word.startswith("file://") else ("", Path(word))
        if not path.is_absolute() or not path.exists():
            return word
        # The pages of a local index point to files beside its folder.
        bound = path.parent if prefix and path.parent != Path("/") else path
        place = self.volumes.setdefault(str(bound), f"/mnt/pip/{len(self.volumes)}")
        return f"{prefix}{place}/{path.relative_to(bound)}".removesuffix("/.")


def pip_settings() -> PipSettings:
    """Reads `pip config list`; settings from the environment win over those from files, as they do in pip."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    found: dict[str, str] = {}
    for line in sorted(listing.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, value = line.partition("=")
        key = name.rpartition(".")[2]
        if key in REACH:
            found[key] = str(ast.literal_eval(value))
    settings = PipSettings()
    for key, value in found.items():
        settings.add(key, value)
    return settings


def all_environment_files(root: Path) -> dict[str, bytes]:
    """setup.sh and its requirements, for all assignments together."""
    return environment_files(root, [load_assignment(name, root) for name in list_assignments(root)])


def digest(files: dict[str, bytes], base: str) -> str:
    """Names an image by everything that it is made from."""
    sha = hashlib.sha256(base.encode())
    for name in sorted(files):
        sha.update(name.encode() + b"\0" + hashlib.sha256(files[name]).digest())
    return sha.hexdigest()[:12]


def build_image(
    docker: str, base: str, tag: str, files: dict[str, bytes], torch_index: str | None = None, quiet: bool = False
) -> None:
    """Runs setup.sh in a container of `base` and commits it as `tag`.

    `quiet` keeps the output for the CalledProcessError of a failure. (With `docker build` the folders that pip's
    settings name could not be bound.)
    """
    settings = pip_settings()
    variables = dict(settings.variables)
    if torch_index is not None:
        variables["AUTOGRADER_TORCH_INDEX"] = torch_index
    elif SOURCES & {name.removeprefix("PIP_").lower().replace("_", "-") for name in variables}:
        variables["AUTOGRADER_TORCH_INDEX"] = ""
    with tempfile.TemporaryDirectory() as stage:
        for name, content in files.items():
            (Path(stage) / name).write_bytes(content)
        volumes = {stage: STAGE, **settings.volumes}
        binds = [word for outside, inside in volumes.items() for word in ("-v", f"{outside}:{inside}:ro")]
        # In the command, not with -e: a committed image keeps the latter.
        exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in sorted(variables.items()))
        script = f"env {exports} bash {STAGE}/setup.sh"
        container = f"{IMAGE}-build-{os.getpid()}"
        try:
            command = [docker, "run", "--name", container, *binds, base, "bash", "-c", script]
            subprocess.run(command, check=True, capture_output=quiet, text=True)
            subprocess.run([docker, "commit", container, tag], check=True, capture_output=True)
        finally:
            subprocess.run([docker, "rm", "--force", container], stdout=subprocess.DEVNULL, check=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docker", default="docker", help="docker, podman, or a path to either")
    parser.add_argument("--base", default=BASE, help="image with Python 3.11 or later (default: %(default)s)")
    parser.add_argument("--tag", default=IMAGE, help="name of the image that is made (default: %(default)s)")
    parser.add_argument("--torch-index", help="where to take torch from; empty: from where pip takes the rest")
    options = parser.parse_args()
    try:
        build_image(options.docker, options.base, options.tag, all_environment_files(find_root()), options.torch_index)
    except AutograderError as error:
        print(f"build_image: {error}", file=sys.stderr)
        return 2
    except FileNotFoundError:
        print(f"build_image: there is no {options.docker} here; install Docker or podman", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"build_image: failed ({error}); its output is above", file=sys.stderr)
        return 1
    print(f"built {options.tag}; grade with: otter grade --image {options.tag} …")
    return 0


if __name__ == "__main__":
    sys.exit(main())
