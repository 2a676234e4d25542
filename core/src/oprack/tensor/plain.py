"""Arrays from outside, made such as kernels take them: plain_array."""

from __future__ import annotations

from typing import Any

import numpy as np

from oprack.errors import InvalidArgumentError


def plain_array(array: Any) -> Any:
    """A NumPy array, or scalar, as kernels take it: of class ndarray, in native byte order and C order.

    One that is so already is returned itself, as are arrays of other libraries.
    Raises InvalidArgumentError for an array with masked elements, which have no values.
    """
    if type(array) is np.ndarray and array.flags.c_contiguous and array.dtype.isnative:
        return array
    if not isinstance(array, np.ndarray | np.generic):
        return array
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise InvalidArgumentError(
            f"got a masked array, {int(np.ma.count_masked(array))} of whose {array.size} elements have no value; "
            "expected a value for each: pass array.filled(value)"
        )
    dtype = array.dtype if array.dtype.isnative else array.dtype.newbyteorder("=")
    return np.asarray(array, dtype, order="C")
