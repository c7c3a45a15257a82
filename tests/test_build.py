"""Building a release: the same bytes each time, stale files found, unusable masters refused in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.build import build_release, notebook_with, solution_notebook, stale_files, unfilled_notebook
from autograder.build.assign import run_otter_assign
from autograder.build.definitions import definitions, needed_names, replace_definition, split_solution
from autograder.errors import AutograderError, UnusableAssignment
from autograder.project import Assignment, load_assignment

TOML = """\
title = "Tiny"
packages = ["numpy", "torch>=2.7"]
[[questions]]
id = "double"
title = "Doubling"
points = 2.5
[[questions]]
id = "halve"
title = "Halving"
points = 1
"""

SOLUTIONS = '''\
"""Tiny."""
import math


def double(x: float) -> float:
    """Twice x."""
    # BEGIN SOLUTION
    answer = 2 * x + 0
    return answer
    # END SOLUTION


def halve(x: float) -> float:
    """Half of x, rounded down."""
    # BEGIN SOLUTION
    return math.floor(x / 2 + 0)
    # END SOLUTION
'''

QUESTION = '''\
# %% [raw]
# # BEGIN QUESTION
# name: {name}

# %% [markdown]
# ## {name}, {{points:{name}}} points

# %%
# include: {name}

# %% [raw]
# # BEGIN TESTS

# %%
def test_four({name}):
    """of four"""
    assert {name}(4) == {value}, "look at {name}"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

'''

NOTEBOOK = (
    "# %% [markdown]\n# # Tiny\n\n# %%\nimport math\n\n"
    + QUESTION.format(name="double", value=8)
    + QUESTION.format(name="halve", value=2)
)

HIDDEN = '''\
def probe(nb, x):
    return {"twice": nb.double(x)}


def test_doubles(compare):
    """Doubles."""
    compare(probe, 3.0)
'''


@pytest.fixture
def tiny(tmp_path: Path) -> Callable[..., Assignment]:
    """Makes an assignment of two questions; a file given by its path replaces the one that would be written."""

    def make(files: dict[str, str] | None = None, root: str = "project") -> Assignment:
        texts = {
            "assignments/tiny/assignment.toml": TOML,
            "assignments/tiny/notebook.py": NOTEBOOK,
            "assignments/tiny/test_double.py": HIDDEN,
            "solutions/tiny.py": SOLUTIONS,
            **(files or {}),
        }
        for name, text in texts.items():
            path = tmp_path / root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return load_assignment("tiny", tmp_path / root)

    return make


def released(assignment: Assignment) -> dict[str, bytes]:
    folder = assignment.root / "student" / "tiny"
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def cells(notebook: bytes) -> list[dict[str, object]]:
    return json.loads(notebook)["cells"]


def source(cell: dict[str, object]) -> str:
    return "".join(cell["source"])


def defining(notebook: bytes, name: str) -> str:
    return next(source(cell) for cell in cells(notebook) if f"def {name}(" in source(cell))


def test_release_holds_stub_points_and_checks(tiny):
    assignment = tiny()
    build_release(assignment)
    files = released(assignment)
    assert set(files) == {"tiny.ipynb", "requirements.txt", "tests/double.py", "tests/halve.py"}
    assert defining(files["tiny.ipynb"], "double").endswith('"""Twice x."""\n    ...')
    texts = [source(cell) for cell in cells(files["tiny.ipynb"])]
    assert "## double, 2.5 points" in texts
    assert 'grader.check("halve")' in texts
    assert b"@test_case(name='of four'" in files["tests/double.py"]
    assert files["requirements.txt"].decode().split() == [
        "jupyter>=1.1,<2",
        "numpy>=2.0,<3",
        "otter-grader>=7.0,<8",
        "torch>=2.7",
    ]
    solution = assignment.root / "dist" / "tiny" / "tiny-solution.ipynb"
    assert "answer = 2 * x" in defining(solution.read_bytes(), "double")


def test_two_builds_give_the_same_bytes(tiny):
    first, second = tiny(root="one"), tiny(root="two")
    build_release(first)
    run_otter_assign.cache_clear()
    build_release(second)
    assert released(first) == released(second)


def test_every_cell_has_an_id_of_its_own_and_edits_move_few(tiny):
    before = cells(unfilled_notebook(tiny()))
    assert len({cell["id"] for cell in before}) == len(before)
    longer = NOTEBOOK.replace("# %%\n# include: double", "# %% [markdown]\n# One more.\n\n# %%\n# include: double")
    after = cells(unfilled_notebook(tiny({"assignments/tiny/notebook.py": longer})))
    ids = {source(cell): cell["id"] for cell in after}
    halve = [cell for cell in before if "halve" in source(cell)]
    assert len(halve) == 3
    assert all(ids[source(cell)] == cell["id"] for cell in halve)


def test_stale_files(tiny):
    assignment = tiny()
    folder = assignment.root / "student" / "tiny"
    assert "student/tiny/tiny.ipynb" in stale_files(assignment)
    build_release(assignment)
    assert stale_files(assignment) == []

    (folder / ".OTTER_LOG").touch()
    assert stale_files(assignment) == []
    (folder / "tests" / "double.py").unlink()
    (folder / "tests" / "old.py").touch()
    (folder / "mine.txt").touch()
    edited = tiny({"solutions/tiny.py": SOLUTIONS.replace("Half of x", "One half of x")})
    expected = ["mine.txt", "tests/double.py", "tests/old.py", "tiny.ipynb"]
    assert stale_files(edited) == [f"student/tiny/{name}" for name in expected]

    build_release(edited)
    assert stale_files(edited) == ["student/tiny/mine.txt"]


def test_a_new_solution_behind_the_same_stub_is_not_stale(tiny):
    build_release(tiny())
    assert stale_files(tiny({"solutions/tiny.py": SOLUTIONS.replace("2 * x + 0", "x + x + 0")})) == []


def test_files_are_handed_out(tiny):
    assignment = tiny({"assignments/tiny/files/data/moons.csv": "1,2\n", "assignments/tiny/files/.hidden": ""})
    build_release(assignment)
    assert released(assignment)["data/moons.csv"] == b"1,2\n"
    assert ".hidden" not in released(assignment)


@pytest.mark.parametrize(
    "file, old, new, message",
    [
        ("notebook.py", QUESTION.format(name="halve", value=2), "", "no question halve"),
        ("notebook.py", "# # BEGIN QUESTION\n# name: double", "# BEGIN QUESTION\n# name: double", "no question double"),
        ("assignment.toml", '[[questions]]\nid = "halve"\ntitle = "Halving"\npoints = 1\n', "", "{points:halve}"),
        ("notebook.py", "{points:halve}", "{points:half}", "{points:half}"),
        ("notebook.py", "# name: halve", "# name: double", "question double is there 2 times"),
        ("notebook.py", "# include: double", "# include: double triple", "`# include: triple`"),
        ("notebook.py", "import math", "import numpy", "halve needs math"),
        ("notebook.py", "def test_four(double)", "x = 1\ndef test_four(double)", "Otter Assign: "),
        ("notebook.py", "# # END QUESTION", "# # END TESTS", "Otter Assign: "),
        ("notebook.py", "import math", "import math\nanswer = 2 * x + 0", "a solution line: answer = 2 * x + 0"),
        ("notebook.py", "\nimport math\n", "\nimport math\n# %%\n# include: double\n", "a solution line"),
        ("notebook.py", '"look at double"', "2 * x + 0 == math.floor(x / 2 + 0)", "solution line"),
        ("notebook.py", "# # Tiny", '# `return {"twice": nb.double(x)}`', "a line of the hidden test_double.py"),
        ("notebook.py", "test_four(double)", "test_doubles(compare)", "a line of the hidden test_double.py"),
    ],
)  # fmt: skip
def test_unusable_master_is_refused_in_one_line(tiny, file, old, new, message):
    text = {"notebook.py": NOTEBOOK, "assignment.toml": TOML}[file]
    assert old in text
    assignment = tiny({f"assignments/tiny/{file}": text.replace(old, new, 1)})
    with pytest.raises(UnusableAssignment) as raised:
        build_release(assignment)
    assert message in str(raised.value)
    assert "assignments/tiny/notebook.py" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (assignment.root / "student").exists()


@pytest.mark.parametrize(
    "path, text, message",
    [
        ("solutions/tiny.py", "def double(:\n", "solutions/tiny.py, line 1"),
        ("assignments/tiny/files/tiny.ipynb", "{}", "files/tiny.ipynb has the name of a file that the build makes"),
        (
            "assignments/tiny/notebook.py",
            NOTEBOOK[: NOTEBOOK.rindex("# # BEGIN TESTS")] + "# # END QUESTION\n",
            "question halve has no public check",
        ),
    ],
)
def test_unusable_files_are_refused(tiny, path, text, message):
    with pytest.raises(UnusableAssignment, match=message):
        build_release(tiny({path: text}))


def test_missing_master_is_refused(tiny):
    assignment = tiny()
    (assignment.folder / "notebook.py").unlink()
    with pytest.raises(UnusableAssignment, match=r"notebook\.py"):
        build_release(assignment)


def test_solution_notebook_is_the_students_with_the_stubs_filled(tiny):
    assignment = tiny()
    filled, stubs = cells(solution_notebook(assignment)), cells(unfilled_notebook(assignment))
    differing = [source(a) for a, b in zip(filled, stubs, strict=True) if a != b]
    assert len(differing) == 2
    assert all("return" in text and "SOLUTION" not in text for text in differing)


def test_notebook_with_replacements(tiny):
    assignment = tiny()
    broken = "def double(x):\n    return x +\n"
    notebook = notebook_with(assignment, {"double": broken, "halve": "halve = abs"})
    assert [source(cell) for cell in cells(notebook)].count(broken.strip()) == 1
    assert "halve = abs" in [source(cell) for cell in cells(notebook)]
    unfilled = notebook_with(assignment, {"double": "def double(x): return 0"}, unfilled=True)
    assert defining(unfilled, "double") == "def double(x): return 0"
    assert defining(unfilled, "halve").endswith("...")
    assert notebook_with(assignment, {}) == solution_notebook(assignment)
    with pytest.raises(AutograderError, match="'triple'"):
        notebook_with(assignment, {"triple": "def triple(x): ..."})


DEFINITION = st.builds(
    lambda name, decorated, tail: ("@decorated\n" if decorated else "") + f"def {name}():\n    return 1" + tail,
    st.sampled_from(["f", "g", "h"]),
    st.booleans(),
    st.sampled_from(["", "\n    # END SOLUTION", "\n\n    # a comment after a blank line", "\n\t# and a tab"]),
)
BETWEEN = st.sampled_from(["x = 1", "# a remark", "class C:\n    y = 2", "", "import math"])


def its_name(pair: tuple[str, str]) -> str:
    return pair[1].split("def ")[1][0]


@given(st.lists(st.tuples(BETWEEN, DEFINITION), min_size=1, max_size=3, unique_by=its_name))
def test_a_definition_is_replaced_whole_and_nothing_else(pairs):
    text = "\n\n\n".join(part for pair in pairs for part in pair).strip("\n")
    for name, definition in definitions(text).items():
        assert replace_definition(text, name, definition) == text
        if name != "C":
            assert definition in [pair[1] for pair in pairs]
            replaced = replace_definition(text, name, "NEW")
            assert replaced == text.replace(definition, "NEW")


def test_cells_that_are_not_python_define_nothing():
    assert replace_definition("%time f()\ndef f(): ...", "f", "") is None


def test_split_solution():
    given_lines, solution = split_solution(definitions(SOLUTIONS)["double"])
    assert solution == ["answer = 2 * x + 0", "return answer"]
    assert given_lines == ["def double(x: float) -> float:", '"""Twice x."""']


@pytest.mark.parametrize(
    "text, names",
    [
        ("def f(x: Tensor) -> int:\n    return len(math.sqrt(x))", {"Tensor", "math"}),
        ("class C(nn.M):\n    y: Tensor\n    z = 1\n    def f(self):\n        return z + C.z", {"nn", "Tensor", "z"}),
        ("def f():\n    import math\n    return [math.pi + i for i in f()]", set()),
        ("@mark\ndef f(g=default):\n    def h():\n        return g, other\n    return h", {"mark", "default", "other"}),
    ],
)  # fmt: skip
def test_needed_names(text, names):
    assert needed_names(text) == names
