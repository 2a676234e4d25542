"""Windows over the rows of a sequence, and rows out of the windows of an image."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable
from oprack.types import FLOATS


# Layer of im2sequence.
def im2sequence(
    input: Variable,
    filter_size: int | Sequence[int] = 1,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    input_image_size: Variable | None = None,
    out_stride: int | Sequence[int] = 1,
    name: str | None = None,
) -> Variable:
    """Appends op im2sequence: windows of images as rows, one sequence for each image.

    Args:
        input: Images [N, C, H, W], floats.
        filter_size: Size of a window, an int or [h, w].
        stride: Step between windows, an int or [h, w].
        padding: Zeros around images: an int, [h, w] or [top, left, bottom, right].
        input_image_size: Real sizes of the images [N, 2]; None: all are as large as input.
        out_stride: By how much the images were made smaller before, an int or [h, w]; with input_image_size.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [windows, C h w] with LoD.

    Raises:
        InvalidArgumentError: input is no such Variable.
    """
    check_variable(input, "input", "im2sequence", FLOATS)

    def pair(value: int | Sequence[int]) -> list[int]:
        return [value] * 2 if isinstance(value, int) else list(value)

    pads = pair(padding)
    attrs = {"kernels": pair(filter_size), "strides": pair(stride), "paddings": pads * 2 if len(pads) == 2 else pads}
    if input_image_size is not None:
        attrs["out_stride"] = pair(out_stride)
    return LayerHelper("im2sequence", name=name).apply("im2sequence", {"X": input, "Y": input_image_size}, attrs)


# Layer of row_conv.
def row_conv(
    input: Variable,
    future_context_size: int,
    param_attr: ParamAttrLike = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Appends op row_conv: each row becomes the weighted sum of itself and rows that follow it.

    Args:
        input: Rows [rows, D] with LoD, or [B, T, D], floats.
        future_context_size: How many following rows count.
        param_attr: Attributes of the weights [future_context_size + 1, D].
        act: The op that the result goes through, such as "relu"; None: none.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of input.
    """
    check_variable(input, "input", "row_conv", FLOATS)
    helper = LayerHelper("row_conv", act=act, name=name)
    w = helper.create_parameter(param_attr, [future_context_size + 1, input.shape[-1]], input.dtype)
    return helper.append_activation(helper.apply("row_conv", {"X": input, "Filter": w}))


# Layer of sequence_conv.
def sequence_conv(
    input: Variable,
    num_filters: int,
    filter_size: int = 3,
    filter_stride: int = 1,
    padding: bool = True,
    padding_start: int | None = None,
    bias_attr: ParamAttrLike = None,
    param_attr: ParamAttrLike = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Convolves the rows of each sequence: ops sequence_conv, elementwise_add and the activation.

    Each row becomes the filter_size rows around it, in its sequence, times a weight; rows beyond a sequence count as
    zeros.

    Args:
        input: Rows [rows, D] with LoD, floats.
        num_filters: Size of the resulting rows.
        filter_size: How many rows a filter sees.
        filter_stride: 1, since the op has no other.
        padding: True, since the op has no other.
        padding_start: Place of the first of these rows, relative to the row; None: -(filter_size // 2).
        bias_attr: Attributes of the bias [num_filters]; False: none.
        param_attr: Attributes of the weight [filter_size * D, num_filters].
        act: The op that the result goes through, such as "relu"; None: none.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [rows, num_filters] with the LoD of input.

    Raises:
        InvalidArgumentError: filter_stride is not 1, or padding is not True.
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
