"""The rows of each sequence: joined, cut, reversed, counted, weighed."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS


# Layer of add_position_encoding.
def add_position_encoding(input: Variable, alpha: float, beta: float, name: str | None = None) -> Variable:
    """Appends op add_position_encoding: alpha * input + beta * sines and cosines of the place in the sequence.

    Args:
        input: [B, T, D], or rows [rows, D] with LoD, floats.
        alpha: The factor of input.
        beta: The factor of the encoding.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of input.
    """
    input = check_variable(input, "input", "add_position_encoding", FLOATS)
    attrs = {"alpha": float(alpha), "beta": float(beta)}
    return LayerHelper("add_position_encoding", name=name).apply("add_position_encoding", {"X": input}, attrs)


# Layer of sequence_concat.
def sequence_concat(input: Sequence[Variable], name: str | None = None) -> Variable:
    """Appends op sequence_concat: sequence i of each Variable, one after another.

    Args:
        input: Variables with LoD, of as many sequences.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable with LoD.
    """
    values = [check_variable(v, "input", "sequence_concat") for v in input]
    return LayerHelper("sequence_concat", name=name).apply("sequence_concat", {"X": values})


# Layer of sequence_enumerate.
def sequence_enumerate(input: Variable, win_size: int, pad_value: int = 0, name: str | None = None) -> Variable:
    """Appends op sequence_enumerate: each id and those after it in its sequence.

    Args:
        input: Ids [rows, 1] with LoD, int32 or int64.
        win_size: How many ids.
        pad_value: What stands beyond the end of a sequence.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [rows, win_size].
    """
    input = check_variable(input, "input", "sequence_enumerate", {"int32", "int64"})
    attrs = {"win_size": win_size, "pad_value": pad_value}
    helper = LayerHelper("sequence_enumerate", name=name)
    return helper.apply("sequence_enumerate", {"X": input}, attrs, stop_gradient=True)


# Layer of sequence_reshape.
def sequence_reshape(input: Variable, new_dim: int, name: str | None = None) -> Variable:
    """Appends op sequence_reshape: the elements of each sequence as rows of another size.

    Args:
        input: Rows with LoD [rows, D].
        new_dim: The new size of a row.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [rows, new_dim] with LoD.
    """
    input = check_variable(input, "input", "sequence_reshape")
    return LayerHelper("sequence_reshape", name=name).apply("sequence_reshape", {"X": input}, {"new_dim": new_dim})


# Layer of sequence_reverse.
def sequence_reverse(x: Variable, name: str | None = None) -> Variable:
    """Appends op sequence_reverse: the rows of each sequence in reverse order.

    Args:
        x: Rows with LoD.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of x.
    """
    x = check_variable(x, "x", "sequence_reverse")
    return LayerHelper("sequence_reverse", name=name).apply("sequence_reverse", {"X": x})


# Layer of sequence_scatter.
def sequence_scatter(input: Variable, index: Variable, updates: Variable, name: str | None = None) -> Variable:
    """Appends op sequence_scatter: adds sequence i of updates to row i of input, at columns of index.

    Args:
        input: A matrix [rows, columns].
        index: Columns with LoD, int32 or int64.
        updates: What is added, with the LoD of index.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of input.
    """
    inputs = {
        "X": check_variable(input, "input", "sequence_scatter"),
        "Ids": check_variable(index, "index", "sequence_scatter", {"int32", "int64"}),
        "Updates": check_variable(updates, "updates", "sequence_scatter"),
    }
    return LayerHelper("sequence_scatter", name=name).apply("sequence_scatter", inputs)


# Layer of sequence_slice.
def sequence_slice(input: Variable, offset: Variable, length: Variable, name: str | None = None) -> Variable:
    """Appends op sequence_slice: of each sequence `length[i]` rows from row `offset[i]` on.

    Args:
        input: Rows with LoD.
        offset: [sequences, 1], int32 or int64.
        length: [sequences, 1], int32 or int64.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable with LoD.
    """
    inputs = {
        "X": check_variable(input, "input", "sequence_slice"),
        "Offset": check_variable(offset, "offset", "sequence_slice", {"int32", "int64"}),
        "Length": check_variable(length, "length", "sequence_slice", {"int32", "int64"}),
    }
    return LayerHelper("sequence_slice", name=name).apply("sequence_slice", inputs)


# Layer of sequence_softmax.
def sequence_softmax(input: Variable, name: str | None = None) -> Variable:
    """Appends op sequence_softmax: softmax over the rows of each sequence.

    Args:
        input: [rows] or [rows, 1] with LoD, floats.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of input.
    """
    check_variable(input, "input", "sequence_softmax", FLOATS)
    return LayerHelper("sequence_softmax", name=name).apply("sequence_softmax", {"X": input})
