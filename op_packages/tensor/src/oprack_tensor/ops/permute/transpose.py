"""transpose: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext

from oprack_tensor.ops.permute._transpose import TransposeOp, permutation


class Transpose(TransposeOp, type="transpose"):
    r"""$$Out_{i_{axis_0}, i_{axis_1}, \ldots} = X_{i_0, i_1, \ldots}$$: dim k of Out is dim axis[k] of X."""


class TransposeGrad(GradOpDef, of=Transpose, reads="Out@GRAD", shape_of="X? Out?", linear=True):
    """X@GRAD is Out@GRAD with the dims permuted back."""

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("Out@GRAD")
        axes = permutation(ctx, len(dims))
        ctx.set_dim("X@GRAD", [dims[axes.index(i)] for i in range(len(dims))])
