"""Global numeric settings put back to the libraries' defaults before a probe runs."""

from __future__ import annotations

import random
import warnings

import numpy as np
import torch


def reset_numeric_state(seed: int = 0) -> None:
    """Seeds every global generator and undoes what a notebook may have set for the whole process.

    Default dtype and device, grad mode, deterministic mode, NumPy's error handling, warnings filters.
    """
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    torch.use_deterministic_algorithms(False)
    torch.autograd.set_detect_anomaly(False)
    np.seterr(divide="warn", over="warn", under="ignore", invalid="warn")
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)  # torch.manual_seed looks for accelerators too: milliseconds each time
