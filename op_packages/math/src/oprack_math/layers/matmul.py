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
    """Appends op matmul: alpha * x @ y over the last two dims; those before are batches.

    Args:
        x: A Variable [..., n, k]; a vector counts as [1, k].
        y: A Variable [..., k, m]; a vector counts as [k, 1].
        transpose_x: Whether the last two dims of x are swapped first.
        transpose_y: Whether the last two dims of y are swapped first.
        alpha: A factor of the product.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [..., n, m].

    Raises:
        InvalidArgumentError: The sizes do not fit.
    """
    inputs = {"X": check_variable(x, "x", "matmul"), "Y": check_variable(y, "y", "matmul")}
    attrs = {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": float(alpha)}
    return LayerHelper("matmul", name=name).apply("matmul", inputs, attrs)


def mul(
    x: Variable, y: Variable, x_num_col_dims: int = 1, y_num_col_dims: int = 1, name: str | None = None
) -> Variable:
    """Appends op mul: the product of x and y, each flattened to a matrix.

    Args:
        x: A Variable.
        y: A Variable.
        x_num_col_dims: How many leading dims of x make up its rows.
        y_num_col_dims: How many leading dims of y make up its rows.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable with the row dims of x and the column dims of y.

    Raises:
        InvalidArgumentError: The sizes do not fit.
    """
    inputs = {"X": check_variable(x, "x", "mul"), "Y": check_variable(y, "y", "mul")}
    attrs = {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims}
    return LayerHelper("mul", name=name).apply("mul", inputs, attrs)
