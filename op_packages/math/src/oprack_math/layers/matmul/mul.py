"""The layer of mul."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def mul(
    x: Variable, y: Variable, x_num_col_dims: int = 1, y_num_col_dims: int = 1, name: str | None = None
) -> Variable:
    """The matrices that x and y are when their first *_num_col_dims dims are rows and the others columns, multiplied.

    The result has the row dims of x and the column dims of y. Op mul. Raises InvalidArgumentError.
    """
    inputs = {"X": check_variable(x, "x", "mul"), "Y": check_variable(y, "y", "mul")}
    attrs = {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims}
    return LayerHelper("mul", name=name).apply("mul", inputs, attrs)
