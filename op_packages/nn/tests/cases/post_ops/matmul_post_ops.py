"""Cases of matmul_post_ops."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._formulas import ROWS, after, draw

X, W, BIAS = draw(2, 5, 8), draw(8, 6), draw(6)


def case(name: str, x: np.ndarray, post_ops: list[str], with_bias: bool = True, swapped: bool = False) -> OpCase:
    rows = x.swapaxes(-1, -2) if swapped else x
    inputs = {"X": x, "Y": W} | ({"Bias": BIAS} if with_bias else {})
    y = rows.astype("f8") @ W.astype("f8") + (BIAS if with_bias else 0)
    if "residual" in post_ops:
        inputs["Residual"] = draw(*y.shape)
    out = after(y, post_ops, inputs.get("Residual")).astype("f4")
    return OpCase("matmul_post_ops", inputs, {"post_ops": post_ops, "trans_x": swapped}, {"Out": out}, name=name)


CASES = [
    *(case(name, X, row) for name, row in ROWS.items()),
    case("no_bias", X, ["relu"], with_bias=False),
    case("residual", X, ["relu", "residual"]),
    case("swapped", draw(2, 8, 5), ["relu"], swapped=True),
    case("no_rows", draw(0, 8), ["relu"]),
]
