"""What grading costs: CPU beyond a notebook's own work, a worker's start, the grader's memory over a class.

usage: python scripts/bench.py [--rounds N] [--copies N]

Every figure compares things measured in one run on one machine, as CPU seconds or ratios, beside its target.
"""

from __future__ import annotations

import argparse
import pickle
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from autograder.grader_process import free_cycles
from autograder.grading import grade_notebook
from autograder.isolation import Sandbox, open_sandbox
from autograder.isolation.memory import tree
from autograder.isolation.notebook_run import NotebookRun
from autograder.notebook import Notebook, graded_cells, read_notebook
from autograder.probes import PackedProbe
from autograder.project import Assignment, load_assignment

ROOT = Path(__file__).resolve().parent.parent
HW = "hw4_pytorch_init_norm"
FULL_MARKS = ROOT / "examples" / HW / "full-marks.ipynb"

PLAIN = """
import pickle, sys, time
with open(sys.argv[1], "rb") as file:
    cells, probes, preload = pickle.load(file)
import importlib
for name in preload:
    importlib.import_module(name)
import torch
torch.set_num_threads(1)
from autograder.worker import stand_ins
from autograder.worker.names import Names
from autograder.worker.numeric_state import reset_numeric_state
reset_numeric_state()
stand_ins.install()
probes = [packed.unpack() for packed in probes]
started = time.process_time()
namespace = {"__name__": "__main__"}
for number, source in enumerate(cells):
    exec(compile(source, f"cell {number}", "exec"), namespace)
after_cells = time.process_time()
for probe, inputs in probes:
    reset_numeric_state()
    probe(Names(namespace), *inputs)
print(after_cells - started, time.process_time() - after_cells)
"""


def cpu_of(pids: list[int]) -> float:
    """CPU seconds of these processes and of the children they have collected."""
    total = 0.0
    for pid in pids:
        times = psutil.Process(pid).cpu_times()
        total += times.user + times.system + times.children_user + times.children_system
    return total


def record_probes(assignment: Assignment, notebook: Notebook, sandbox: Sandbox) -> list[PackedProbe]:
    """The probes that one grading runs, in order."""
    recorded: list[PackedProbe] = []
    observe = NotebookRun.observe

    def recording(run: NotebookRun, packed: PackedProbe, **options: object) -> object:
        recorded.append(packed)
        return observe(run, packed, **options)  # type: ignore[arg-type]

    NotebookRun.observe = recording  # type: ignore[method-assign,assignment]
    try:
        grade_notebook(assignment, notebook, submission="bench", sha256="", sandbox=sandbox)
    finally:
        NotebookRun.observe = observe  # type: ignore[method-assign]
    return recorded


def plain_cost(cells: list[str], probes: list[PackedProbe], preload: list[str]) -> tuple[float, float]:
    """CPU seconds of the cells and of the probes in one warm Python without any of the engine."""
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        file.write(pickle.dumps((cells, probes, preload)))
        file.flush()
        command = [sys.executable, "-c", PLAIN, file.name]
        environment = {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        folder = tempfile.gettempdir()
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=folder)
    cells_cost, probes_cost = done.stdout.split()[-2:]
    return float(cells_cost), float(probes_cost)


def grading_cost(assignment: Assignment, notebook: Notebook, sandbox: Sandbox) -> float:
    """CPU seconds of grading one notebook: this process, and everything in the sandbox."""
    assert sandbox.launched is not None
    pids = [sandbox.launched.process.pid, *tree(sandbox.launched.process.pid)]
    before, own = cpu_of(pids), time.process_time()
    result = grade_notebook(assignment, notebook, submission="bench", sha256="", sandbox=sandbox)
    free_cycles()
    assert result.points == result.possible, "the bench grades a notebook of full marks"
    return time.process_time() - own + cpu_of(pids) - before


def bench_cost(assignment: Assignment, sandbox: Sandbox, rounds: int) -> None:
    """Prints what grading costs beyond the notebook's own work."""
    notebook = read_notebook(FULL_MARKS.read_bytes(), FULL_MARKS.name)
    probes = record_probes(assignment, notebook, sandbox)
    cells = [cell.source for cell in graded_cells(notebook)]
    preload = ["numpy", "IPython", *assignment.preload]
    graded, plain = [], []
    for _ in range(rounds):
        graded.append(grading_cost(assignment, notebook, sandbox))
        plain.append(plain_cost(cells, probes, preload))
    total = statistics.median(graded)
    own_cells, own_probes = (statistics.median(part) for part in zip(*plain, strict=True))
    beyond = [g - sum(p) for g, p in zip(graded, plain, strict=True)]
    print(f"one full-marks notebook, {len(cells)} cells, {len(probes)} probes, median of {rounds}:")
    print(
        f"  in a plain warm Python   {own_cells + own_probes:6.2f} s CPU"
        f" (cells {own_cells:.2f}, probes {own_probes:.2f})"
    )
    print(f"  graded                   {total:6.2f} s CPU, {total / (own_cells + own_probes):.2f} times as much")
    print(f"  beyond its own work      {statistics.median(beyond):6.2f} s CPU (target: at most 1.0)")
    print(f"  the hidden cases         {own_probes:6.2f} s CPU (target: at most 8)")


def bench_start(sandbox: Sandbox, rounds: int) -> None:
    """Prints how soon a warm worker answers."""
    waits = []
    for _ in range(rounds):
        started = time.perf_counter()
        worker = sandbox.fork()
        waits.append(time.perf_counter() - started)
        worker.close()
    median, most = statistics.median(waits) * 1000, max(waits) * 1000
    print(f"a warm worker is ready in {median:.0f} ms (median of {rounds}, most {most:.0f}; target: under 150)")


def bench_memory(copies: int) -> None:
    """Prints the memory of the grader's processes while a class of copies is graded."""
    with tempfile.TemporaryDirectory() as folder:
        class_folder, out = Path(folder, "class"), Path(folder, "out")
        class_folder.mkdir()
        source = FULL_MARKS.read_text(encoding="utf-8")
        for number in range(copies):
            changed = source.replace('"nbformat":', f'"copy": {number},\n "nbformat":', 1) if number else source
            (class_folder / f"student-{number:03}.ipynb").write_text(changed, encoding="utf-8")
        command = [sys.executable, "-m", "autograder", "grade", HW, str(class_folder), "-o", str(out), "-j", "2"]
        process = psutil.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        samples: dict[int, int] = {}
        while process.poll() is None:
            done = len(list((out / "results").glob("*.json"))) if out.exists() else 0
            samples[done] = max(samples.get(done, 0), graders_memory(process))
            time.sleep(0.25)
        shutil.rmtree(out, ignore_errors=True)
    early = [size for done, size in samples.items() if copies // 4 <= done < copies // 2]
    late = [size for done, size in samples.items() if copies - copies // 4 <= done < copies]
    first, last = statistics.median(early) / 2**20, statistics.median(late) / 2**20
    print(
        f"{copies} copies with -j 2: the graders hold {first:.0f} MB in the second quarter, {last:.0f} MB in the last"
    )
    print(f"  ratio {last / first:.3f} (target: flat, 1.0)")


def graders_memory(process: psutil.Process) -> int:
    """Private memory of the command and its grader processes, without what runs in sandboxes."""
    total = 0
    waiting = [process]
    while waiting:
        one = waiting.pop()
        try:
            if one.name().startswith("bwrap"):
                continue
            waiting += one.children()
            total += one.memory_full_info().uss
        except psutil.Error:
            continue
    return total


def main() -> None:
    """Runs all benchmarks and prints them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--copies", type=int, default=40)
    arguments = parser.parse_args()
    assignment = load_assignment(HW, ROOT)
    with open_sandbox("auto", assignment) as sandbox:
        print(", ".join(sandbox.in_force[:1]))
        bench_start(sandbox, 4 * arguments.rounds)
        bench_cost(assignment, sandbox, arguments.rounds)
    if arguments.copies:
        bench_memory(arguments.copies)


if __name__ == "__main__":
    main()
