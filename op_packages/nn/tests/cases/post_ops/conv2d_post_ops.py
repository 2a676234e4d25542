"""Cases of conv2d_post_ops."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.testing import OpCase

from ._formulas import ROWS, after, convolution, draw

X, W, BIAS = draw(2, 6, 9, 11), draw(10, 6, 3, 3), draw(10)


def case(
    name: str,
    x: np.ndarray,
    w: np.ndarray,
    bias: np.ndarray | None = None,
    post_ops: list[str] | None = None,
    attrs: dict[str, Any] | None = None,
    **form: Any,
) -> OpCase:
    post_ops, inputs = post_ops or [], {"Input": x, "Filter": w}
    y = convolution(x, w, **form)
    if bias is not None:
        inputs["Bias"] = bias
        y = y + bias.reshape(-1, 1, 1)
    if "residual" in post_ops:
        inputs["Residual"] = draw(*y.shape)
    y = after(y, post_ops, inputs.get("Residual"))
    outputs, attrs = {"Output": y.astype("f4")}, (attrs or {}) | {"post_ops": post_ops}
    # sums of 54 products of some units, which each library adds in an order of its own
    return OpCase("conv2d_post_ops", inputs, attrs, outputs, name=name, atol=1e-5)


PADDED = {"paddings": [1, 1]}, {"pads": (1, 1, 1, 1)}
CASES = [
    *(case(name, X, W, BIAS, row, PADDED[0], **PADDED[1]) for name, row in ROWS.items()),
    case("no_bias", X, W, None, ["relu"]),
    case("residual", X, W, BIAS, ["residual", "relu"], PADDED[0], **PADDED[1]),
    case("residual_last", X, W, None, ["hard_swish 6.0 6.0 3.0", "residual"], PADDED[0], **PADDED[1]),
    case("strides", X, W, BIAS, ["relu"], {"strides": [2, 3]}, strides=(2, 3)),
    case("dilations", X, W, BIAS, ["relu"], {"dilations": [2, 1]}, dilations=(2, 1)),
    case("uneven", X, W, BIAS, [], {"paddings": [0, 2, 1, 3]}, pads=(0, 2, 1, 3)),
    case("same", X, W, BIAS, ["relu"], {"padding_algorithm": "SAME"}, pads=(1, 1, 1, 1)),
    case("pointwise", X, draw(7, 6, 1, 1), draw(7), ["relu"]),
    case("pointwise_strides", X, draw(7, 6, 1, 1), draw(7), ["relu"], {"strides": [2, 2]}, strides=(2, 2)),
    case("row", draw(3, 5, 1, 20), draw(6, 5, 1, 3), draw(6), ["silu"], {"paddings": [0, 1]}, pads=(0, 0, 1, 1)),
    case("groups", X, draw(4, 3, 3, 3), draw(4), ["relu"], {"groups": 2}, groups=2),
    case("depthwise", X, draw(6, 1, 5, 5), draw(6), ["relu6 6.0"], {"groups": 6}, groups=6),
    case("twice_as_many", X, draw(12, 1, 3, 3), draw(12), ["relu"], {"groups": 6}, groups=6),
    case("one_pixel", draw(2, 24, 1, 1), draw(6, 24, 1, 1), draw(6), ["hard_sigmoid 0.2 0.5"]),
    case("no_images", draw(0, 6, 9, 11), W, BIAS, ["relu"]),
]
