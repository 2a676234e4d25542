"""Kernel of fill_constant."""

from __future__ import annotations

import numpy as np
from oprack.errors import AttributeValueError, InvalidArgumentError
from oprack.kernel import kernel
from oprack.tensor import numpy_dtype

from oprack_tensor.dims import to_ints


def constant(op, value, str_value, dtype):
    """The value as a Python number: `str_value` unless it is empty, exactly for integers."""
    if not str_value:
        return value
    try:
        return int(str_value) if dtype.kind in "iu" else complex(str_value) if dtype.kind == "c" else float(str_value)
    except ValueError:
        pass
    try:
        return int(float(str_value)) if dtype.kind in "iu" else float(str_value)
    except (ValueError, OverflowError):
        raise AttributeValueError(
            f"op {op}: attribute str_value is {str_value!r}; "
            f"expected a number of dtype {dtype.name}, or an empty string"
        ) from None


def cast(value, dtype):
    """A Python number as an element of a dtype, again as a Python number, which every array library fills with."""
    element = np.asarray(value).astype(dtype)
    return element.item() if dtype.kind in "biufc" else float(element)


@kernel("fill_constant", place=("cpu", "cuda"))
def fill_constant(ValueTensor=None, ShapeTensor=None, ShapeTensorList=None, *, dtype, shape, value, str_value, xp):
    wanted = numpy_dtype(dtype)
    dims = to_ints(ShapeTensor, ShapeTensorList, shape)
    if any(d < 0 for d in dims):
        raise InvalidArgumentError(f"op fill_constant: shape is {dims}; expected no negative size when the op runs")
    if ValueTensor is not None:
        return xp.full(dims, ValueTensor.reshape(-1)[0].astype(wanted), wanted)
    return xp.full(dims, cast(constant("fill_constant", value, str_value, wanted), wanted), wanted)
