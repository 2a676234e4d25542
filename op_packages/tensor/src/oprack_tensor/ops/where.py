"""where: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output, dtype_of


class Where(OpDef, type="where"):
    """Out is X where Condition is true and Y elsewhere."""

    Condition = Input("bool, shape of X.")
    X = Input("Tensor of any shape.")
    Y = Input("Shape and type of X.")
    Out = Output("Shape and LoD of X.")
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        ctx.same_dims("X", "Y")
        ctx.same_dims("Condition", "X")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def infer_var_type(ctx):
        ctx.set_dtype("Out", ctx.dtype("X"))

    def make_grad(fwd):
        return GradOp(
            "where_grad",
            Condition=fwd.input("Condition"),
            X=fwd.input("X"),
            Y=fwd.input("Y"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            Y_grad=fwd.input_grad("Y"),
        )


class WhereGrad(GradOpDef, type="where_grad"):
    """X@GRAD is Out@GRAD where Condition is true, else 0; Y@GRAD the other way round."""

    Condition = Input("As in where.")
    X = Input("Only its shape is read.")
    Y = Input("Only its shape is read.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of X.", dispensable=True)
    Y_grad = Output("Shape and LoD of Y.", dispensable=True)
    no_need_buffer_vars = ("X", "Y")
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        for slot in ("X", "Y"):
            ctx.set_dim(slot + "@GRAD", ctx.dim(slot))
            ctx.share_lod(slot, slot + "@GRAD")

    def infer_var_type(ctx):
        for slot in ("X@GRAD", "Y@GRAD"):
            if ctx.has_output(slot):
                ctx.set_dtype(slot, ctx.dtype("Out@GRAD"))
