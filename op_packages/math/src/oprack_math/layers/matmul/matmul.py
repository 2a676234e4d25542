"""The layer of matmul."""

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
