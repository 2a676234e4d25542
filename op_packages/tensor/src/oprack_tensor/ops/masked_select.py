"""masked_select: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output, dtype_of


class MaskedSelect(OpDef, type="masked_select"):
    """Y lists the elements of X where Mask is true, in row-major order; X and Mask are broadcast."""

    X = Input("Tensor of any shape.")
    Mask = Input("bool, of a shape that broadcasts with X.")
    Y = Output("[number of true elements]")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        ctx.set_dim("Y", (-1,))

    def make_grad(fwd):
        return GradOp(
            "masked_select_grad",
            X=fwd.input("X"),
            Mask=fwd.input("Mask"),
            Y_grad=fwd.output_grad("Y"),
            X_grad=fwd.input_grad("X"),
        )


class MaskedSelectGrad(GradOpDef, type="masked_select_grad"):
    """X@GRAD holds Y@GRAD at the places that were selected, 0 elsewhere."""

    X = Input("Only its shape is read.")
    Mask = Input("As in masked_select.")
    Y_grad = Input("Gradient of Y.")
    X_grad = Output("Shape and LoD of X.")
    no_need_buffer_vars = ("X",)
    expected_kernel_type = dtype_of("Y@GRAD")

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
