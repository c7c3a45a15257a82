"""Hypothesis strategies for what a probe may return."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

numbers = st.one_of(st.booleans(), st.integers(-(2**70), 2**70), st.floats())
texts = st.text(max_size=20)
DTYPES = (np.float64, np.float32, np.float16, np.int64, np.int8, np.uint8, np.bool_)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    """Arrays of up to three axes, empty ones too, of every dtype that travels."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    return draw(hnp.arrays(dtype, shape))


tensors = arrays().map(lambda array: torch.from_numpy(array.copy()))
leaves = st.one_of(st.none(), numbers, texts, arrays(), tensors)
observations: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4), st.tuples(inner, inner)
    ),
    max_leaves=12,
)
