"""transpose2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Output

from oprack_tensor.ops.permute._transpose import TransposeOp


class Transpose2(TransposeOp, type="transpose2"):
    r"""$$Out_{i_{axis_0}, i_{axis_1}, \ldots} = X_{i_0, i_1, \ldots}$$: dim k of Out is dim axis[k] of X."""

    XShape = Output("Empty, [0, dims of X]: carries X's shape to the gradient.", intermediate=True, extra=True)

    def infer_shape(ctx: InferShapeContext) -> None:
        TransposeOp.infer_shape(ctx)
        ctx.set_dim("XShape", (0, *ctx.dim("X")))


class Transpose2Grad(GradOpDef, of=Transpose2, reads="Out@GRAD", shape_of="XShape", linear=True, grads_of="X"):
    """X@GRAD is Out@GRAD with the dims permuted back."""

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("X@GRAD", ctx.dim("XShape")[1:])
