"""The layer fc."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_type


def fc(
    input: Sequence[Variable] | Variable,
    size: int,
    num_flatten_dims: int = 1,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    r"""Appends a fully connected layer, $$Out = act(\sum_i X_i W_i + b)$$.

    Ops mul, sum, elementwise_add and the activation.

    Args:
        input: A Variable, or a list of them.
        size: Width of the result.
        num_flatten_dims: How many leading dims are kept; the others make up a row. -1: all but the last.
        param_attr: Attributes of W [row size, size], one for all inputs or a list.
        bias_attr: Attributes of b [size]; False: none.
        act: The op that the result goes through, such as "relu"; None: none.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [kept dims, size], with the LoD of the first input.

    Raises:
        InvalidArgumentError: num_flatten_dims is out of range, or the sizes of rows are unknown.
    """
    helper = LayerHelper("fc", input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    check_type(size, "size", "fc", int)
    dtype = helper.input_dtype()
    products = []
    for x, attr in helper.inputs_and_attrs():
        kept = len(x.shape) - 1 if num_flatten_dims == -1 else num_flatten_dims
        if not 1 <= kept < len(x.shape):
            raise InvalidArgumentError(
                f"fc: num_flatten_dims is {num_flatten_dims}, input {x.name!r} has shape {list(x.shape)}; expected -1 "
                f"or 1 to {len(x.shape) - 1}"
            )
        row = x.shape[kept:]
        if any(d < 0 for d in row):
            raise InvalidArgumentError(
                f"fc: input {x.name!r} has shape {list(x.shape)}; dims from {kept} on make up the rows of the weight, "
                "so expected them to be known; give data() their sizes, or raise num_flatten_dims"
            )
        w = helper.create_parameter(attr, [math.prod(row), size], dtype)
        products.append(helper.apply("mul", {"X": x, "Y": w}, {"x_num_col_dims": kept, "y_num_col_dims": 1}))
    out = products[0] if len(products) == 1 else helper.apply("sum", {"X": products})
    return helper.append_activation(helper.append_bias_op(out, dim_start=kept))
