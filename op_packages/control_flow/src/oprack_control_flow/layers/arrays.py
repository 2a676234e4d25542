"""Tensor arrays, rank tables, and small ops of loops."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, check_type, check_variable
from oprack.types import VarType, dtype_name

_PHASES = {"forward": "FORWARD", "backward": "BACKWARD", "both": "BOTH"}


def _array(value, layer):
    check_variable(value, "array", layer)
    if value.type is not VarType.LOD_TENSOR_ARRAY:
        raise InvalidArgumentError(
            f"{layer}: array is the {value.type.name} {value.name!r}; expected one made by layers.create_array or "
            "layers.array_write"
        )
    return value


def _place(value, layer):
    return check_variable(value, "i", layer, {"int32", "int64"})


def create_array(dtype, name=None):
    """An empty tensor array of the current block."""
    helper = LayerHelper("array", name=name)
    return helper.create_variable(name, dtype=dtype_name(dtype), type=VarType.LOD_TENSOR_ARRAY)


def array_write(x, i, array=None, name=None):
    """Puts x at place i, an integer Variable of one element, of an array (default: a new one), and returns the array.

    The array grows as needed. Op write_to_array. Raises InvalidArgumentError.
    """
    check_variable(x, "x", "array_write")
    array = create_array(x.dtype) if array is None else _array(array, "array_write")
    inputs = {"X": x, "I": _place(i, "array_write")}
    return LayerHelper("array_write", name=name).apply("write_to_array", inputs, outs={"Out": array})


def array_read(array, i, name=None):
    """The tensor at place i, an integer Variable of one element. Op read_from_array. Raises InvalidArgumentError."""
    inputs = {"X": _array(array, "array_read"), "I": _place(i, "array_read")}
    return LayerHelper("array_read", name=name).apply("read_from_array", inputs)


def array_length(array, name=None):
    """int64 [1]: the number of places. Op lod_array_length."""
    inputs = {"X": _array(array, "array_length")}
    return LayerHelper("array_length", name=name).apply("lod_array_length", inputs, stop_gradient=True)


def tensor_array_to_tensor(input, axis=1, name=None, use_stack=False):
    """(the tensors joined along `axis`, or along a new dim there with use_stack; the int32 size of each)."""
    inputs = {"X": _array(input, "tensor_array_to_tensor")}
    helper = LayerHelper("tensor_array_to_tensor", name=name)
    out, sizes = helper.apply("tensor_array_to_tensor", inputs, {"axis": axis, "use_stack": use_stack})
    sizes.stop_gradient = True
    return out, sizes


def lod_rank_table(x, level=0, name=None):
    """The sequences of x at a LoD level, longest first, for the layers below. Op lod_rank_table."""
    check_variable(x, "x", "lod_rank_table")
    helper = LayerHelper("lod_rank_table", name=name)
    return helper.apply("lod_rank_table", {"X": x}, {"level": level}, stop_gradient=True)


def max_sequence_len(rank_table, name=None):
    """int64 [1]: length of the longest sequence. Op max_sequence_len."""
    helper = LayerHelper("max_sequence_len", name=name)
    return helper.apply("max_sequence_len", {"RankTable": _table(rank_table)}, stop_gradient=True)


def lod_tensor_to_array(x, table, name=None):
    """Place t holds row t of each sequence that has one, longest sequence first. Op lod_tensor_to_array."""
    inputs = {"X": check_variable(x, "x", "lod_tensor_to_array"), "RankTable": _table(table)}
    return LayerHelper("lod_tensor_to_array", name=name).apply("lod_tensor_to_array", inputs)


def array_to_lod_tensor(x, table, name=None):
    """Undoes lod_tensor_to_array. Op array_to_lod_tensor."""
    inputs = {"X": _array(x, "array_to_lod_tensor"), "RankTable": _table(table)}
    return LayerHelper("array_to_lod_tensor", name=name).apply("array_to_lod_tensor", inputs)


def shrink_memory(x, i, table, name=None):
    """The first rows of x, those of sequences longer than i. Op shrink_rnn_memory."""
    inputs = {"X": check_variable(x, "x", "shrink_memory"), "I": _place(i, "shrink_memory"), "RankTable": _table(table)}
    return LayerHelper("shrink_memory", name=name).apply("shrink_rnn_memory", inputs)


def reorder_lod_tensor_by_rank(x, rank_table, name=None):
    """The sequences (or rows) of x in the order of a rank table. Op reorder_lod_tensor_by_rank."""
    inputs = {"X": check_variable(x, "x", "reorder_lod_tensor_by_rank"), "RankTable": _table(rank_table)}
    return LayerHelper("reorder_lod_tensor_by_rank", name=name).apply("reorder_lod_tensor_by_rank", inputs)


def _table(value):
    check_variable(value, "rank_table", "rank table")
    if value.type is not VarType.LOD_RANK_TABLE:
        raise InvalidArgumentError(
            f"variable {value.name!r} is a {value.type.name}; expected a rank table made by layers.lod_rank_table"
        )
    return value


def is_empty(x, cond=None, name=None):
    """bool of one element: whether x has no elements. cond: a bool Variable that receives it. Op is_empty."""
    outs = None if cond is None else {"Out": check_variable(cond, "cond", "is_empty", {"bool"})}
    inputs = {"X": check_variable(x, "x", "is_empty")}
    return LayerHelper("is_empty", name=name).apply("is_empty", inputs, outs=outs, stop_gradient=True)


def Print(input, first_n=-1, message=None, summarize=20, print_phase="both"):
    """input, which is printed when the program runs (its gradient, too, in phase "backward" or "both"). Op print.

    first_n: at most so often; -1 always. summarize: so many elements. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "Print")
    if str(print_phase).lower() not in _PHASES:
        raise InvalidArgumentError(f"Print: print_phase is {print_phase!r}; expected one of {', '.join(_PHASES)}")
    attrs = {
        "first_n": first_n,
        "message": message or "",
        "summarize": summarize,
        "print_phase": _PHASES[print_phase.lower()],
    }
    return LayerHelper("print").apply("print", {"In": input}, attrs)


def Assert(cond, data=None, summarize=20, name=None):
    """When the program runs, an error that shows `data` (a list of Variables) unless cond, bool, is true. Op assert."""
    check_variable(cond, "cond", "Assert", {"bool"})
    check_type(data, "data", "Assert", (list, tuple, type(None)))
    helper = LayerHelper("assert", name=name)
    return helper.append_op("assert", {"Cond": cond, "Data": list(data or [])}, {}, {"summarize": summarize})
