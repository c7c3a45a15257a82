"""Memory that no limit of a single process sees: the keeper ends it, and it costs only its own question."""

from __future__ import annotations

import sys

import pytest

from autograder.grading import grade_notebook
from autograder.isolation import Sandbox
from autograder.project import Assignment
from tests.support import as_notebook

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the memory keeper needs Linux's /proc")

TALLY = "def tally(items):\n    return {item: list(items).count(item) for item in items}\n"
METER = "class Meter:\n    total = 0\n    def add(self, x):\n        self.total += x\n        return self.total\n"

HOARDS = {
    "memfds": """
    import os, time
    held = [os.memfd_create(str(i)) for i in range(8)]
    for fd in held:
        for _ in range(100):
            os.write(fd, bytes(1 << 20))
    time.sleep(2)
""",
    "many processes": """
    import os, time
    for _ in range(6):
        if os.fork() == 0:
            held = b"x" * (150 << 20)
            time.sleep(5)
    time.sleep(4)
""",
}


@pytest.mark.parametrize("name", HOARDS)
def test_memory_that_is_spread_out_is_found(tiny: Assignment, tiny_sandbox: Sandbox, name: str):
    hoarding = f"def scale(x, factor=2.0):{HOARDS[name]}    return x * factor\n"
    cells = as_notebook("import torch", hoarding, TALLY, METER)
    replaced = tiny_sandbox.replaced
    result = grade_notebook(tiny, cells, submission="s", sha256="0", sandbox=tiny_sandbox)
    assert tiny_sandbox.replaced == replaced  # the keeper ends the case, not the sandbox
    assert [question.points for question in result.questions] == [0, 3]
    values = result.questions[0].cases[0]
    assert (values.outcome, values.hint[:28]) == ("crashed", "It used more memory than a s")


def test_memory_within_the_limit_is_left_alone(tiny: Assignment, tiny_sandbox: Sandbox):
    modest = "def scale(x, factor=2.0):\n    held = torch.ones(40_000_000)\n    return x * factor\n"
    cells = as_notebook("import torch", modest, TALLY, METER)
    result = grade_notebook(tiny, cells, submission="s", sha256="0", sandbox=tiny_sandbox)
    assert result.points == 7
