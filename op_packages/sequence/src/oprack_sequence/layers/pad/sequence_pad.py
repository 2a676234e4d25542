"""Layer of sequence_pad."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


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
