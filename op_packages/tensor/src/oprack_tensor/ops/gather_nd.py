"""gather_nd: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import SbpContext, Signature, factors, letters


class GatherNd(OpDef, type="gather_nd"):
    r"""$$Out_{i} = X_{Index_{i,0}, ..., Index_{i,k-1}}$$ for each row i of Index."""

    X = Input("Tensor of rank k or more.")
    Index = Input("int32 or int64 [..., k].")
    Out = Output("Leading dims of Index, then the dims of X after the first k; LoD of X.")
    expected_kernel_type = dtype_of("X")

    def sbp(ctx: SbpContext) -> list[Signature]:
        # Rows of Index are picked one by one.
        rows = letters(len(ctx.dim("Index")) - 1)
        rest = [None] * (len(ctx.dim("Out")) - len(rows))
        return factors(
            {"X": [None] * len(ctx.dim("X")), "Index": [*rows, None]}, {"Out": [*rows, *rest]}, linear=(("X",),)
        )

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, index = ctx.dim("X"), ctx.dim("Index")
        ctx.require(
            len(index) > 0 and index[-1] <= len(dims),
            f"Index has shape {list(index)} but X {list(dims)}; expected a last dim of at most {len(dims)}",
        )
        if index[-1] >= 0:  # or not even the number of dims is known
            ctx.set_dim("Out", (*index[:-1], *dims[index[-1] :]))
        ctx.share_lod("X", "Out")


class GatherNdGrad(GradOpDef, of=GatherNd, reads="Index", shape_of="X", grads_of="X", linear=True):
    """Adds each part of Out@GRAD to the place of X@GRAD that it came from."""
