"""Cases that share a probe: each is judged on its own part, and none loses by another."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator

import pytest

from autograder.errors import UnusableAssignment
from autograder.grading import grade_notebook
from autograder.isolation import Sandbox
from autograder.isolation.notebook_run import NotebookRun
from autograder.project import Assignment, load_assignment
from autograder.results import Case
from tests.support import TINY, as_notebook

CASES = '''"""Three cases on one probe."""

import pytest
import torch

from autograder.authoring import require
from autograder.worker.helpers import attempts

pytestmark = [pytest.mark.question("scale"), pytest.mark.points(0)]
X = torch.arange(3.0) + 1


def pieces(nb, x):
    return attempts(
        doubled=lambda: nb.scale(x.clone()),
        tripled=lambda: nb.scale(x.clone(), 3.0),
        drawn=lambda: nb.scale(torch.rand(2)),
    )


@pytest.mark.parametrize("part", ["doubled", "tripled", "drawn"])
def test_part(compare, part):
    """A part"""
    compare(pieces, X, part=part)


def test_sum(observe):
    """The sum of the doubled"""
    require(observe(pieces, X, part="doubled").sum() == 12, "The sum is off.")
'''
TALLY = "def tally(items):\n    return {item: list(items).count(item) for item in items}\n"
METER = "class Meter:\n    total = 0\n    def add(self, x):\n        self.total += x\n        return self.total\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Assignment]:
    """The tiny project with cases that share a probe."""
    root = tmp_path_factory.mktemp("parts") / "project"
    shutil.copytree(TINY, root, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "assignments" / "tiny" / "test_parts.py").write_text(CASES)
    before = list(sys.path)
    forget_assignments()
    yield load_assignment("tiny", root)
    forget_assignments()
    sys.path[:] = before


def forget_assignments() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "assignments"]:
        del sys.modules[name]


@pytest.fixture
def grade(project: Assignment, tiny_sandbox: Sandbox):
    def run(body: str) -> dict[str, Case]:
        cells = as_notebook("import torch", f"calls = []\ndef scale(x, factor=2.0):\n{body}", TALLY, METER)
        result = grade_notebook(project, cells, submission="s", sha256="0", sandbox=tiny_sandbox)
        cases = [case for question in result.questions for case in question.cases]
        return {case.id.split("::")[1]: case for case in cases if "test_parts.py" in case.id}

    return run


DOUBLED, TRIPLED, DRAWN, SUM = "test_part[doubled]", "test_part[tripled]", "test_part[drawn]", "test_sum"

OUTCOMES = {
    "right": ("    return x * factor\n", {}),
    "wrong in one part": ("    return x * (factor + (factor == 3))\n", {TRIPLED: "failed"}),
    "raises in one part": (
        "    if factor == 3:\n        raise ValueError('three')\n    return x * factor\n",
        {TRIPLED: "error"},
    ),
    "not implemented in one part": (
        "    if factor == 3:\n        raise NotImplementedError\n    return x * factor\n",
        {TRIPLED: "missing"},
    ),
    "endless loop in one part": ("    while factor == 3:\n        pass\n    return x * factor\n", {TRIPLED: "timeout"}),
    "crash in one part": (
        "    import os\n    if factor == 3:\n        os._exit(0)\n    return x * factor\n",
        {TRIPLED: "crashed"},
    ),
    "right only the first time": (
        "    calls.append(1)\n    return x * factor if len(calls) == 1 else x\n",
        {},
    ),
    "leaves settings behind": ("    torch.set_default_dtype(torch.float64)\n    return x * factor\n", {}),
    "leaves draws behind": ("    torch.rand(5)\n    return x * factor\n", {}),
    "raises everywhere": ("    raise ValueError('no')\n", dict.fromkeys([DOUBLED, TRIPLED, DRAWN, SUM], "error")),
    "unfilled": ("    ...\n", dict.fromkeys([DOUBLED, TRIPLED, DRAWN, SUM], "missing")),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_outcomes(grade, name: str):
    body, expected = OUTCOMES[name]
    cases = grade(body)
    assert {id: case.outcome for id, case in cases.items() if case.outcome != "passed"} == expected


def test_the_message_of_the_part_is_what_the_student_reads(grade):
    cases = grade(OUTCOMES["raises in one part"][0])
    assert cases[TRIPLED].hint.startswith("It raised ValueError: three (line 4 of scale")


def test_right_answers_need_one_run(grade, monkeypatch):
    probes = []
    observe = NotebookRun.observe

    def counting(run, packed, **options):
        probes.append((packed.unpack()[0].__name__, options["part"]))
        return observe(run, packed, **options)

    monkeypatch.setattr(NotebookRun, "observe", counting)
    grade(OUTCOMES["right"][0])
    assert [probe for probe in probes if probe[0] == "pieces"] == [("pieces", None)]


def test_a_part_that_the_probe_does_not_have_is_the_assignments_fault(project: Assignment, tiny_sandbox, tmp_path):
    root = tmp_path / "misspelt"
    shutil.copytree(project.root, root, ignore=shutil.ignore_patterns("__pycache__"))
    cases = root / "assignments" / "tiny" / "test_parts.py"
    cases.write_text(CASES.replace("compare(pieces, X, part=part)", "compare(pieces, X, part=part + 's')"))
    forget_assignments()
    assignment = load_assignment("tiny", root)
    with pytest.raises(UnusableAssignment, match="returns no part named '"):
        grade_notebook(
            assignment, as_notebook(assignment.solutions.read_text()), submission="s", sha256="0", sandbox=tiny_sandbox
        )
    forget_assignments()
