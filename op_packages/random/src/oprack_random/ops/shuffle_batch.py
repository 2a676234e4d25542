"""shuffle_batch and its gradient."""

from __future__ import annotations

import math

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of


class ShuffleBatch(OpDef, type="shuffle_batch"):
    r"""$$Out_{ShuffleIdx_i} = X_i$$ the rows of X, which are along its last dim, in a random order."""

    X = Input("Tensor of rank 1 or more.")
    Seed = Input("int64 [1], of the order; a value of 0 or less takes startup_seed.")
    Out = Output("Shape and LoD of X.")
    ShuffleIdx = Output("int64 [number of rows], where each row went.")
    SeedOut = Output("int64 [1], a seed for the next call.")
    startup_seed = Attr(0, "Seed of the first call; 0 takes that of the program.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(len(dims) >= 1, "X has no dims; expected rank 1 or more")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")
        ctx.set_dim("ShuffleIdx", (-1 if min(dims) < 0 else math.prod(dims[:-1]),))
        ctx.set_dim("SeedOut", (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("ShuffleIdx", "int64")
        ctx.set_dtype("SeedOut", "int64")


class ShuffleBatchGrad(GradOpDef, of=ShuffleBatch, reads="ShuffleIdx Out@GRAD", grads_of="X", like={"X": "Out@GRAD"}):
    r"""$$X@GRAD_i = Out@GRAD_{ShuffleIdx_i}$$"""

    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("X@GRAD", ctx.dtype("Out@GRAD"))
