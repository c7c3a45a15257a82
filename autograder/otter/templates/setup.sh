#!/usr/bin/env bash
# Makes the grading environment, a venv in /opt/autograder, when a grading image is built (Gradescope, `otter grade`,
# scripts/build_image.py). In a prebuilt image everything is found in place and this takes seconds.
set -euo pipefail

source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=/opt/autograder
# An index with CPU builds of torch, which spares gigabytes of CUDA. Empty: wherever pip looks for everything else.
torch_index=${AUTOGRADER_TORCH_INDEX-}

export DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
# The uid that runs students' code must be able to read what is installed here.
umask 022

suits() {
    command -v "$1" >/dev/null && "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    local candidate
    for candidate in python3.11 python3.12 python3.13 python3; do
        if suits "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

if [ ! -x "$venv/bin/python" ]; then
    if ! python=$(find_python); then
        apt-get update
        apt-get install -y --no-install-recommends ca-certificates python3 python3-venv
        if ! python=$(find_python); then
            echo "This base image has no Python 3.11 or later. Take one that has: ubuntu:24.04, python:3.11-slim, or the" \
                "prebuilt grading image (otter grade --image …; on Gradescope, Ubuntu 24.04)." >&2
            exit 1
        fi
    fi
    "$python" -m venv "$venv"
fi

pip=("$venv/bin/python" -m pip)
constraints=$source/requirements.constraints.txt

# Succeeds when what is asked for is installed in the pinned versions; pip takes longer to find that out.
in_place() {
    "$venv/bin/python" - "$source/requirements.txt" "$constraints" <<'EOF'
import sys
from importlib.metadata import PackageNotFoundError, version

try:
    from packaging.requirements import Requirement
except ImportError:
    sys.exit(1)


def lines(path):
    texts = (text.split("#")[0].strip() for text in open(path, encoding="utf-8"))
    return [Requirement(text) for text in texts if text]


def suits(requirement, otherwise):
    if requirement.marker and not requirement.marker.evaluate():
        return True
    try:
        return requirement.specifier.contains(version(requirement.name), prereleases=True)
    except PackageNotFoundError:
        return otherwise


asked, pinned = (lines(path) for path in sys.argv[1:])
suited = all(suits(line, otherwise=False) for line in asked) and all(suits(line, otherwise=True) for line in pinned)
sys.exit(not suited)
EOF
}

if ! in_place; then
    torch=$(grep -E '^torch==' "$constraints" | head -n 1 || true)
    if [ -n "$torch_index" ] && [ -n "$torch" ] && ! "${pip[@]}" show --quiet torch 2>/dev/null; then
        "${pip[@]}" install --no-deps --index-url "$torch_index" "$torch"
    fi
    "${pip[@]}" install -r "$source/requirements.txt" -c "$constraints"
    "$venv/bin/python" -c 'import IPython, otter, torch; print("grading environment made: torch", torch.__version__)'
fi
