"""Cases of conv2d_transpose_post_ops."""

from __future__ import annotations

from oprack.testing import OpCase

from ._formulas import ROWS, after, draw, transposed

X, BIAS = draw(2, 3, 4, 5), draw(4)


def case(name: str, size: int, strides: list[int], cut: int, post_ops: list[str], with_bias: bool = True) -> OpCase:
    w = draw(3, 4, size, size)
    y = transposed(X, w, strides, cut) + (BIAS.reshape(-1, 1, 1) if with_bias else 0)
    inputs = {"Input": X, "Filter": w} | ({"Bias": BIAS} if with_bias else {})
    attrs = {"strides": strides, "paddings": [cut, cut], "post_ops": post_ops}
    out = after(y, post_ops).astype("f4")
    return OpCase("conv2d_transpose_post_ops", inputs, attrs, {"Output": out}, name=name)


CASES = [
    *(case(name, 2, [2, 2], 0, row) for name, row in ROWS.items()),
    case("overlapping", 3, [2, 2], 1, ["relu"]),
    case("no_bias", 3, [1, 1], 0, ["relu"], with_bias=False),
]
