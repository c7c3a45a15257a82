"""Reference solutions of the tiny assignment."""

import torch


def scale(x, factor=2.0):
    """x times factor, as a new tensor."""
    # BEGIN SOLUTION
    return x * factor
    # END SOLUTION


def tally(items):
    """How often each item occurs."""
    # BEGIN SOLUTION
    counts = {}
    for item in items:
        counts[item] = counts.get(item, 0) + 1
    return counts
    # END SOLUTION


class Meter:
    """Adds what it is given to its total."""

    def __init__(self):
        self.total = torch.zeros(())

    def add(self, x):
        """Adds x and returns the total."""
        # BEGIN SOLUTION
        self.total = self.total + x
        return self.total
        # END SOLUTION
