"""Sequences as rows with LoD: pooling, padding, expanding, cutting."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, check_dtype, check_variable
from oprack.types import ALL_DTYPES, FLOATS, dtype_enum

_POOLS = ("average", "sum", "sqrt", "max", "last", "first")


def sequence_conv(
    input,
    num_filters,
    filter_size=3,
    filter_stride=1,
    padding=True,
    padding_start=None,
    bias_attr=None,
    param_attr=None,
    act=None,
    name=None,
):
    """Each row becomes the `filter_size` rows around it, in its sequence, times a [filter_size D, num_filters] weight.

    input: [rows, D] with LoD. padding_start: place of the first of these rows, default -(filter_size // 2); rows beyond
    a sequence count as zeros. filter_stride is 1 and padding True, since the op has no more. Returns [rows,
    num_filters]. Ops sequence_conv, elementwise_add and the activation. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "sequence_conv", FLOATS)
    if filter_stride != 1 or not padding:
        raise InvalidArgumentError(
            f"sequence_conv: filter_stride is {filter_stride} and padding {padding}; expected 1 and True"
        )
    helper = LayerHelper("sequence_conv", bias_attr=bias_attr, act=act, name=name)
    w = helper.create_parameter(param_attr, [filter_size * input.shape[1], num_filters], input.dtype)
    start = -(filter_size // 2) if padding_start is None else padding_start
    attrs = {"contextLength": filter_size, "contextStart": start, "contextStride": 1}
    return helper.append_activation(
        helper.append_bias_op(helper.apply("sequence_conv", {"X": input, "Filter": w}, attrs))
    )


def sequence_pool(input, pool_type, is_test=False, pad_value=0.0, name=None):
    """One row for each sequence: its rows' "average", "sum", "sqrt" (sum / sqrt(length)), "max", "last" or "first".

    An empty sequence gives pad_value. The innermost LoD level is gone. is_test: "max" keeps no places for the gradient.
    Op sequence_pool. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "sequence_pool")
    if str(pool_type).lower() not in _POOLS:
        raise InvalidArgumentError(f"sequence_pool: pool_type is {pool_type!r}; expected one of {', '.join(_POOLS)}")
    attrs = {"pooltype": pool_type.upper(), "is_test": is_test, "pad_value": float(pad_value)}
    return LayerHelper("sequence_pool", name=name).apply("sequence_pool", {"X": input}, attrs)


def sequence_first_step(input, name=None):
    """The first row of each sequence; see sequence_pool."""
    return sequence_pool(input, "first", name=name)


def sequence_last_step(input, name=None):
    """The last row of each sequence; see sequence_pool."""
    return sequence_pool(input, "last", name=name)


def sequence_softmax(input, name=None):
    """Softmax over the rows of each sequence; input: [rows] or [rows, 1] with LoD. Op sequence_softmax."""
    check_variable(input, "input", "sequence_softmax", FLOATS)
    return LayerHelper("sequence_softmax", name=name).apply("sequence_softmax", {"X": input})


def sequence_expand(x, y, ref_level=-1, name=None):
    """Sequence (or row) i of x as often as sequence i of y has parts at LoD level ref_level. Op sequence_expand."""
    inputs = {"X": check_variable(x, "x", "sequence_expand"), "Y": check_variable(y, "y", "sequence_expand")}
    return LayerHelper("sequence_expand", name=name).apply("sequence_expand", inputs, {"ref_level": ref_level})


def sequence_expand_as(x, y, name=None):
    """Row i of x as often as sequence i of y has rows. Op sequence_expand_as."""
    inputs = {"X": check_variable(x, "x", "sequence_expand_as"), "Y": check_variable(y, "y", "sequence_expand_as")}
    return LayerHelper("sequence_expand_as", name=name).apply("sequence_expand_as", inputs)


def sequence_pad(x, pad_value, maxlen=None, name=None):
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


def sequence_unpad(x, length, name=None):
    """Undoes sequence_pad: rows with LoD, of [sequences, maxlen, ...] and int64 lengths. Op sequence_unpad."""
    inputs = {
        "X": check_variable(x, "x", "sequence_unpad"),
        "Length": check_variable(length, "length", "sequence_unpad"),
    }
    return LayerHelper("sequence_unpad", name=name).apply("sequence_unpad", inputs)


def sequence_reverse(x, name=None):
    """The rows of each sequence in reverse order. Op sequence_reverse."""
    x = check_variable(x, "x", "sequence_reverse")
    return LayerHelper("sequence_reverse", name=name).apply("sequence_reverse", {"X": x})


def sequence_concat(input, name=None):
    """Sequence i of the result is sequence i of each variable of the list, one after another. Op sequence_concat."""
    values = [check_variable(v, "input", "sequence_concat") for v in input]
    return LayerHelper("sequence_concat", name=name).apply("sequence_concat", {"X": values})


def sequence_mask(x, maxlen=None, dtype="int64", name=None):
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


def sequence_slice(input, offset, length, name=None):
    """Of each sequence `length[i]` rows from row `offset[i]` on; both are [sequences, 1]. Op sequence_slice."""
    inputs = {
        "X": check_variable(input, "input", "sequence_slice"),
        "Offset": check_variable(offset, "offset", "sequence_slice", {"int32", "int64"}),
        "Length": check_variable(length, "length", "sequence_slice", {"int32", "int64"}),
    }
    return LayerHelper("sequence_slice", name=name).apply("sequence_slice", inputs)


def sequence_reshape(input, new_dim, name=None):
    """The elements of each sequence as rows of `new_dim`. Op sequence_reshape."""
    input = check_variable(input, "input", "sequence_reshape")
    return LayerHelper("sequence_reshape", name=name).apply("sequence_reshape", {"X": input}, {"new_dim": new_dim})


def sequence_enumerate(input, win_size, pad_value=0, name=None):
    """[rows, win_size]: each id and those after it in its sequence, pad_value beyond its end. Op sequence_enumerate."""
    input = check_variable(input, "input", "sequence_enumerate", {"int32", "int64"})
    attrs = {"win_size": win_size, "pad_value": pad_value}
    helper = LayerHelper("sequence_enumerate", name=name)
    return helper.apply("sequence_enumerate", {"X": input}, attrs, stop_gradient=True)


def sequence_scatter(input, index, updates, name=None):
    """Row i of input, with sequence i of updates added at the columns of sequence i of index. Op sequence_scatter."""
    inputs = {
        "X": check_variable(input, "input", "sequence_scatter"),
        "Ids": check_variable(index, "index", "sequence_scatter", {"int32", "int64"}),
        "Updates": check_variable(updates, "updates", "sequence_scatter"),
    }
    return LayerHelper("sequence_scatter", name=name).apply("sequence_scatter", inputs)


def lod_reset(x, y=None, target_lod=None, name=None):
    """x with another LoD: that of y (or the int32 offsets that y holds), or the offsets target_lod. Op lod_reset."""
    check_variable(x, "x", "lod_reset")
    if (y is None) == (target_lod is None):
        raise InvalidArgumentError("lod_reset: expected one of y and target_lod, a list of offsets such as [0, 2, 5]")
    attrs = None if target_lod is None else {"target_lod": list(target_lod)}
    return LayerHelper("lod_reset", name=name).apply("lod_reset", {"X": x, "Y": y}, attrs)


def lod_append(x, level, name=None):
    """x with one more LoD level below: the LoD of Variable `level`, or a list of offsets. Op lod_reset."""
    check_variable(x, "x", "lod_append")
    helper = LayerHelper("lod_append", name=name)
    if hasattr(level, "desc"):
        return helper.apply("lod_reset", {"X": x, "Y": level}, {"append": True})
    return helper.apply("lod_reset", {"X": x}, {"target_lod": list(level), "append": True})


def im2sequence(input, filter_size=1, stride=1, padding=0, input_image_size=None, out_stride=1, name=None):
    """Windows of images [N, C, H, W] as rows [windows, C h w], one sequence for each image.

    filter_size, stride: an int or [h, w]; padding: an int, [h, w] or [top, left, bottom, right]. input_image_size:
    real sizes [N, 2], with out_stride. Op im2sequence. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "im2sequence", FLOATS)

    def pair(value):
        return [value] * 2 if isinstance(value, int) else list(value)

    pads = pair(padding)
    attrs = {"kernels": pair(filter_size), "strides": pair(stride), "paddings": pads * 2 if len(pads) == 2 else pads}
    if input_image_size is not None:
        attrs["out_stride"] = pair(out_stride)
    return LayerHelper("im2sequence", name=name).apply("im2sequence", {"X": input, "Y": input_image_size}, attrs)


def add_position_encoding(input, alpha, beta, name=None):
    """alpha * input + beta * sines and cosines of the place in the sequence; [B, T, D], or [rows, D] with LoD.

    Op add_position_encoding.
    """
    input = check_variable(input, "input", "add_position_encoding", FLOATS)
    attrs = {"alpha": float(alpha), "beta": float(beta)}
    return LayerHelper("add_position_encoding", name=name).apply("add_position_encoding", {"X": input}, attrs)
