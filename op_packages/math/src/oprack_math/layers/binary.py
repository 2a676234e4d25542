"""Element-wise functions of two variables, comparisons, logic, and products of matrices."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_variable

_BOTH = """x and y have one dtype; y's shape is that of x or a part of it, whose dims start at dim `axis` of x (-1: the
    last dims meet), with 1 where it is repeated. The result has the shape both broadcast to, and x's LoD."""


def _elementwise(op_type, words):
    def layer(x, y, axis=-1, act=None, name=None):
        helper = LayerHelper(op_type, name=name, act=act)
        inputs = {"X": check_variable(x, "x", op_type), "Y": check_variable(y, "y", op_type)}
        return helper.append_activation(helper.apply(op_type, inputs, {"axis": axis}))

    layer.__name__ = layer.__qualname__ = op_type
    layer.__doc__ = (
        f"{words}\n\n    {_BOTH}\n    act: an activation of the result. Op {op_type}. Raises InvalidArgumentError."
    )
    return layer


elementwise_add = _elementwise("elementwise_add", "x + y.")
elementwise_sub = _elementwise("elementwise_sub", "x - y.")
elementwise_mul = _elementwise("elementwise_mul", "x * y.")
elementwise_div = _elementwise("elementwise_div", "x / y.")
elementwise_max = _elementwise("elementwise_max", "The larger of x and y.")
elementwise_min = _elementwise("elementwise_min", "The smaller of x and y.")
elementwise_pow = _elementwise("elementwise_pow", "x to the power of y.")
elementwise_mod = _elementwise("elementwise_mod", "Remainder of x / y, with the sign of y.")
elementwise_floordiv = _elementwise("elementwise_floordiv", "x / y, rounded down.")


def _compare(op_type, words):
    def layer(x, y, cond=None, name=None):
        helper = LayerHelper(op_type, name=name)
        inputs = {"X": check_variable(x, "x", op_type), "Y": check_variable(y, "y", op_type)}
        outs = None if cond is None else {"Out": check_variable(cond, "cond", op_type, {"bool"})}
        return helper.apply(op_type, inputs, outs=outs, stop_gradient=True)

    layer.__name__ = layer.__qualname__ = op_type
    layer.__doc__ = (
        f"Element-wise x {words} y, bool, of the shape both broadcast to.\n\n    cond: a bool Variable that "
        f"receives the result, such as the condition of a While. Op {op_type}. Raises InvalidArgumentError."
    )
    return layer


less_than = _compare("less_than", "<")
less_equal = _compare("less_equal", "<=")
greater_than = _compare("greater_than", ">")
greater_equal = _compare("greater_equal", ">=")
equal = _compare("equal", "==")
not_equal = _compare("not_equal", "!=")


def _logical(op_type, words):
    def layer(x, y, out=None, name=None):
        helper = LayerHelper(op_type, name=name)
        inputs = {"X": check_variable(x, "x", op_type), "Y": check_variable(y, "y", op_type)}
        outs = None if out is None else {"Out": check_variable(out, "out", op_type, {"bool"})}
        return helper.apply(op_type, inputs, outs=outs, stop_gradient=True)

    layer.__name__ = layer.__qualname__ = op_type
    layer.__doc__ = (
        f"Element-wise x {words} y, bool, of the shape both broadcast to.\n\n    out: a bool Variable that "
        f"receives the result. Op {op_type}. Raises InvalidArgumentError."
    )
    return layer


logical_and = _logical("logical_and", "and")
logical_or = _logical("logical_or", "or")
logical_xor = _logical("logical_xor", "xor")


def logical_not(x, out=None, name=None):
    """Element-wise not x, bool, of x's shape. out: a bool Variable that receives the result. Op logical_not."""
    outs = None if out is None else {"Out": check_variable(out, "out", "logical_not", {"bool"})}
    x = check_variable(x, "x", "logical_not")
    return LayerHelper("logical_not", name=name).apply("logical_not", {"X": x}, outs=outs, stop_gradient=True)


def matmul(x, y, transpose_x=False, transpose_y=False, alpha=1.0, name=None):
    """alpha * x @ y over the last two dims, those before are batches; transpose_x and _y swap these two dims first.

    A vector counts as [1, n] on the left and [n, 1] on the right. Op matmul. Raises InvalidArgumentError.
    """
    inputs = {"X": check_variable(x, "x", "matmul"), "Y": check_variable(y, "y", "matmul")}
    attrs = {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": float(alpha)}
    return LayerHelper("matmul", name=name).apply("matmul", inputs, attrs)


def mul(x, y, x_num_col_dims=1, y_num_col_dims=1, name=None):
    """The matrices that x and y are when their first *_num_col_dims dims are rows and the others columns, multiplied.

    The result has the row dims of x and the column dims of y. Op mul. Raises InvalidArgumentError.
    """
    inputs = {"X": check_variable(x, "x", "mul"), "Y": check_variable(y, "y", "mul")}
    attrs = {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims}
    return LayerHelper("mul", name=name).apply("mul", inputs, attrs)
