"""pad_constant_like (Paddle 1.x) and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of


class PadConstantLike(OpDef, type="pad_constant_like"):
    r"""$$Out_i = Y_i$$ for the places i of Y, else pad_value: Y in the corner of a tensor of the shape of X."""

    X = Input("Gives the shape; its values are not read.")
    Y = Input("Rank of X, and no dim greater.")
    Out = Output("Shape of X, type of Y.")
    pad_value = Attr(0.0, "Value of the new elements.")
    no_need_buffer_vars = ("X",)
    expected_kernel_type = dtype_of("Y")

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = ctx.dim("X"), ctx.dim("Y")
        ctx.require(
            len(x) == len(y) and all(a < 0 or b <= a for a, b in zip(x, y, strict=True)),
            f"X has shape {list(x)} and Y {list(y)}; expected equal ranks, and no dim of Y greater than that of X",
        )
        ctx.set_dim("Out", x)
        ctx.share_lod("X", "Out")


class PadConstantLikeGrad(GradOpDef, of=PadConstantLike, shape_of="Y", grads_of="Y"):
    """Y@GRAD is the part of Out@GRAD that Y was copied to."""
