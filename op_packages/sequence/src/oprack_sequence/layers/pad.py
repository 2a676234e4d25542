"""Sequences as a padded batch, and back."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_dtype, check_variable
from oprack.types import ALL_DTYPES, dtype_enum


# Layer of sequence_mask.
def sequence_mask(x: Variable, maxlen: int | None = None, dtype: object = "int64", name: str | None = None) -> Variable:
    """Appends op sequence_mask: 1 where a place is less than a length, else 0.

    Args:
        x: Lengths, integers of any shape.
        maxlen: How many places, an int or an integer Variable of one element; None: the largest length.
        dtype: Dtype of the result.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [*x.shape, maxlen].

    Raises:
        InvalidArgumentError: There is no such dtype.
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
    """Appends op sequence_pad: sequences as a dense tensor; shorter ones are filled up.

    Args:
        x: Rows with LoD [rows, ...].
        pad_value: What fills up, a Variable of one element or of a row's shape.
        maxlen: The length of the result; None: that of the longest sequence.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        ([sequences, maxlen, ...], int64 lengths [sequences]).
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
    """Appends op sequence_unpad: undoes sequence_pad.

    Args:
        x: A Variable [sequences, maxlen, ...].
        length: Lengths [sequences], int64.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Rows with LoD [rows, ...].
    """
    inputs = {
        "X": check_variable(x, "x", "sequence_unpad"),
        "Length": check_variable(length, "length", "sequence_unpad"),
    }
    return LayerHelper("sequence_unpad", name=name).apply("sequence_unpad", inputs)
