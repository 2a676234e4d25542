"""fold and its gradient: all of the ops but their kernels."""

from __future__ import annotations

import math

from oprack import op
from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, OpDef
from oprack.op.families import conv_out
from oprack.op.sbp import leading
from oprack.types import AttrType

from oprack_nn.ops.unfold import pair, unfold_pads


class Fold(OpDef, type="fold"):
    r"""$$Y_{n,c,y,x} = \sum_{l,i,j} X_{n, (c k_h + i) k_w + j, l}$$ over the patches l, at (p, q), with $$p s_h + i d_h
    - p_t = y$$ and $$q s_w + j d_w - p_l = x$$

    Patches summed back into an image (col2im): the adjoint of unfold.
    """

    X = op.Input("[N, C kh kw, number of patches].")
    Y = op.Output("[N, C, *output_sizes].")
    output_sizes = pair("Height and width of Y.", 1)
    kernel_sizes = pair("Height and width of the patches.", 1)
    strides = pair("Step of the patches along H and W.", 1)
    paddings = Attr(REQUIRED, "[top, left, bottom, right].", type=AttrType.INTS).each(lambda v: v >= 0, "0 or more")
    dilations = pair("Distance of a patch's elements along H and W.", 1)
    sbp = leading(("X",), ("Y",))

    def infer_shape(ctx: InferShapeContext) -> None:
        n, rows, patches = ctx.require_rank("X", 3)
        sizes, ksize, strides, dilations = (
            ctx.attr(name) for name in ("output_sizes", "kernel_sizes", "strides", "dilations")
        )
        for name, count in (
            ("output_sizes", 2),
            ("kernel_sizes", 2),
            ("strides", 2),
            ("paddings", 4),
            ("dilations", 2),
        ):
            given = ctx.attr(name)
            ctx.require(len(given) == count, f"{name} is {list(given)}; expected {count} numbers")
        ctx.require(
            rows < 0 or rows % math.prod(ksize) == 0,
            f"X has {rows} rows; expected a multiple of {math.prod(ksize)}, the elements of a patch {list(ksize)}",
        )
        steps = zip(sizes, ksize, unfold_pads(ctx.attr("paddings")), strides, dilations, strict=True)
        out = [conv_out(*step) for step in steps]
        ctx.require(
            min(out) > 0 and patches in (-1, math.prod(out)),
            f"X has {patches} patches; an image of {list(sizes)} padded by {list(ctx.attr('paddings'))} has {out} "
            f"places for patches of {list(ksize)}",
        )
        ctx.set_dim("Y", (n, -1 if rows < 0 else rows // math.prod(ksize), *sizes))


class FoldGrad(GradOpDef, of=Fold, shape_of="X", linear=True):
    """X@GRAD is unfold of Y@GRAD."""
