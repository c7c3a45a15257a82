"""Known student mistakes, each with the case that must catch it and the hint it earns; one file per theme."""

from __future__ import annotations

from assignments.hw4_pytorch_init_norm import (
    mistakes_batch_norm,
    mistakes_initialization,
    mistakes_module_evaluation,
    mistakes_module_training,
    mistakes_network,
    mistakes_row_norms,
    mistakes_training,
)
from autograder.authoring import variants

THEMES = (
    mistakes_initialization,
    mistakes_batch_norm,
    mistakes_module_training,
    mistakes_module_evaluation,
    mistakes_row_norms,
    mistakes_network,
    mistakes_training,
)

__variants__ = [variant for theme in THEMES for variant in variants(theme)]
