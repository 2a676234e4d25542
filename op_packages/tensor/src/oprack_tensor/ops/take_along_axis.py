"""take_along_axis: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import SbpContext, Signature, factors, letters
from oprack.types import AttrType


class TakeAlongAxis(OpDef, type="take_along_axis"):
    r"""$$Result_{..., i, ...} = Input_{..., Index_{..., i, ...}, ...}$$ along dim `Axis`."""

    Input_ = Input("Tensor of rank 1 or more.")
    Index = Input("int32 or int64 of the rank of Input.")
    Result = Output("Shape of Index; no LoD.")
    Axis = Attr(REQUIRED, "Dim to pick along; negative counts from the end.", type=AttrType.INT)
    expected_kernel_type = dtype_of("Input")

    def sbp(ctx: SbpContext) -> list[Signature]:
        x, index, axis = ctx.dim("Input"), ctx.dim("Index"), ctx.attr("Axis", 0)
        names = [n if a == b else None for n, a, b in zip(letters(len(x)), x, index, strict=True)]
        names[axis] = None
        return factors({"Input": names, "Index": names}, {"Result": names}, linear=(("Input",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_rank("Index", len(ctx.dim("Input")))
        ctx.axis("Input", "Axis")
        ctx.set_dim("Result", ctx.dim("Index"))


class TakeAlongAxisGrad(GradOpDef, of=TakeAlongAxis, reads="Index", shape_of="Input", grads_of="Input", linear=True):
    """Adds each element of Result@GRAD to the place of Input@GRAD that it came from."""

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("Input", "Axis")
        ctx.require_rank("Index", len(ctx.dim("Input")))
        ctx.same_dims("Index", "Result@GRAD")
        ctx.set_dim("Input@GRAD", ctx.dim("Input"))
        ctx.share_lod("Input", "Input@GRAD")
