"""Measures the bands of the outcomes that rounding and random seeds decide, and writes `bands.toml`.

    python -m assignments.hw4_pytorch_init_norm.measure_bands

runs the probes of the hidden cases on the reference solutions: over seeds, with one and two threads, and with the
vector instructions that PyTorch can be told to use. A band is the range seen, widened on both sides by its standard
deviation, and by no less than `LEAST_WIDENING`; for the signals, which vary by factors, in their logarithm. Takes
about five minutes.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from assignments.hw4_pytorch_init_norm import test_initializers, test_training
from assignments.hw4_pytorch_init_norm.bands import BANDS
from autograder.results import write_whole
from solutions import hw4_pytorch_init_norm as solutions

MODULE = "assignments.hw4_pytorch_init_norm.measure_bands"
SEEDS = 40
PLATFORM_SEEDS = 4
PLATFORMS = {
    "two threads": {"OMP_NUM_THREADS": "2"},
    "avx2": {"OMP_NUM_THREADS": "1", "ATEN_CPU_CAPABILITY": "avx2"},
    "no vector instructions": {"OMP_NUM_THREADS": "1", "ATEN_CPU_CAPABILITY": "default"},
}
TRAININGS = {
    "none": ("none", None),
    "batch": ("batch", None),
    "layer": ("layer", None),
    "xavier": ("none", "xavier_normal"),
}
LEAST_WIDENING = 0.02

HEADER = """\
# Ranges of the reference's outcomes, and the bands that the hidden cases use. Made by
#     python -m {module}
# with torch {torch}, over {seeds} seeds, and {platform_seeds} seeds each with {platforms}.
"""


def accuracies(seeds: range) -> dict[str, list[float]]:
    """Held-out accuracy of every training, per seed; the seed of the hidden cases comes first."""
    x, t, points, settings = test_training.outcome_inputs()
    return {
        name: [
            test_training.accuracy(test_training.trained_answers(solutions, norm, init, x, t, points, settings, seed))
            for seed in (test_training.SEED, *seeds)
        ]
        for name, (norm, init) in TRAININGS.items()
    }


def signals(seeds: range) -> dict[str, list[float]]:
    """Standard deviation of the last pre-activations, per seed and kind of draw."""
    return {
        family: [
            std
            for seed in seeds
            for std in test_initializers.signals(
                solutions, [f"{family}_normal", f"{family}_uniform"], family == "he", *test_initializers.SIGNAL, seed
            )
        ]
        for family in ("he", "xavier")
    }


def on_platform(variables: dict[str, str]) -> dict[str, dict[str, list[float]]]:
    """The same measurements, over fewer seeds, by a Python of its own with these environment variables."""
    command = [sys.executable, "-m", MODULE, "--seeds", str(PLATFORM_SEEDS)]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    measured: dict[str, dict[str, list[float]]] = json.loads(done.stdout)
    return measured


def measure(seeds: int) -> dict[str, dict[str, list[float]]]:
    """Everything that is measured, in this process."""
    return {"accuracy": accuracies(range(seeds)), "signal": signals(range(5 * seeds))}


def band(values: list[float]) -> tuple[float, float]:
    """The range of the values, widened on both sides."""
    widening = max(statistics.stdev(values), LEAST_WIDENING)
    return min(values) - widening, max(values) + widening


def factor_band(values: list[float]) -> tuple[float, float]:
    """The same for quantities that vary by factors."""
    low, high = band([math.log(value) for value in values])
    return math.exp(low), math.exp(high)


def lines(measured: dict[str, dict[str, list[float]]]) -> Iterator[str]:
    """The file's tables."""
    for table, quantities in measured.items():
        for name, values in quantities.items():
            low, high = factor_band(values) if table == "signal" else band(values)
            if table == "accuracy":
                high = min(high, 1.0)
            yield f"\n[{table}.{name}]"
            yield f"band = [{low:.3f}, {high:.3f}]"
            yield f"seen = [{min(values):.4f}, {max(values):.4f}]"
            yield f"median = {statistics.median(values):.4f}"
            yield f"runs = {len(values)}"


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--seeds"]:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        print(json.dumps(measure(int(arguments[1]))))
        return
    torch.set_num_threads(1)
    measured = measure(SEEDS)
    for name, variables in PLATFORMS.items():
        print(f"measuring: {name}", file=sys.stderr)
        for table, quantities in on_platform(variables).items():
            for quantity, values in quantities.items():
                measured[table][quantity] += values
    header = HEADER.format(
        module=MODULE,
        torch=torch.__version__,
        seeds=SEEDS,
        platform_seeds=PLATFORM_SEEDS,
        platforms=", ".join(PLATFORMS),
    )
    write_whole(Path(BANDS), header + "\n".join(lines(measured)) + "\n")
    print(f"wrote {BANDS}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
