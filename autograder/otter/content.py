"""The assignment's content inside the zip that Otter is given."""

from __future__ import annotations

import zipfile
from pathlib import Path

from autograder.errors import AutograderError

# Otter's Dockerfile copies nothing of ours but `requirements.*`, and `files/` and `tests/`, which end up beside
# the submission: hence the name.
ENGINE = "requirements.autograder.zip"
CONSTRAINTS = "requirements.constraints.txt"


def unpack_content(autograder_dir: Path) -> Path:
    """Unpacks the cases and solutions into `content/`, which only its owner may enter, and returns that folder."""
    archive = autograder_dir / "source" / ENGINE
    content = autograder_dir / "content"
    content.mkdir(mode=0o700, exist_ok=True)
    try:
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(
                content, [name for name in packed.namelist() if name.startswith(("assignments/", "solutions/"))]
            )
    except (OSError, zipfile.BadZipFile) as error:
        raise AutograderError(f"{archive}: {error}; build the autograder zip again") from None
    return content
