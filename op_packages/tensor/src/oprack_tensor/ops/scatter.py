"""scatter: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of


class Scatter(OpDef, type="scatter"):
    """Out is X with rows Ids replaced by Updates, or, with overwrite false, by the sum of the Updates of that row."""

    X = Input("Tensor of rank 1 or more.")
    Ids = Input("int32 or int64 [n], [n, 1] or 0-D: rows of X.")
    Updates = Input("[n, dims of a row]; one row for a 0-D Ids.")
    Out = Output("Shape and LoD of X.")
    overwrite = Attr(True, "Replace a row (the last of several wins) instead of summing.")
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        dims, ids, updates = ctx.dim("X"), ctx.dim("Ids"), ctx.dim("Updates")
        ctx.require(
            len(ids) < 2 or (len(ids) == 2 and ids[1] == 1), f"Ids has shape {list(ids)}; expected [n], [n, 1] or []"
        )
        expected = len(dims) if ids else len(dims) - 1
        ctx.require(
            len(updates) == expected and (not ids or ids[0] in (-1, updates[0]) or updates[0] == -1),
            f"Updates has shape {list(updates)} but Ids {list(ids)} and X {list(dims)}; expected one row for each id",
        )
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")

    def make_grad(fwd):
        return GradOp(
            "scatter_grad",
            Ids=fwd.input("Ids"),
            Updates=fwd.input("Updates"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            Updates_grad=fwd.input_grad("Updates"),
            attrs=fwd.attrs,
        )


class ScatterGrad(GradOpDef, type="scatter_grad"):
    """X@GRAD is Out@GRAD with the rows Ids zeroed; Updates@GRAD holds those rows."""

    Ids = Input("As in scatter.")
    Updates = Input("Only its shape is read.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of X.", dispensable=True)
    Updates_grad = Output("Shape of Updates.", dispensable=True)
    overwrite = Attr(True, "As in scatter.")
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
