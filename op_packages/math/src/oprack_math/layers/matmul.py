"""Layers of products of matrices."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def matmul(
    x: Variable,
    y: Variable | int,
    transpose_x: bool = False,
    transpose_y: bool = False,
    alpha: float = 1.0,
    name: str | None = None,
) -> Variable:
    """alpha * x @ y over the last two dims, those before are batches; transpose_x and _y swap these two dims first.

    A vector counts as [1, n] on the left and [n, 1] on the right. Op matmul. Raises InvalidArgumentError.
    """
    inputs = {"X": check_variable(x, "x", "matmul"), "Y": check_variable(y, "y", "matmul")}
    attrs = {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": float(alpha)}
    return LayerHelper("matmul", name=name).apply("matmul", inputs, attrs)


def mul(
    x: Variable, y: Variable, x_num_col_dims: int = 1, y_num_col_dims: int = 1, name: str | None = None
) -> Variable:
    """The matrices that x and y are when their first *_num_col_dims dims are rows and the others columns, multiplied.

    The result has the row dims of x and the column dims of y. Op mul. Raises InvalidArgumentError.
    """
    inputs = {"X": check_variable(x, "x", "mul"), "Y": check_variable(y, "y", "mul")}
    attrs = {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims}
    return LayerHelper("mul", name=name).apply("mul", inputs, attrs)
