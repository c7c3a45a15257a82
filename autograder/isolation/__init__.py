"""Confined observation: student code runs here and nowhere else."""

from autograder.isolation.sandbox import MODES, Sandbox, open_sandbox

__all__ = ["MODES", "Sandbox", "open_sandbox"]
