"""Layer of sequence_conv."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable
from oprack.types import FLOATS


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
