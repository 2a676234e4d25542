"""put_along_axis: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

_REDUCTIONS = ("assign", "add", "mul", "multiply", "mean", "amin", "amax")


class PutAlongAxis(OpDef, type="put_along_axis"):
    r"""$$Result_{\ldots, Index_i, \ldots} = Input_{\ldots, Index_i, \ldots} \oplus Value_i$$ along dim `Axis`.

    `Reduce` says how values that meet in one place combine: assign (the last one stays), add, mul, mean, amin or amax;
    without Include_self Input's own value does not take part.
    """

    Input_ = Input("Tensor of rank 1 or more.")
    Index = Input("int32 or int64 of the rank of Input.")
    Value = Input("Values, in a shape that Index can take.")
    Result = Output("Shape and LoD of Input.")
    Axis = Attr(REQUIRED, "Dim to put along; negative counts from the end.", type=AttrType.INT)
    Reduce = Attr("assign", "How values that meet in one place combine.").in_set(_REDUCTIONS)
    Include_self = Attr(True, "Whether Input's own value takes part.")
    inplace = {"Input": "Result"}
    expected_kernel_type = dtype_of("Input")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_rank("Index", len(ctx.dim("Input")))
        ctx.axis("Input", "Axis")
        ctx.set_dim("Result", ctx.dim("Input"))
        ctx.share_lod("Input", "Result")


class PutAlongAxisGrad(GradOpDef, of=PutAlongAxis, reads="Input Index Value Result", grads_of="Input Value"):
    """Input@GRAD is Result@GRAD where Input's value still counts; Value@GRAD takes what went to each value."""

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("Input", "Axis")
        ctx.require_rank("Index", len(ctx.dim("Input")))
        ctx.set_dim("Input@GRAD", ctx.dim("Input"))
        ctx.share_lod("Input", "Input@GRAD")
        ctx.set_dim("Value@GRAD", ctx.dim("Index"))
