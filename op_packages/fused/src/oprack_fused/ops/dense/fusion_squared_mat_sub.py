"""fusion_squared_mat_sub: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output

from oprack_fused.ops._shapes import dense_dims


class FusionSquaredMatSub(OpDef, type="fusion_squared_mat_sub"):
    r"""$$Out = scalar \cdot ((X Y)^2 - X^2 Y^2)$$ with squares of elements."""

    X = Input("[M, K].")
    Y = Input("[K, N].")
    SquaredX = Output("$X^2$.", intermediate=True)
    SquaredY = Output("$Y^2$.", intermediate=True)
    SquaredXY = Output("$(X Y)^2$.", intermediate=True)
    Out = Output("[M, N], LoD of X.")
    scalar = Attr(1.0, "The factor.")

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = tuple(ctx.require_rank("X", 2)), tuple(ctx.require_rank("Y", 2))
        dims = dense_dims(ctx, x, y, None)
        ctx.set_dim("SquaredX", x)
        ctx.set_dim("SquaredY", y)
        ctx.set_dim("SquaredXY", dims)
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")
