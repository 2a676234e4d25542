"""take_along_axis: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of
from oprack.types import AttrType


class TakeAlongAxis(OpDef, type="take_along_axis"):
    r"""$$Result_{..., i, ...} = Input_{..., Index_{..., i, ...}, ...}$$ along dim `Axis`."""

    Input_ = Input("Tensor of rank 1 or more.")
    Index = Input("int32 or int64 of the rank of Input.")
    Result = Output("Shape of Index; no LoD.")
    Axis = Attr(REQUIRED, "Dim to pick along; negative counts from the end.", type=AttrType.INT)
    expected_kernel_type = dtype_of("Input")

    def infer_shape(ctx):
        ctx.require_rank("Index", len(ctx.dim("Input")))
        ctx.axis("Input", "Axis")
        ctx.set_dim("Result", ctx.dim("Index"))

    def make_grad(fwd):
        return GradOp(
            "take_along_axis_grad",
            Input=fwd.input("Input"),
            Index=fwd.input("Index"),
            Result_grad=fwd.output_grad("Result"),
            Input_grad=fwd.input_grad("Input"),
            attrs=fwd.attrs,
        )


class TakeAlongAxisGrad(GradOpDef, type="take_along_axis_grad"):
    """Adds each element of Result@GRAD to the place of Input@GRAD that it came from."""

    Input_ = Input("Only its shape is read.")
    Index = Input("As in take_along_axis.")
    Result_grad = Input("Gradient of Result.")
    Input_grad = Output("Shape and LoD of Input.")
    Axis = Attr(REQUIRED, "As in take_along_axis.", type=AttrType.INT)
    no_need_buffer_vars = ("Input",)
    expected_kernel_type = dtype_of("Result@GRAD")

    def infer_shape(ctx):
        ctx.axis("Input", "Axis")
        ctx.require_rank("Index", len(ctx.dim("Input")))
        ctx.same_dims("Index", "Result@GRAD")
        ctx.set_dim("Input@GRAD", ctx.dim("Input"))
        ctx.share_lod("Input", "Input@GRAD")
