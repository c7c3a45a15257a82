"""Known mistakes of the tiny assignment."""

from autograder.authoring import mistake


@mistake(
    "scale",
    "in-place",
    hint="It changes x itself: make a new tensor.",
    caught_by="test_scale.py::test_values",
)
def scale(x, factor=2.0):
    return x.mul_(factor)


@mistake("scale", "adds", hint="It adds where it should multiply.", caught_by="test_scale.py::test_values")
def scale(x, factor=2.0):
    return x + factor


@mistake("tally", "booleans", hint="It says that an item occurs: count it.", caught_by="test_tally.py::test_counts")
def tally(items):
    return dict.fromkeys(items, 1)
