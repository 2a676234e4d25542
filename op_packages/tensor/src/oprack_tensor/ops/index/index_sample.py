"""index_sample: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import leading


class IndexSample(OpDef, type="index_sample"):
    r"""$$Out_{i,j} = X_{i, Index_{i,j}}$$"""

    X = Input("[n, m]")
    Index = Input("int32 or int64 [n, k].")
    Out = Output("[n, k]; LoD of Index.")
    expected_kernel_type = dtype_of("X")
    sbp = leading(("X", "Index"), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        (n, _), index = ctx.require_rank("X", 2), ctx.require_rank("Index", 2)
        ctx.require(n in (-1, index[0]) or index[0] == -1, f"X has {n} rows and Index {index[0]}; expected as many")
        ctx.set_dim("Out", index)
        ctx.share_lod("Index", "Out")


class IndexSampleGrad(GradOpDef, of=IndexSample, reads="Index", shape_of="X", grads_of="X", linear=True):
    """Adds each element of Out@GRAD to the place of X@GRAD that it came from."""
