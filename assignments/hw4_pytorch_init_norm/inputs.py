"""Inputs of the hidden cases, made on the trusted side from seeds of their own."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def normal(
    seed: int, *shape: int, scale: float = 1.0, offset: float = 0.0, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Independent draws from N(offset, scale²)."""
    draws = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (offset + scale * draws).to(dtype)


def norm_inputs(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Pre-activations with mean 5 and standard deviation 3, and a random scale and shift for their last axis."""
    width = shape[-1]
    return (
        normal(seed, *shape, scale=3.0, offset=5.0, dtype=dtype),
        normal(seed + 1, width, offset=0.5, dtype=dtype),
        normal(seed + 2, width, dtype=dtype),
    )


def moons(count: int, seed: int, noise: float = 0.2) -> tuple[Tensor, Tensor]:
    """Two interleaved half circles with Gaussian noise: points (count, 2) and labels 0.0 or 1.0 (count, 1), balanced.

    The classes and their places are those of scikit-learn's `make_moons`; drawn here so that no version of it moves
    the bands.
    """
    generator = torch.Generator().manual_seed(seed)
    angle = math.pi * torch.rand(count, generator=generator)
    labels = (torch.arange(count) % 2).float()
    upper = torch.stack([angle.cos(), angle.sin()], dim=1)
    lower = torch.stack([1.0 - angle.cos(), 0.5 - angle.sin()], dim=1)
    points = torch.where(labels[:, None] == 0, upper, lower)
    return points + noise * torch.randn(count, 2, generator=generator), labels[:, None]
