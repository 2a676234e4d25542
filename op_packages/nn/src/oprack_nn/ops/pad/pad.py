"""pad and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import REQUIRED, Attr, ForwardOp, GradOp, GradOpDef, InferShapeContext, OpDef
from oprack.types import AttrType


class Pad(OpDef, type="pad"):
    r"""$$Out_{i_0, i_1, \ldots} = X_{i_0 - paddings_0, i_1 - paddings_2, \ldots}$$ inside of X, else pad_value.

    paddings[2i] elements come before and paddings[2i + 1] after dim i.
    """

    X = op.Input("Any shape.")
    Out = op.Output("Shape of X plus the paddings.")
    paddings = Attr(REQUIRED, "Numbers before and after each dim: [b0, a0, b1, a1, ...].", type=AttrType.INTS).each(
        lambda p: p >= 0, "0 or more"
    )
    pad_value = Attr(0.0, "Value of the new elements.", support_tensor=True)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, p = ctx.dim("X"), ctx.attr("paddings")
        ctx.require(
            len(p) == 2 * len(dims),
            f"paddings has {len(p)} numbers; expected {2 * len(dims)}, two per dim of X {list(dims)}",
        )
        out = tuple(x if x < 0 else x + p[2 * i] + p[2 * i + 1] for i, x in enumerate(dims))
        ctx.set_dim("Out", out)
        if out[:1] == dims[:1]:
            ctx.share_lod("X", "Out")


class PadGrad(GradOpDef, of=Pad):
    """X@GRAD is the part of Out@GRAD that X was copied to."""

    def infer_shape(ctx: InferShapeContext) -> None:
        p = ctx.attr("paddings")
        dims = ctx.dim("Out@GRAD")
        ctx.set_dim("X@GRAD", tuple(x if x < 0 else x - p[2 * i] - p[2 * i + 1] for i, x in enumerate(dims)))

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "pad",
            X=fwd.output_grad("X@GRAD"),
            Out=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs | {"pad_value": 0.0},
        )
