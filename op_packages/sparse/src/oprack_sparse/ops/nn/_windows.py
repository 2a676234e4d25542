"""Shape rules of windows that move over points."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import InferShapeContext


def window_dims(
    ctx: InferShapeContext, dims: Sequence[int], sizes: Sequence[int], paddings: Sequence[int], strides: Sequence[int]
) -> list[int]:
    """Sizes of the space over which windows have their places: $$(d + 2p - dilation (k - 1) - 1) / stride + 1$$."""
    dilations = ctx.attr("dilations")
    given = {"sizes": sizes, "paddings": paddings, "strides": strides, "dilations": dilations}
    for name, values in given.items():
        right = len(values) == len(dims) and min(values, default=1) >= (0 if name == "paddings" else 1)
        ctx.require(right, f"{name} is {list(values)} for x with the space {list(dims)}; expected one for each dim")
    found = [
        -1 if d < 0 else (d + 2 * p - e * (k - 1) - 1) // s + 1
        for d, k, p, s, e in zip(dims, sizes, paddings, strides, dilations, strict=True)
    ]
    ctx.require_sizes("the space of the result", found)
    return found
