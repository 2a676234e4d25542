"""From oprack's dtype names and wire numbers to NumPy dtypes."""

from __future__ import annotations

import functools

import numpy as np

from oprack.types import dtype_name


@functools.cache
def _by_name(name: str) -> np.dtype:
    if name == "bfloat16":
        import ml_dtypes  # not needed by programs without bfloat16

        bfloat16: np.dtype = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    return np.dtype(name)


def numpy_dtype(dtype: object) -> np.dtype:
    """The NumPy dtype for a name, a `VarType`, a wire number or a NumPy dtype; bfloat16 is ml_dtypes'.

    Args:
        dtype: The dtype in any of these ways.

    Returns:
        The NumPy dtype.

    Raises:
        InvalidArgumentError: When it is none of Paddle's dtypes.
    """
    return _by_name(dtype_name(dtype))
