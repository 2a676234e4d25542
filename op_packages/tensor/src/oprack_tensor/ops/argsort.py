"""argsort: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of


class Argsort(OpDef, type="argsort"):
    """Out is X sorted along a dim, and Indices where each element was; equals keep their order."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    Indices = Output("int64, shape and LoD of X: places along `axis`.")
    axis = Attr(-1, "Along which dim; negative counts from the end.")
    descending = Attr(False, "Largest first.")

    def infer_shape(ctx):
        ctx.axis("X")
        for slot in ("Out", "Indices"):
            ctx.set_dim(slot, ctx.dim("X"))
            ctx.share_lod("X", slot)

    def infer_var_type(ctx):
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("Indices", "int64")

    def make_grad(fwd):
        return GradOp(
            "argsort_grad",
            X=fwd.input("X"),
            Indices=fwd.output("Indices"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class ArgsortGrad(GradOpDef, type="argsort_grad"):
    """X@GRAD holds Out@GRAD at the places Indices."""

    X = Input("Only its shape is read.")
    Indices = Input("Output of argsort.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of X.")
    axis = Attr(-1, "As in argsort.")
    descending = Attr(False, "As in argsort.")
    no_need_buffer_vars = ("X",)
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        ctx.axis("X")
        ctx.same_size("X", "Out@GRAD")
        ctx.same_dims("Indices", "Out@GRAD")
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
