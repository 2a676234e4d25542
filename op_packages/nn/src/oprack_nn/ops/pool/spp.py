"""spp and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading
from oprack.types import AttrType


def levels(spatial: Sequence[int], pyramid_height: int, pooling_type: str) -> list[dict[str, Any]]:
    """Attributes of pool2d for each level: level p has 2^p bins along each dim."""
    found = []
    for p in range(pyramid_height):
        bins = 2**p
        ksize = [-(-s // bins) for s in spatial]
        pads = [(k * bins - s + 1) // 2 for k, s in zip(ksize, spatial, strict=True)]
        found.append(
            {
                "pooling_type": pooling_type,
                "ksize": ksize,
                "strides": ksize,
                "paddings": pads,
                "exclusive": True,
                "adaptive": False,
                "global_pooling": False,
            }
        )
    return found


def _output_dims(ctx: InferShapeContext) -> tuple[int, int]:
    n, c, h, w = ctx.require_rank("X", 4)
    ctx.require(h != 0 and w != 0, f"X has shape {[n, c, h, w]}; expected images with pixels")
    bins = (4 ** ctx.attr("pyramid_height") - 1) // 3
    return n, -1 if c < 0 else c * bins


class Spp(OpDef, type="spp"):
    r"""$$Out = (pool_1(X), pool_2(X), pool_4(X), \dots)$$ where pool_b(X) are the C b^2 numbers of b x b windows that
    cover the image

    Spatial pyramid pooling (He et al., 2014): a row of fixed length for an image of any size.
    """

    X = Input("[N, C, H, W].")
    Out = Output("[N, C (4^pyramid_height - 1) / 3].")
    pyramid_height = Attr(REQUIRED, "Levels; level p has 2^p x 2^p windows.", type=AttrType.INT).between(1, 12)
    pooling_type = Attr(REQUIRED, "max or avg.", type=AttrType.STRING).in_set(("max", "avg"))
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", _output_dims(ctx))


class SppGrad(GradOpDef, of=Spp, reads="X Out", dims={"Out@GRAD": _output_dims}):
    """X@GRAD sums the gradients of the levels, each as that of pool2d."""
