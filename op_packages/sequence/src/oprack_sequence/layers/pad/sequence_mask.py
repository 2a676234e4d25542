"""Layer of sequence_mask."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_dtype, check_variable
from oprack.types import ALL_DTYPES, dtype_enum


def sequence_mask(x: Variable, maxlen: int | None = None, dtype: object = "int64", name: str | None = None) -> Variable:
    """[*x.shape, maxlen]: 1 where the place is less than the length in x, else 0. maxlen: an int, a Variable of one
    element, or None for the largest length. Op sequence_mask. Raises InvalidArgumentError.
    """
    inputs = {"X": check_variable(x, "x", "sequence_mask")}
    attrs = {"out_dtype": int(dtype_enum(check_dtype(dtype, "dtype", "sequence_mask", ALL_DTYPES)))}
    if hasattr(maxlen, "desc"):
        inputs["MaxLenTensor"] = check_variable(maxlen, "maxlen", "sequence_mask", {"int32", "int64"})
    elif maxlen is not None:
        attrs["maxlen"] = maxlen
    return LayerHelper("sequence_mask", name=name).apply("sequence_mask", inputs, attrs, stop_gradient=True)
