"""fill_zeros_like: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Input, OpDef, Output, empty_grad
from oprack.types import VarType


def _kernel_type(ctx):
    dtype = ctx.dtype("X") if ctx.is_initialized("X") else ctx.output_dtype("Out") or "float32"
    return ctx.kernel_type(dtype=dtype)


class FillZerosLike(OpDef, type="fill_zeros_like"):
    """Every element of Out is 0."""

    X = Input("Tensor, or array of tensors.")
    Out = Output("Shape, type and LoD of X.")
    expected_kernel_type = _kernel_type
    no_need_buffer_vars = ("X",)
    make_grad = empty_grad

    def infer_shape(ctx):
        if not (ctx.is_runtime and ctx.kind("X") == VarType.LOD_TENSOR_ARRAY):
            ctx.set_dim("Out", ctx.dim("X"))
            ctx.share_lod("X", "Out")
