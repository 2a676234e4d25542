"""scatter_nd_add: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output, dtype_of


class ScatterNdAdd(OpDef, type="scatter_nd_add"):
    r"""$$Out = X$$, then $$Out_{Index_i} \mathrel{+}= Updates_i$$ for each row i of Index."""

    X = Input("Tensor of rank k or more.")
    Index = Input("int32 or int64 [..., k].")
    Updates = Input("Leading dims of Index, then the dims of X after the first k.")
    Out = Output("Shape and LoD of X.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
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

    def make_grad(fwd):
        return GradOp(
            "scatter_nd_add_grad",
            Index=fwd.input("Index"),
            Updates=fwd.input("Updates"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            Updates_grad=fwd.input_grad("Updates"),
        )


class ScatterNdAddGrad(GradOpDef, type="scatter_nd_add_grad"):
    """X@GRAD is Out@GRAD; Updates@GRAD holds its parts at Index."""

    Index = Input("As in scatter_nd_add.")
    Updates = Input("Only its shape is read.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of X.", dispensable=True)
    Updates_grad = Output("Shape of Updates.", dispensable=True)
    no_need_buffer_vars = ("Updates",)
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("Out@GRAD"))
        ctx.set_dim("Updates@GRAD", ctx.dim("Updates"))
        ctx.share_lod("Out@GRAD", "X@GRAD")
        ctx.share_lod("Updates", "Updates@GRAD")

    def infer_var_type(ctx):
        for slot in ("X@GRAD", "Updates@GRAD"):
            if ctx.has_output(slot):
                ctx.set_dtype(slot, ctx.dtype("Out@GRAD"))
