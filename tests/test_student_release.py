"""What students get for hw4: up to date, nothing in it that they must not have, and working with nothing else there."""

from __future__ import annotations

import ast
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from otter.test_files import ExceptionTestFile

from autograder.build import notebook_with, stale_files, unfilled_notebook
from autograder.build.definitions import definitions, split_solution, without_markers
from autograder.project import Assignment, find_root, load_assignment

HW = "hw4_pytorch_init_norm"
ROOT = find_root(Path(__file__).parent)
ASSIGNMENT: Assignment = load_assignment(HW, ROOT)
RELEASE = ROOT / "student" / HW
QUESTIONS = [question.id for question in ASSIGNMENT.questions]
SOLUTIONS = {name: without_markers(source) for name, source in definitions(ASSIGNMENT.solutions.read_text()).items()}


def released_texts() -> dict[str, str]:
    texts = {path.name: path.read_text() for path in RELEASE.rglob("*") if path.suffix in (".py", ".txt")}
    for cell in nbformat.read(RELEASE / f"{HW}.ipynb", as_version=4).cells:
        texts[f"cell {cell.id}"] = cell.source
    return texts


def code_lines(text: str) -> set[str]:
    return {line.strip().replace('"', "'") for line in text.splitlines()}


# What is in it


def test_release_is_up_to_date():
    assert stale_files(ASSIGNMENT) == [], "run `autograder build`"


def test_release_holds_what_students_need_and_nothing_else():
    files = {path.relative_to(RELEASE).as_posix() for path in RELEASE.rglob("*") if path.is_file()}
    assert files == {f"{HW}.ipynb", "requirements.txt", *(f"tests/{question}.py" for question in QUESTIONS)}


def test_every_solution_is_a_stub():
    cells = [text for name, text in released_texts().items() if name.startswith("cell")]
    for name, source in definitions(ASSIGNMENT.solutions.read_text()).items():
        stub = next(text for text in cells if re.search(rf"^(def|class) {name}\b", text, flags=re.MULTILINE))
        assert code_lines(stub) == code_lines("\n".join(split_solution(source)[0])) | {"..."}


def test_no_solution_line():
    given: set[str] = set()
    secret: set[str] = set()
    for source in definitions(ASSIGNMENT.solutions.read_text()).values():
        shown, hidden = split_solution(source)
        given |= code_lines("\n".join(shown))
        secret |= {line for line in code_lines("\n".join(hidden)) if len(re.findall(r"\w+", line)) > 3}
    for name, text in released_texts().items():
        found = [line for line in secret - given if line.removeprefix("return ") in text.replace('"', "'")]
        assert not found, name


def test_no_hidden_case():
    everything = "\n".join(released_texts().values()).replace('"', "'")
    hidden_files = sorted(path for path in ASSIGNMENT.folder.glob("*.py") if path.name != "notebook.py")
    assert any(path.name.startswith("test_") for path in hidden_files)
    for path in hidden_files:
        source = path.read_text()
        lines = [line.strip().replace('"', "'") for line in source.splitlines()]
        assert path.name not in everything or path.name == "__init__.py"
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and node.args.args:
                first = node.args.args[0].arg
                if first in ("nb", "compare", "observe"):
                    assert f"def {node.name}({first}" not in everything
                    telling = re.compile(r"\bnb\.|\b(compare|observe|require)\(")
                    for line in filter(telling.search, lines[node.lineno - 1 : node.end_lineno]):
                        assert line not in everything, f"{path.name}: {line}"
    assert not re.search(r"(import|from) (autograder|assignments|solutions)\b|\bnb\.|mistakes|alternatives", everything)


def test_no_number_of_the_bands():
    numbers = re.compile(r"\b\d+\.\d{3,}\b")
    shown = set(numbers.findall("\n".join(released_texts().values())))
    assert shown
    for path in ASSIGNMENT.folder.glob("*.toml"):
        assert not shown & set(numbers.findall(path.read_text())), path.name


# The checks, run as Otter runs them, in this process


def notebook_names(**replacements: str) -> dict[str, Any]:
    """The names of a notebook filled with the solutions, or with the replacements given."""
    names: dict[str, Any] = {}
    exec("import math\nfrom collections.abc import Callable\nimport torch\nfrom torch import Tensor, nn", names)
    for source in {**SOLUTIONS, **replacements}.values():
        exec(source, names)
    return names


def failures(question: str, names: dict[str, Any]) -> list[str]:
    checks = ExceptionTestFile.from_file(str(RELEASE / "tests" / f"{question}.py"))
    checks.run(names)
    assert len(checks.test_case_results) >= 2
    return [result.message for result in checks.test_case_results if not result.passed]


@pytest.mark.parametrize("question", QUESTIONS)
def test_right_answers_pass(question):
    assert failures(question, notebook_names()) == []


@pytest.mark.parametrize(
    "question, name, right, wrong, told",
    [
        ("he_init", "he_normal", "math.sqrt(2.0 / fan_in)", "2.0 / fan_in", "the variance or the standard deviation"),
        ("he_init", "he_normal", "tensor.shape[1]", "tensor.shape[0]", "Which axis is the fan-in?"),
        ("he_init", "he_uniform", "6.0 / fan_in", "2.0 / fan_in", "standard deviation for the bound"),
        ("he_init", "he_uniform", "generator=generator", "generator=None", "pass `generator` on"),
        ("he_init", "he_normal", "tensor.normal_", "tensor.clone().normal_", "not a new one"),
        ("xavier_init", "xavier_normal", "2.0 / (fan_in + fan_out)", "2.0 / fan_in", "root of 2/800"),
        ("xavier_init", "xavier_uniform", "6.0 / (", "3.0 / (", "gives b = 0.1"),
        ("preactivation_stds", "preactivation_stds", "stds.append(a.std().item())\n            z = activation(a)",
         "z = activation(a)\n            stds.append(z.std().item())", "0.7071 from measuring after the ReLU"),
        ("preactivation_stds", "preactivation_stds", "a.std()", "a.std(correction=0)", "1 comes from dividing by n"),
        ("preactivation_stds", "preactivation_stds", "z = activation(a)", "z = a", "the weight 3 makes that 0, 3"),
        ("preactivation_stds", "preactivation_stds", ".item()", "", "plain Python floats"),
        ("batch_norm", "batch_norm", "(deviation**2).mean(dim=0)", "a.var(dim=0)", "dividing by K - 1"),
        ("batch_norm", "batch_norm", "torch.sqrt(variance + eps)", "(torch.sqrt(variance) + eps)", "root of 1 + 3"),
        ("batch_norm", "batch_norm", "a.mean(dim=0)", "a.mean(dim=0).detach()", "sum to zero"),
        ("batch_norm", "batch_norm", "dim=0", "dim=1, keepdim=True", "the column 1, 3 has mean 2"),
        ("batch_norm", "batch_norm", " + beta", "", "shifted by 0 and 1"),
        ("running_stats", "update_running_stats", "correction=1", "correction=0", "1.0 comes from the biased variance"),
        ("running_stats", "update_running_stats", "(1.0 - momentum)", "momentum", "with momentum 0"),
        ("running_stats", "update_running_stats", "torch.no_grad()", "torch.enable_grad()", "under no_grad"),
        ("batch_norm_module", "BatchNorm", 'self.register_buffer("running_var", ', "self.running_var = (", "buffers"),
        ("batch_norm_module", "BatchNorm", "if not self.training", "if False", "more than one row"),
        ("batch_norm_module", "BatchNorm", "a.shape[0] < 2", "False", "one row has no spread"),
        ("layer_norm", "layer_norm", "dim=-1", "dim=0", "Which axis"),
        ("layer_norm", "layer_norm", "dim=-1", "dim=1", "use the last one"),
        ("layer_norm", "layer_norm", "torch.sqrt(variance + eps)", "(torch.sqrt(variance) + eps)", "with eps = 3"),
        ("rms_norm", "rms_norm", ".mean(dim", ".sum(dim", "Mean or sum"),
        ("rms_norm", "rms_norm", "gamma * a /", "gamma * (a - a.mean(dim=-1, keepdim=True)) /", "becomes 1, 1"),
        ("norm_mlp", "NormMLP", "if i < last", "if True", "Is there an activation after the last layer?"),
        ("norm_mlp", "NormMLP", "                if self.norms:\n                    x = self.norms[i](x)\n"
         "                x = self.activation(x)", "                x = self.activation(x)\n"
         "                if self.norms:\n                    x = self.norms[i](x)", "the activation came first"),
        ("norm_mlp", "NormMLP", "self.layers = nn.ModuleList(", "self.layers = list(", "nn.ModuleList"),
        ("training", "train_classifier", "            optimizer.zero_grad()\n", "", "1.269 means"),
        ("training", "train_classifier", "LogitsLoss()", "LogitsLoss(reduction='sum')", "mean loss is ln 2"),
        ("training", "train_classifier", "torch.randperm(len(x), generator=generator)", "torch.arange(len(x))", "anew"),
        ("training", "train_classifier", "    model.train()\n", "", "put into training mode"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_where_to_look(question, name, right, wrong, told):
    assert right in SOLUTIONS[name]
    messages = failures(question, notebook_names(**{name: SOLUTIONS[name].replace(right, wrong)}))
    assert messages
    assert any(told in message for message in messages), messages


# The notebook, run from top to bottom in a folder of its own


def run_notebook(data: bytes, folder: Path, patch: pytest.MonkeyPatch) -> Any:
    """Runs a notebook in a copy of the release, where nothing of this project can be imported."""
    for path in RELEASE.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            copy = folder / path.relative_to(RELEASE)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    (folder / f"{HW}.ipynb").write_bytes(data)
    notebook = nbformat.reads(data.decode(), as_version=4)
    shut = "import sys\nsys.modules.update(dict.fromkeys(('autograder', 'solutions', 'assignments')))"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(shut))
    patch.setenv("IPYTHONDIR", str(folder / ".ipython"))
    patch.setenv("OMP_NUM_THREADS", "1")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment)
    return notebook


def results(notebook: Any) -> dict[str, str]:
    """What each check printed, by question."""
    found = {}
    for cell in notebook.cells:
        if match := re.fullmatch(r'grader\.check\("(\w+)"\)', cell.source):
            (output,) = cell.outputs
            found[match[1]] = output.data["text/plain"]
    return found


def printed(notebook: Any) -> str:
    return "".join(o.get("text", "") for c in notebook.cells for o in c.get("outputs", ()) if o.output_type == "stream")


def figures(notebook: Any) -> int:
    return sum("image/png" in o.get("data", {}) for c in notebook.cells for o in c.get("outputs", ()))


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as context:
        yield context


@pytest.fixture(scope="module")
def unfilled(tmp_path_factory, patch):
    return run_notebook(unfilled_notebook(ASSIGNMENT), tmp_path_factory.mktemp("unfilled"), patch)


@pytest.fixture(scope="module")
def filled(tmp_path_factory, patch):
    """The student's own notebook, every stub replaced by a right answer."""
    folder = tmp_path_factory.mktemp("filled")
    return run_notebook(notebook_with(ASSIGNMENT, SOLUTIONS, unfilled=True), folder, patch), folder


def test_on_stubs_every_check_says_what_is_missing(unfilled):
    found = results(unfilled)
    assert sorted(found) == sorted(QUESTIONS)
    for question, text in found.items():
        assert "✅" not in text and "All test cases passed" not in text, question
        assert "replace the `...`" in text, question
        assert "Traceback" not in text
        errors = re.findall(r"^ *(\w*(?:Error|Exception)):", text, flags=re.MULTILINE)
        assert set(errors) == {"AssertionError"}, question


def test_on_stubs_demonstrations_wait(unfilled):
    assert figures(unfilled) == 0
    assert printed(unfilled).count("This demonstration needs") == 6


@pytest.mark.parametrize("question", QUESTIONS)
def test_on_right_answers_checks_pass(filled, question):
    assert results(filled[0])[question] == f"{question} results: All test cases passed!"


def test_on_right_answers_demonstrations_show(filled):
    assert figures(filled[0]) == 5
    assert "demonstration needs" not in printed(filled[0])
    table = {line[:10]: re.findall("yes|no", line[10:]) for line in printed(filled[0]).splitlines()[1:4]}
    assert table == {
        "batch norm": ["yes", "yes", "yes", "no", "yes"],
        "layer norm": ["yes", "yes", "no", "yes", "yes"],
        "RMSNorm   ": ["yes", "no", "no", "yes", "yes"],
    }


def test_export_holds_the_notebook_and_no_pickle(filled):
    (archive,) = filled[1].glob("*.zip")
    with zipfile.ZipFile(archive) as exported:
        names = exported.namelist()
        assert json.loads(exported.read(f"{HW}.ipynb"))["cells"]
    assert ".OTTER_LOG" not in names
