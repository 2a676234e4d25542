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
    """Windows of images [N, C, H, W] as rows [windows, C h w], one sequence for each image.

    filter_size, stride: an int or [h, w]; padding: an int, [h, w] or [top, left, bottom, right]. input_image_size:
    real sizes [N, 2], with out_stride. Op im2sequence. Raises InvalidArgumentError.
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
    """Row t of the result is the sum over i of input row t + i, weighted element by element with row i of the filter.

    input: [rows, D] with LoD, or [B, T, D]; the filter is [future_context_size + 1, D]. Op row_conv.
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
