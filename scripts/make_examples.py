"""Makes `examples/<hw>/`: small submissions, each named for what it shows, with the marks that they must get.

usage: python scripts/make_examples.py [--check]

The notebooks are the student's notebook filled in, with one thing changed; a test grades them and compares with
`marks.toml`. `--check` says which files are out of date and exits with 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

from autograder.build import notebook_with, solution_notebook, unfilled_notebook
from autograder.project import Assignment, load_assignment

ROOT = Path(__file__).resolve().parent.parent
HW = "hw4_pytorch_init_norm"

UNBIASED = """def batch_norm(a, gamma, beta, eps=1e-5):
    mean = a.mean(dim=0)
    var = a.var(dim=0)
    return gamma * (a - mean) / torch.sqrt(var + eps) + beta
"""
BROKEN = """def layer_norm(a, gamma, beta, eps=1e-5)
    mean = a.mean(dim=-1, keepdim=True)
    var = a.var(dim=-1, keepdim=True, correction=0)
    return gamma * (a - mean) / torch.sqrt(var + eps) + beta
"""
EXITS = """def rms_norm(a, gamma, eps=1e-5):
    if a.dim() < 1:
        print("nothing to normalize")
    sys.exit("done")
"""
NEVER_RETURNS = """def update_running_stats(running_mean, running_var, a, momentum=0.1):
    step = 0
    while step < 1:
        running_mean = (1 - momentum) * running_mean + momentum * a.mean(dim=0)
        running_var = (1 - momentum) * running_var + momentum * a.var(dim=0)
    return running_mean, running_var
"""
LIBRARY = """def layer_norm(a, gamma, beta, eps=1e-5):
    return nn.functional.layer_norm(a, a.shape[-1:], gamma, beta, eps)
"""
IN_PLACE = """def layer_norm(a, gamma, beta, eps=1e-5):
    a -= a.mean(dim=-1, keepdim=True)
    a /= torch.sqrt((a**2).mean(dim=-1, keepdim=True) + eps)
    return gamma * a + beta
"""
PLAIN_LIST = """class NormMLP(nn.Module):
    def __init__(self, dims, activation="tanh", norm="none"):
        super().__init__()
        if activation not in ("tanh", "relu"):
            raise ValueError(activation)
        if norm not in ("none", "batch", "layer"):
            raise ValueError(norm)
        self.act = torch.tanh if activation == "tanh" else torch.relu
        self.layers = [nn.Linear(m, n) for m, n in zip(dims[:-1], dims[1:])]
        kind = {"none": None, "batch": BatchNorm, "layer": nn.LayerNorm}[norm]
        self.norms = [kind(n) for n in dims[1:-1]] if kind else []

    def forward(self, x):
        for i, layer in enumerate(self.layers[:-1]):
            x = layer(x)
            if self.norms:
                x = self.norms[i](x)
            x = self.act(x)
        return self.layers[-1](x)
"""
COLAB = """!pip install -q torchinfo
%pip install einops
from google.colab import drive, files
drive.mount("/content/drive")
%matplotlib widget
%tensorflow_version 2.x
"""
LOOKS_AROUND = """import os
places = ("/root", "/home", "/autograder", "/opt", "/tmp", "/var", "..")
found = [
    os.path.join(folder, name)
    for place in places
    for folder, _, names in os.walk(place)
    for name in names
    if name.startswith("test_batch_norm") or name == "grades.csv"
]
found += [pid for pid in os.listdir("/proc") if pid.isdigit() and "pytest" in open(f"/proc/{pid}/cmdline").read()]
print(found)
torch.Tensor.__eq__ = lambda self, other: True
torch.allclose = lambda *args, **kwargs: True
"""
SHADOWS = """# a few plots for the report
t = [0.1, 0.2]
x = "week 9"
np = 3
eps = None
torch_seed = 1
batch_norm = {"K": 8, "M": 4}
layer_norm = "see above"
"""
MEMORY = """big = []
while True:
    big.append(torch.zeros(50_000_000))
"""


def edited(notebook: bytes, *, first: str = "", last: str = "", after: tuple[str, str] = ("", "")) -> bytes:
    """The notebook with a code cell put first, last, or after the cell that defines a name."""
    document = nbformat.reads(notebook.decode(), as_version=4)
    cells = document.cells
    if first:
        cells.insert(0, new_cell("opening", first))
    if last:
        cells.append(new_cell("closing", last))
    name, source = after
    if source:
        place = next(i for i, cell in enumerate(cells) if f"def {name}(" in cell.source and cell.cell_type == "code")
        cells.insert(place + 1, new_cell("scratch", source))
    return nbformat.writes(document).encode() + b"\n"


def new_cell(id: str, source: str) -> Any:
    """A code cell with an id of its own."""
    cell = nbformat.v4.new_code_cell(source.rstrip("\n"))
    cell["id"] = id
    return cell


def without_metadata(notebook: bytes) -> bytes:
    """The notebook as some tools leave it: no kernel, no language, no `otter` key, no cell ids, with a BOM."""
    document = json.loads(notebook)
    document["metadata"] = {}
    document["nbformat_minor"] = 4
    for cell in document["cells"]:
        cell.pop("id", None)
        cell["metadata"] = {"tags": cell["metadata"]["tags"]} if cell["metadata"].get("tags") else {}
    return "\ufeff".encode() + json.dumps(document, indent=1).replace("\n", "\r\n").encode()


Maker = Callable[[Assignment], bytes]


def replacing(**definitions: str) -> Maker:
    """The right answers, with these definitions instead."""
    return lambda assignment: notebook_with(assignment, definitions)


EXAMPLES: dict[str, Maker] = {
    "full-marks": solution_notebook,
    "unfilled": unfilled_notebook,
    "unbiased-variance": replacing(batch_norm=UNBIASED),
    "syntax-error-in-one-cell": replacing(layer_norm=BROKEN),
    "modules-in-a-plain-list": replacing(NormMLP=PLAIN_LIST),
    "normalizes-in-place": replacing(layer_norm=IN_PLACE),
    "library-instead-of-own-code": replacing(layer_norm=LIBRARY),
    "sys-exit-inside-a-function": lambda a: edited(notebook_with(a, {"rms_norm": EXITS}), first="import sys"),
    "endless-loop-inside-a-function": replacing(update_running_stats=NEVER_RETURNS),
    "endless-loop-in-a-cell": lambda a: edited(
        solution_notebook(a), after=("rms_norm", "rows = 0\nwhile rows < 10:\n    print(end='')")
    ),
    "kills-the-process": lambda a: edited(
        solution_notebook(a), after=("batch_norm", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    ),
    "prints-without-end": lambda a: edited(
        solution_notebook(a), after=("layer_norm", "while True:\n    print('loss', 0.693)")
    ),
    "runs-out-of-memory": lambda a: edited(solution_notebook(a), after=("batch_norm", MEMORY)),
    "opens-with-pip-and-colab": lambda a: edited(solution_notebook(a), first=COLAB),
    "shadowed-names": lambda a: edited(solution_notebook(a), last=SHADOWS),
    "looks-for-the-answers": lambda a: edited(notebook_with(a, {"batch_norm": UNBIASED}), last=LOOKS_AROUND),
    "metadata-lost": lambda a: without_metadata(solution_notebook(a)),
    "cut-short": lambda a: solution_notebook(a)[:20_000],
}


def main() -> int:
    """Writes the examples, or with `--check` compares them."""
    assignment = load_assignment(HW, ROOT)
    folder = ROOT / "examples" / HW
    stale = [path.name for path in folder.glob("*.ipynb") if path.stem not in EXAMPLES]
    for name, make in EXAMPLES.items():
        path, data = folder / f"{name}.ipynb", make(assignment)
        if "--check" in sys.argv:
            if not path.is_file() or path.read_bytes() != data:
                stale.append(path.name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    for name in stale:
        print(f"examples/{HW}/{name}: out of date; run make examples", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
