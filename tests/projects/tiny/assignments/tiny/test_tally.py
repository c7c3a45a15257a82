"""Tallying and the meter."""

import pytest
import torch

from autograder.authoring import require

pytestmark = pytest.mark.question("tally")


def tallied(nb, text):
    return nb.tally(text)


def metered(nb, x):
    meter = nb.Meter()
    meter.add(x)
    return meter.add(x)


def test_counts(compare):
    """Counts of each letter"""
    compare(tallied, "abracadabra")


def test_all_counted(observe):
    """Every item is counted once"""
    counts = observe(tallied, "mississippi")
    require(sum(counts.values()) == 11, "Some items are counted twice, or not at all.", f"{counts}")


def test_meter(compare):
    """The meter adds up"""
    compare(metered, torch.tensor(1.5))
