"""assign: all of the op but its kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.op import ForwardOp, GradOp, IdentityContext, InferShapeContext, Input, KernelTypeContext, OpDef, Output
from oprack.op.sbp import linear_unary
from oprack.types import VarType

if TYPE_CHECKING:
    from oprack.kernel import OpKernelType


def _kernel_type(ctx: KernelTypeContext) -> OpKernelType:
    # an array without elements has no dtype of its own, and any kernel copies it
    dtype = ctx.dtype("X") if ctx.is_initialized("X") else ctx.output_dtype("Out") or "float32"
    return ctx.kernel_type(dtype=dtype)


class Assign(OpDef, type="assign"):
    r"""$$Out = X$$, a copy."""

    X = Input("Tensor, SelectedRows or tensor array.", dispensable=True)
    Out = Output("Shape, type, LoD and kind of X.")
    inplace = {"X": "Out"}
    expected_kernel_type = _kernel_type
    sbp = linear_unary

    def infer_shape(ctx: InferShapeContext) -> None:
        given = ctx.has_input("X") or not ctx.is_runtime
        ctx.require(given, "input X is absent, so there is nothing to copy; give it a variable")
        if ctx.has_input("X") and not (ctx.is_runtime and ctx.kind("X") == VarType.LOD_TENSOR_ARRAY):
            ctx.set_dim("Out", ctx.dim("X"))
            ctx.share_lod("X", "Out")

    def identity(ctx: IdentityContext) -> bool:
        return ctx.has_input("X")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("assign", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"))
