"""fill_zeros_like: all of the op but its kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.op import InferShapeContext, Input, KernelTypeContext, OpDef, Output, empty_grad
from oprack.op.sbp import unary
from oprack.types import VarType

if TYPE_CHECKING:
    from oprack.kernel import OpKernelType


def _kernel_type(ctx: KernelTypeContext) -> OpKernelType:
    dtype = ctx.dtype("X") if ctx.is_initialized("X") else ctx.output_dtype("Out") or "float32"
    return ctx.kernel_type(dtype=dtype)


class FillZerosLike(OpDef, type="fill_zeros_like"):
    r"""$$Out_i = 0$$ in the shape of X."""

    X = Input("Tensor, or array of tensors.")
    Out = Output("Shape, type and LoD of X.")
    expected_kernel_type = _kernel_type
    no_need_buffer_vars = ("X",)
    make_grad = empty_grad
    sbp = unary

    def infer_shape(ctx: InferShapeContext) -> None:
        if not (ctx.is_runtime and ctx.kind("X") == VarType.LOD_TENSOR_ARRAY):
            ctx.set_dim("Out", ctx.dim("X"))
            ctx.share_lod("X", "Out")
