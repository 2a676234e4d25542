"""Sequences as a padded batch, and back."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_dtype, check_variable
from oprack.types import ALL_DTYPES, dtype_enum


# Layer of sequence_mask.
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


# Layer of sequence_pad.
def sequence_pad(
    x: Variable, pad_value: Variable, maxlen: int | None = None, name: str | None = None
) -> tuple[Variable, Variable]:
    """(x as [sequences, maxlen, ...], int64 lengths [sequences]); shorter sequences are filled up with pad_value.

    pad_value: a Variable of one element or of a row's shape. maxlen: default the longest one's length. Op sequence_pad.
    """
    inputs = {
        "X": check_variable(x, "x", "sequence_pad"),
        "PadValue": check_variable(pad_value, "pad_value", "sequence_pad"),
    }
    attrs = {"padded_length": -1 if maxlen is None else maxlen}
    out, length = LayerHelper("sequence_pad", name=name).apply("sequence_pad", inputs, attrs)
    length.stop_gradient = True
    return out, length


# Layer of sequence_unpad.
def sequence_unpad(x: Variable, length: Variable | None, name: str | None = None) -> Variable:
    """Undoes sequence_pad: rows with LoD, of [sequences, maxlen, ...] and int64 lengths. Op sequence_unpad."""
    inputs = {
        "X": check_variable(x, "x", "sequence_unpad"),
        "Length": check_variable(length, "length", "sequence_unpad"),
    }
    return LayerHelper("sequence_unpad", name=name).apply("sequence_unpad", inputs)
