"""unfold and its gradient: all of the ops but their kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oprack import op
from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, OpDef
from oprack.op.families import conv_out
from oprack.op.sbp import leading
from oprack.types import AttrType


def pair(doc: str, low: int) -> Attr:
    """A required attribute of numbers from `low` on, for H and W."""
    return Attr(REQUIRED, doc, type=AttrType.INTS).each(lambda v: v >= low, f"{low} or more")


def unfold_pads(paddings: Sequence[int]) -> list[tuple[int, int]]:
    """(before, after) of H and W."""
    return [(paddings[0], paddings[2]), (paddings[1], paddings[3])]


def _output_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    n, c, *spatial = ctx.require_rank("X", 4)
    ksize = ctx.attr("kernel_sizes")
    for name, size in (("kernel_sizes", 2), ("strides", 2), ("paddings", 4), ("dilations", 2)):
        given = ctx.attr(name)
        ctx.require(len(given) == size, f"{name} is {list(given)}; expected {size} numbers")
    out = [
        conv_out(x, *rest)
        for x, *rest in zip(
            spatial,
            ksize,
            unfold_pads(ctx.attr("paddings")),
            ctx.attr("strides"),
            ctx.attr("dilations"),
            strict=True,
        )
    ]
    ctx.require(
        all(o == -1 or o > 0 for o in out),
        f"patches of {list(ksize)} with dilations {list(ctx.attr('dilations'))} do not fit X {list(ctx.dim('X'))} "
        f"padded by {list(ctx.attr('paddings'))}",
    )
    count = -1 if -1 in out else math.prod(out)
    return n, -1 if c < 0 else c * math.prod(ksize), count


class Unfold(OpDef, type="unfold"):
    r"""$$Y_{n, (c k_h + i) k_w + j, l} = X_{n,c,y s_h + i d_h - p_t,x s_w + j d_w - p_l}$$, 0 outside of X (im2col).

    Every patch of X as a column: patch l is that of output place (y, x), in reading order.
    """

    X = op.Input("[N, C, H, W].")
    Y = op.Output("[N, C kh kw, number of patches].")
    kernel_sizes = pair("Height and width of the patches.", 1)
    strides = pair("Step of the patches along H and W.", 1)
    paddings = Attr(REQUIRED, "[top, left, bottom, right].", type=AttrType.INTS).each(lambda v: v >= 0, "0 or more")
    dilations = pair("Distance of a patch's elements along H and W.", 1)
    sbp = leading(("X",), ("Y",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Y", _output_dims(ctx))


class UnfoldGrad(GradOpDef, of=Unfold, shape_of="X", dims={"Y@GRAD": _output_dims}, linear=True):
    """X@GRAD sums Y@GRAD over the patches that hold each element (col2im)."""
