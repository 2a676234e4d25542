"""put_along_axis: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

_REDUCTIONS = ("assign", "add", "mul", "multiply", "mean", "amin", "amax")


class PutAlongAxis(OpDef, type="put_along_axis"):
    """Result is Input with Value put at the places Index along dim `Axis`, combined as `Reduce` says."""

    Input_ = Input("Tensor of rank 1 or more.")
    Index = Input("int32 or int64 of the rank of Input.")
    Value = Input("Values, in a shape that Index can take.")
    Result = Output("Shape and LoD of Input.")
    Axis = Attr(REQUIRED, "Dim to put along; negative counts from the end.", type=AttrType.INT)
    Reduce = Attr("assign", "How values that meet in one place combine.").in_set(_REDUCTIONS)
    Include_self = Attr(True, "Whether Input's own value takes part.")
    inplace = {"Input": "Result"}
    expected_kernel_type = dtype_of("Input")

    def infer_shape(ctx):
        ctx.require_rank("Index", len(ctx.dim("Input")))
        ctx.axis("Input", "Axis")
        ctx.set_dim("Result", ctx.dim("Input"))
        ctx.share_lod("Input", "Result")

    def make_grad(fwd):
        return GradOp(
            "put_along_axis_grad",
            Input=fwd.input("Input"),
            Index=fwd.input("Index"),
            Value=fwd.input("Value"),
            Result=fwd.output("Result"),
            Result_grad=fwd.output_grad("Result"),
            Input_grad=fwd.input_grad("Input"),
            Value_grad=fwd.input_grad("Value"),
            attrs=fwd.attrs,
        )


class PutAlongAxisGrad(GradOpDef, type="put_along_axis_grad"):
    """Input@GRAD is Result@GRAD where Input's value still counts; Value@GRAD takes what went to each value."""

    Input_ = Input("As in put_along_axis.")
    Index = Input("As in put_along_axis.")
    Value = Input("As in put_along_axis.")
    Result = Input("Output of put_along_axis.")
    Result_grad = Input("Gradient of Result.")
    Input_grad = Output("Shape and LoD of Input.")
    Value_grad = Output("Shape of Value.")
    Axis = Attr(REQUIRED, "As in put_along_axis.", type=AttrType.INT)
    Reduce = Attr("assign", "As in put_along_axis.").in_set(_REDUCTIONS)
    Include_self = Attr(True, "As in put_along_axis.")
    expected_kernel_type = dtype_of("Result@GRAD")

    def infer_shape(ctx):
        ctx.axis("Input", "Axis")
        ctx.require_rank("Index", len(ctx.dim("Input")))
        ctx.set_dim("Input@GRAD", ctx.dim("Input"))
        ctx.share_lod("Input", "Input@GRAD")
        ctx.set_dim("Value@GRAD", ctx.dim("Index"))
