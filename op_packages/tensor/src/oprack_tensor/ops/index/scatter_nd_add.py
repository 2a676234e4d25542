"""scatter_nd_add: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of


class ScatterNdAdd(OpDef, type="scatter_nd_add"):
    r"""$$Out = X$$, then $$Out_{Index_i} \mathrel{+}= Updates_i$$ for each row i of Index."""

    X = Input("Tensor of rank k or more.")
    Index = Input("int32 or int64 [..., k].")
    Updates = Input("Leading dims of Index, then the dims of X after the first k.")
    Out = Output("Shape and LoD of X.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, index = ctx.dim("X"), ctx.dim("Index")
        ctx.require(
            len(index) > 0 and index[-1] <= len(dims),
            f"Index has shape {list(index)} but X {list(dims)}; expected a last dim of at most {len(dims)}",
        )
        if index[-1] >= 0:
            expected = (*index[:-1], *dims[index[-1] :])
            ctx.require_dims("Updates", expected, why=f"for Index {list(index)} and X {list(dims)}")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class ScatterNdAddGrad(
    GradOpDef, of=ScatterNdAdd, reads="Index", shape_of="Updates", grads_of="X? Updates?", like="Out@GRAD"
):
    """X@GRAD is Out@GRAD; Updates@GRAD holds its parts at Index."""
