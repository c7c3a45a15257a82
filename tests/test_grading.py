"""Grading one notebook: marks, outcomes, hints, and independence from what was graded before."""

from __future__ import annotations

import dataclasses
import os

import pytest

from autograder.grading import grade_notebook, ungradable
from autograder.isolation import Sandbox
from autograder.project import Assignment
from autograder.results import Case, Result, write_whole
from tests.support import as_notebook

TORCH = "import torch\n"
SCALE = "def scale(x, factor=2.0):\n    return x * factor\n"
TALLY = "def tally(items):\n    return {item: list(items).count(item) for item in items}\n"
METER = """class Meter:
    def __init__(self):
        self.total = torch.zeros(())
    def add(self, x):
        self.total = self.total + x
        return self.total
"""


@pytest.fixture
def grade(tiny: Assignment, tiny_sandbox: Sandbox):
    def run(*sources: str, tags: tuple[str, ...] = ()) -> Result:
        notebook = as_notebook(*sources, tags=tags)
        return grade_notebook(tiny, notebook, submission="s", sha256="0", sandbox=tiny_sandbox)

    return run


def case(result: Result, test: str) -> Case:
    return next(case for question in result.questions for case in question.cases if f"::{test}" in case.id)


def marks(result: Result) -> dict[str, float]:
    return {question.id: question.points for question in result.questions}


def test_right_answers_get_full_marks(grade):
    result = grade(TORCH, SCALE, TALLY, METER)
    assert (result.points, result.possible, result.status) == (7, 7, "graded")
    assert {cell.outcome for cell in result.cells} == {"ok"}


STUB = 'def scale(x, factor=2.0):\n    """Docstring."""\n    ...\n'

ONE_BAD_CELL = {
    "syntax error": ("def scale(x:\n", "syntax", "missing"),
    "exception": ("1 / 0\n" + SCALE, "raised", "missing"),
    "sys.exit": ("import sys\nsys.exit(0)\n" + SCALE, "exited", "missing"),
    "quit()": ("quit()\n", "exited", "missing"),
    "os._exit": ("import os\nos._exit(0)\n" + SCALE, "crashed", "missing"),
    "segfault": ("import ctypes\nctypes.string_at(0)\n" + SCALE, "crashed", "missing"),
    "killed parent": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n" + SCALE, "crashed", "missing"),
    "endless loop": ("while True:\n    pass\n", "timeout", "missing"),
    "loop that swallows everything": (
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass\n",
        "timeout",
        "missing",
    ),
    "endless sleep": ("import time\ntime.sleep(1000)\n", "timeout", "missing"),
    "endless recursion": ("def f(): return f()\nf()\n", "raised", "missing"),
    "endless output": ("while True: print('x' * 1000)\n", "raised", "missing"),
    "memory": ("hog = [bytearray(1 << 28) for _ in range(100)]\n", "raised", "missing"),
    "keyboard interrupt": ("raise KeyboardInterrupt\n", "raised", "missing"),
    "input": ("x = input('name?')\n", "raised", "missing"),
    "unfilled stub": (STUB, "ok", "missing"),
    "deleted cell": ("", "ok", "missing"),
}


@pytest.mark.parametrize("name", ONE_BAD_CELL)
def test_one_bad_cell_costs_only_itself(grade, name):
    source, cell_outcome, case_outcome = ONE_BAD_CELL[name]
    result = grade(TORCH, source, TALLY, METER)
    assert marks(result) == {"scale": 0, "tally": 3}
    assert result.cells[1].outcome == cell_outcome
    assert {c.outcome for c in result.questions[0].cases} == {case_outcome}


BAD_FUNCTIONS = {
    "sys.exit": ("import sys\n    sys.exit(0)", "error"),
    "exit()": ("exit()", "error"),
    "os._exit": ("import os\n    os._exit(0)", "crashed"),
    "kills the notebook": ("import os\n    os.kill(os.getppid(), 9)\n    return x", "failed"),
    "kills all": ("import os\n    os.kill(-1, 9)", "failed"),
    "segfault": ("import ctypes\n    ctypes.string_at(0)", "crashed"),
    "endless loop": ("while True: pass", "timeout"),
    "endless loop that swallows": (
        "while True:\n        try:\n            while True: pass\n        except: pass",
        "timeout",
    ),
    "sleeps": ("import time\n    time.sleep(1000)", "timeout"),
    "recursion": ("return scale(x)", "error"),
    "raises": ("raise ValueError('no')", "error"),
    "not implemented": ("raise NotImplementedError", "missing"),
    "memory": ("return [bytearray(1 << 28) for _ in range(100)]", "error"),
    "returns an object": ("return object()", "failed"),
    "returns a huge tensor": ("return torch.zeros(20_000_000)", "failed"),
    "returns a deep list": ("y = []\n    for _ in range(100000): y = [y]\n    return y", "failed"),
    "fork bomb": ("import os\n    while True: os.fork()", "error"),
}


@pytest.mark.parametrize("name", BAD_FUNCTIONS)
def test_one_bad_function_costs_only_its_question(grade, name):
    body, outcome = BAD_FUNCTIONS[name]
    result = grade(TORCH, f"def scale(x, factor=2.0):\n    {body}\n", TALLY, METER)
    assert marks(result)["tally"] == 3
    values = case(result, "test_values")
    assert values.points == 0
    if name == "kills the notebook":
        assert values.outcome in ("failed", "crashed")
    else:
        assert values.outcome == outcome


def test_a_case_sees_the_notebook_as_its_last_cell_left_it(grade):
    counting = "calls = []\ndef scale(x, factor=2.0):\n    calls.append(1)\n    return x * factor * (len(calls) <= 2)\n"
    assert grade(TORCH, counting, TALLY, METER).points == 7


def test_a_known_mistake_is_named(grade):
    result = grade(TORCH, "def scale(x, factor=2.0):\n    return x + factor\n", TALLY, METER)
    assert case(result, "test_values").hint == "It adds where it should multiply."


def test_an_unknown_mistake_gets_a_hint_without_the_expected_value(grade):
    result = grade(TORCH, "def scale(x, factor=2.0):\n    return x * factor + 1\n", TALLY, METER)
    verdict = case(result, "test_values")
    assert "`out` has wrong values" in verdict.hint
    assert "expected" not in verdict.hint
    assert "expected" in verdict.detail


def test_input_changed_in_place_is_seen(grade):
    result = grade(TORCH, "def scale(x, factor=2.0):\n    return x.mul_(factor)\n", TALLY, METER)
    assert "changes x itself" in case(result, "test_values").hint


@pytest.mark.parametrize("later", ["scale = 3", "torch = None", "tally = Meter = 'x'"])
def test_names_used_for_data_later_are_given_back(grade, later):
    result = grade(TORCH, SCALE, TALLY, METER, later)
    assert result.points == 7
    assert "overwritten" in " ".join(result.notes)


def test_the_last_of_two_definitions_counts(grade):
    wrong = "def scale(x, factor=2.0):\n    return x\n"
    assert marks(grade(TORCH, SCALE, wrong, TALLY, METER))["scale"] == 0
    assert marks(grade(TORCH, wrong, SCALE, TALLY, METER))["scale"] == 4


SETTINGS = [
    "torch.set_default_dtype(torch.float64)",
    "torch.set_grad_enabled(False)",
    "import numpy as np; np.seterr(all='raise')",
    "import warnings; warnings.simplefilter('error')",
    "import os; os.chdir('/')",
    "torch.manual_seed(3); torch.set_num_threads(4)",
    "import sys; sys.stdout = None",
    "import builtins; builtins.print = None",
    "import os; os.fork = os.waitpid = os._exit = lambda *a: 0",
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_global_settings_do_not_change_the_marks(grade, setting):
    assert grade(TORCH, SCALE, TALLY, METER, setting).points == 7


SURROUNDINGS = [
    "import otter\ngrader = otter.Notebook('tiny.ipynb')\ngrader.check('scale')\ngrader.check_all()\ngrader.export()",
    "from google.colab import drive, files\ndrive.mount('/content/drive')\nfiles.upload()",
    "%matplotlib widget\n%load_ext nothing_like_it\n%tensorflow_version 2.x",
    "# a comment first\n%%time\nx = 1",
    "!echo hello",
    "import asyncio\nawait asyncio.sleep(0)",
    "display(1)\nget_ipython()",
    "open('numbers.txt').read().split()\nimport os\nos.remove('numbers.txt')",
]


@pytest.mark.parametrize("cell", SURROUNDINGS)
def test_what_belongs_to_a_notebooks_surroundings_runs(grade, cell):
    result = grade(TORCH, cell, SCALE, TALLY, METER)
    assert (result.points, result.cells[1].outcome) == (7, "ok"), result.cells[1]


def test_demonstration_cells_are_left_out(tiny, tiny_sandbox):
    notebook = as_notebook(TORCH, SCALE, TALLY, METER)
    slow = dataclasses.replace(notebook.cells[0], index=9, source="while True: pass", tags=("otter_ignore",))
    notebook = dataclasses.replace(notebook, cells=(*notebook.cells, slow))
    result = grade_notebook(tiny, notebook, submission="s", sha256="0", sandbox=tiny_sandbox)
    assert result.points == 7
    assert [cell.index for cell in result.cells] == [0, 1, 2, 3]


def test_nothing_of_one_submission_reaches_the_next(grade):
    leaving = "open('/tmp/left', 'w').write('x')\nimport builtins, torch\nbuiltins.left = torch.left = 1\n"
    looking = (
        "import os, builtins, torch\nassert not os.path.exists('/tmp/left')\nassert os.listdir('/dev/shm') == []\n"
    )
    looking += "assert not hasattr(builtins, 'left') and not hasattr(torch, 'left')\n"
    first = grade(TORCH, leaving, SCALE, TALLY, METER)
    second = grade(TORCH, looking, SCALE, TALLY, METER)
    assert first.cells[1].outcome == second.cells[1].outcome == "ok", second.cells[1]


def test_marks_do_not_depend_on_what_was_graded_before(grade):
    wrong = "def scale(x, factor=2.0):\n    x.fill_(7)\n    return x\n"

    def record(result: Result) -> dict[str, object]:
        return {**dataclasses.asdict(result), "seconds": 0}

    first = grade(TORCH, SCALE, TALLY, METER)
    grade(TORCH, wrong, "import torch\ntorch.Tensor.__eq__ = lambda *a: True\n", METER)
    again = grade(TORCH, SCALE, TALLY, METER)
    assert record(first) == record(again)


def test_an_ungradable_submission_reports_every_question(tiny):
    result = ungradable(tiny, submission="s", sha256="0", reason="it is no notebook")
    assert (result.status, result.points, result.possible) == ("ungradable", 0, 7)
    assert [question.id for question in result.questions] == ["scale", "tally"]
    assert Result.from_json(result.to_json()) == result


def test_an_exception_that_utf8_cannot_hold_is_recorded(grade, tmp_path):
    result = grade(TORCH, "raise ValueError('bad \\ud800')", SCALE, TALLY, METER)
    assert result.points == 7
    write_whole(tmp_path / "result.json", result.to_json())
    assert Result.from_json((tmp_path / "result.json").read_text(encoding="utf-8")).points == 7


FORGED = """import struct
from autograder.worker import notebook_process
def forged(self, request):
    document = b'DOCUMENT'
    return struct.pack("!4sQQ", b"SRv1", len(document), 10) + document + struct.pack("<Q", 2) + b"{}"
notebook_process.NotebookProcess.METHOD = forged
"""


@pytest.mark.parametrize("document", ['{"kind": []}', '{"kind": "shortcut", "names": 5}', "[]"])
@pytest.mark.parametrize("method", ["probe_reply", "run_cell"])
def test_a_forged_reply_is_its_own_submissions_matter(grade, document, method):
    forged = FORGED.replace("DOCUMENT", document.replace("'", "")).replace("METHOD", method)
    result = grade(TORCH, SCALE, TALLY, METER, forged, "x = 1")
    assert result.status == "graded"
    assert result.points == (0 if method == "probe_reply" else 7)
    assert grade(TORCH, SCALE, TALLY, METER).points == 7


def test_a_process_that_ends_itself_later_is_started_again(grade):
    later = "import os, threading\nthreading.Timer(0.5, os._exit, (3,)).start()\n"
    assert grade(TORCH, SCALE, TALLY, METER, later).points == 7


MOUNTS = """import ctypes, os, time
libc = ctypes.CDLL(None)
if libc.unshare(0x10000000 | 0x00020000) == 0:
    time.sleep(5)
"""


def test_a_user_namespace_of_its_own_ends_the_cell(grade, tiny_sandbox):
    if tiny_sandbox.mode != "bwrap":
        pytest.skip("user namespaces are bubblewrap's matter")
    result = grade(TORCH, SCALE, TALLY, METER, MOUNTS)
    assert result.points == 7
    assert result.cells[4].outcome == ("crashed" if os.geteuid() == 0 else "ok")
