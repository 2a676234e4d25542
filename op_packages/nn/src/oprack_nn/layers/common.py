"""fc, embedding, dropout, one_hot."""

from __future__ import annotations

import math

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, check_type, check_variable
from oprack.types import FLOATS, HALF_FLOATS


def fc(input, size, num_flatten_dims=1, param_attr=None, bias_attr=None, act=None, name=None):
    r"""Fully connected: $$Out = act(\sum_i X_i W_i + b)$$.

    input: a Variable or a list of them. size: width of the output. num_flatten_dims: so many dims are kept, the others
    make up a row (-1: all but the last). param_attr: of W, [row size, size], one for all inputs or a list;
    bias_attr: of b, [size], False for none. Returns [kept dims of input, size], LoD of the first input.
    Ops mul, sum, elementwise_add and the activation. Raises InvalidArgumentError.
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


def embedding(
    input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None, dtype="float32", name=None
):
    """Rows of a table by id.

    input: integer ids; of shape [..., 1] they give [..., width] (op lookup_table), else [..., width] is appended to
    their shape (op lookup_table_v2). size: [rows, width] of the table. is_sparse: its gradient is SelectedRows, so that
    an update touches the rows that were looked up. padding_idx: an id, counted from the end when negative, that gives
    zeros and gets no gradient. Returns LoD of input. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "embedding", {"int16", "int32", "int64"} | {"uint8", "int8"})
    if not (isinstance(size, list | tuple) and len(size) == 2):
        raise InvalidArgumentError(f"embedding: size is {size!r}; expected [rows, width] of the table")
    rows = size[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise InvalidArgumentError(f"embedding: padding_idx is {padding_idx}; expected {-rows} to {rows - 1}")
    padding = -1 if padding_idx is None else padding_idx % rows
    helper = LayerHelper("embedding", name=name)
    w = helper.create_parameter(param_attr, size, dtype)
    op_type = "lookup_table" if input.shape[-1:] == (1,) else "lookup_table_v2"
    attrs = {"is_sparse": is_sparse, "is_distributed": is_distributed, "padding_idx": padding}
    return helper.apply(op_type, {"Ids": input, "W": w}, attrs)


def dropout(x, dropout_prob, is_test=False, seed=None, name=None, dropout_implementation="downgrade_in_infer"):
    """In training, elements of x become 0 with probability `dropout_prob`.

    dropout_implementation: "downgrade_in_infer" scales by 1 - dropout_prob when `is_test`, "upscale_in_train" divides
    by it in training. seed: None takes the executor's. `program.clone(for_test=True)` sets is_test. Op dropout.
    """
    check_variable(x, "x", "dropout", FLOATS | HALF_FLOATS)
    kinds = ("downgrade_in_infer", "upscale_in_train")
    if not 0 <= dropout_prob <= 1 or dropout_implementation not in kinds:
        raise InvalidArgumentError(
            f"dropout: dropout_prob is {dropout_prob!r} and dropout_implementation {dropout_implementation!r}; "
            f"expected a probability and one of {', '.join(kinds)}"
        )
    attrs = {
        "dropout_prob": float(dropout_prob),
        "is_test": is_test,
        "fix_seed": seed is not None,
        "seed": seed or 0,
        "dropout_implementation": dropout_implementation,
    }
    return LayerHelper("dropout", name=name).apply("dropout", {"X": x}, attrs)


def one_hot(input, depth, allow_out_of_range=False, name=None):
    """float32 with a 1 at each id: ids [..., 1] or [...] give [..., depth].

    depth: an int or a Variable of one element. allow_out_of_range: other ids give zeros, not an error.
    Op one_hot_v2. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "one_hot", {"int32", "int64"})
    helper = LayerHelper("one_hot", name=name)
    if len(input.shape) > 1 and input.shape[-1] == 1:
        input = helper.apply("squeeze2", {"X": input}, {"axes": [-1]}, stop_gradient=True)
    inputs, attrs = {"X": input}, {"dtype": 5, "allow_out_of_range": allow_out_of_range}
    if isinstance(depth, int):
        attrs["depth"] = depth
    else:
        inputs["depth_tensor"] = check_variable(depth, "depth", "one_hot", {"int32", "int64"})
    return helper.apply("one_hot_v2", inputs, attrs, stop_gradient=True)
