"""Grades examples with a real `otter grade` and compares every question with `autograder grade`.

    python scripts/container_check.py

Makes what is missing: podman (as root), a base image, the prebuilt grading image, the autograder zip. Also runs a
hostile notebook in the container, and `otter run` on this machine. Exit codes: 0 all agree; 1 something does not;
2 wrong usage; 3 no containers can be had here, so nothing was checked.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from build_image import IMAGE, all_environment_files, build_image, digest
from containers import Engine, NoContainers, base_image, find_engine
from hostile import FINDINGS, MARKER, hostile_notebook, hostile_zip

from autograder.build.archive import build_archive
from autograder.errors import AutograderError
from autograder.project import Assignment, find_root, load_assignment

EXAMPLES = ("full-marks", "unbiased-variance", "syntax-error-in-one-cell")
NAME = "starting-right-check"
NO_CONTAINERS = 3

Marks = dict[str, float]


class Disagreement(Exception):
    """What this check is there to find."""


def grading_image(engine: Engine, root: Path) -> str:
    """The prebuilt grading image for this environment, built unless it is there already."""
    base = base_image(engine)
    files = all_environment_files(root)
    tag = f"{IMAGE}:{digest(files, base)}"
    # Podman keeps local images under localhost/, and asks registries for names without a host.
    tag = f"localhost/{tag}" if engine.podman else tag
    if not engine.has_image(tag):
        say(f"building the grading image {tag} from {base}")
        try:
            build_image(engine.docker, base, tag, files, quiet=True)
        except subprocess.CalledProcessError as error:
            raise Disagreement(f"the grading image cannot be built:\n{error.stdout}\n{error.stderr}") from None
    return tag


def otter_grade(engine: Engine, image: str, archive: Path, notebooks: list[Path], out: Path) -> dict[str, Marks]:
    """The marks that `otter grade` gives: file name → question → points."""
    out.mkdir()
    options = ["--name", NAME, "--image", image, "--no-network", "--containers", "2"]
    run_otter(["grade", *options, "--autograder", archive, "--output-dir", out, *notebooks], engine.environment, out)
    with (out / "final_grades.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["file"]: row for row in csv.DictReader(file)}
    for notebook in notebooks:
        status = rows[notebook.name]["grading_status"]
        if status != "Completed":
            raise Disagreement(f"otter grade did not grade {notebook.name}: {status}")
    extra = {"file", "total_points_earned", "percent_correct", "grading_status"}
    return {name: {q: float(p) for q, p in row.items() if q not in extra} for name, row in rows.items()}


def otter_run(archive: Path, notebook: Path, out: Path, titles: dict[str, str]) -> Marks:
    """The marks that `otter run` gives on this machine."""
    out.mkdir()
    run_otter(["run", "--autograder", archive, "--output-dir", out, notebook], None, out)
    tests = json.loads((out / "results.json").read_text(encoding="utf-8"))["tests"]
    return {titles[test["name"]]: float(test["score"]) for test in tests}


def autograder_grade(assignment: Assignment, notebooks: list[Path], out: Path) -> dict[str, Marks]:
    """The marks that `autograder grade` gives."""
    command = [sys.executable, "-m", "autograder", "grade", assignment.name, *notebooks, "-o", out]
    run(command, None, assignment.root)
    marks = {}
    for notebook in notebooks:
        record = json.loads((out / "results" / f"{notebook.stem}.json").read_text(encoding="utf-8"))
        marks[notebook.name] = {question["id"]: float(question["points"]) for question in record["questions"]}
    return marks


def compare(expected: Marks, found: Marks, what: str) -> None:
    """Raises `Disagreement` unless the marks agree question by question."""
    differing = [
        f"{question}: autograder {expected.get(question)}, otter {found.get(question)}"
        for question in sorted({*expected, *found})
        if expected.get(question) != found.get(question)
    ]
    if differing:
        raise Disagreement(f"{what}: {'; '.join(differing)}")
    say(f"{what}: {sum(found.values()):g} points, the same in all {len(found)} questions")


def check_hostile(engine: Engine, folder: Path) -> None:
    """Raises `Disagreement` when a notebook graded in the container reaches anything."""
    notebook = folder / "hostile.ipynb"
    notebook.write_text(hostile_notebook(), encoding="utf-8")
    with graded_in_container(engine, notebook, folder / "hostile") as (log, results, _):
        output = str(results.get("output", ""))
        said = re.search(FINDINGS, output)
        if said is None:
            raise Disagreement(f"the hostile notebook did not report:\n{output}\n{log}")
        if said["reached"] != "nothing" or said["uid"] == "0":
            raise Disagreement(f"the hostile notebook got through: {said[0]}")
        say(f"hostile notebook: {said[0]}")
        say(next((line for line in log.splitlines() if line.startswith("Isolation")), "Isolation: not stated"))


def check_hostile_zip(engine: Engine, folder: Path) -> None:
    """Raises `Disagreement` when a file of a submission is run outside the worker."""
    packed = folder / "hostile.zip"
    packed.write_bytes(hostile_zip())
    with graded_in_container(engine, packed, folder / "hostile-zip") as (log, results, container):
        if engine.run("cp", f"{container}:{MARKER}", str(folder / "marker"), check=False).returncode == 0:
            raise Disagreement(f"a file of the submission was run by the grader:\n{log}")
        if not results.get("tests"):
            raise Disagreement(f"the hostile zip has no results:\n{log}")
        say("hostile zip: neither its log was unpickled nor its modules imported")


@contextlib.contextmanager
def graded_in_container(engine: Engine, submission: Path, out: Path) -> Iterator[tuple[str, dict[str, object], str]]:
    """Grades one file in the image that `otter grade` made, without network: its log, results.json, container."""
    container = engine.run("create", "--network", "none", f"otter-grade:{NAME}", "/autograder/run_autograder")
    name = container.stdout.strip()
    try:
        engine.run("cp", str(submission), f"{name}:/autograder/submission/{submission.name}")
        started = engine.run("start", "--attach", name, check=False)
        log = started.stdout + started.stderr
        out.mkdir()
        copied = engine.run("cp", f"{name}:/autograder/results/results.json", str(out / "results.json"), check=False)
        if copied.returncode:
            raise Disagreement(f"no results for {submission.name}:\n{log}")
        yield log, json.loads((out / "results.json").read_text(encoding="utf-8")), name
    finally:
        engine.run("rm", "--force", name, check=False)


def run_otter(arguments: list[object], environment: dict[str, str] | None, cwd: Path) -> None:
    run([sys.executable, "-m", "otter", *arguments], environment, cwd)


def run(command: list[object], environment: dict[str, str] | None, cwd: Path) -> None:
    """Runs a command quietly; its output is in the `Disagreement` raised when it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        env=environment,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        shown = " ".join(str(word) for word in command[1:5])
        raise Disagreement(f"`{shown} …` failed with exit code {done.returncode}:\n{done.stdout}")


def say(text: str) -> None:
    print(text, flush=True)


def check(assignment: Assignment, examples: Path) -> None:
    """The whole check; raises `NoContainers` or `Disagreement`."""
    notebooks = [examples / f"{name}.ipynb" for name in EXAMPLES]
    missing = [notebook.name for notebook in notebooks if not notebook.is_file()]
    if missing:
        raise AutograderError(f"{examples}: no {', '.join(missing)} there")
    engine = find_engine()
    image = grading_image(engine, assignment.root)
    archive = build_archive(assignment)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        expected = autograder_grade(assignment, notebooks, folder / "ours")
        try:
            say(f"otter grade with {image}")
            found = otter_grade(engine, image, archive, notebooks, folder / "grade")
            for notebook in notebooks:
                compare(expected[notebook.name], found[notebook.name], f"otter grade, {notebook.name}")
            check_hostile(engine, folder)
            check_hostile_zip(engine, folder)
        finally:
            engine.run("rmi", "--force", f"otter-grade:{NAME}", check=False)
        titles = {question.title: question.id for question in assignment.questions}
        found_here = otter_run(archive, notebooks[1], folder / "run", titles)
        compare(expected[notebooks[1].name], found_here, f"otter run, {notebooks[1].name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assignment", nargs="?", default="hw4_pytorch_init_norm")
    parser.add_argument("--examples", type=Path, help=f"folder with {', '.join(EXAMPLES)} (default: examples/HW)")
    options = parser.parse_args()
    try:
        assignment = load_assignment(options.assignment, find_root())
        check(assignment, (options.examples or assignment.root / "examples" / assignment.name).resolve())
    except NoContainers as reason:
        banner = "!" * 100
        print(f"{banner}\nNOT CHECKED: otter grade was not run. {reason}\n{banner}", file=sys.stderr)
        return NO_CONTAINERS
    except AutograderError as error:
        print(f"container_check: {error}", file=sys.stderr)
        return 2
    except (Disagreement, subprocess.CalledProcessError) as error:
        print(f"container_check: FAILED: {error}", file=sys.stderr)
        return 1
    say("container check: otter grade, otter run and autograder grade agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
