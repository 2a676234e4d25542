"""What uniform_random and uniform_random_batch_size_like share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array
from oprack.tensor import numpy_dtype
from oprack.types import FLOATS

if TYPE_CHECKING:
    import numpy as np

DTYPES = FLOATS | {"bfloat16"}


def uniform(
    op: str,
    dims: Sequence[int],
    dtype: object,
    low: float,
    high: float,
    diag_num: int,
    diag_step: int,
    diag_val: float,
    generator: np.random.Generator,
) -> Array:
    """Array of these dims from U[low, high), then diag_val at diag_num places that are diag_step apart."""
    if low > high:
        raise InvalidArgumentError(f"op {op}: min is {low} and max {high}; expected min <= max")
    wanted = numpy_dtype(dtype)
    values = generator.uniform(low, high, dims).astype(wanted)
    if high > low and wanted.itemsize < 8:
        values[values >= high] = low  # rounding must not reach the upper bound, which is excluded
    last = (diag_num - 1) * (diag_step + 1)
    if last >= values.size:
        raise InvalidArgumentError(
            f"op {op}: diag_num {diag_num} and diag_step {diag_step} lead to element {last} of {values.size}; "
            "expected fewer"
        )
    if diag_num:
        values.reshape(-1)[: last + 1 : diag_step + 1] = diag_val
    return values
