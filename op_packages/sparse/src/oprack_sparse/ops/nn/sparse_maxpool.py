"""sparse_maxpool and its gradient."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
    Attr,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of,
)
from oprack.types import AttrType, VarType

from oprack_sparse.ops.nn._windows import window_dims


class SparseMaxpool(OpDef, type="sparse_maxpool"):
    r"""$$out_o = \max_k x_{o \cdot stride - padding + k}$$ over the points that x lists, for each channel."""

    x = Input("Sparse tensor in COO [N, D, H, W, C], of which the channels C are dense.")
    out = Output("Sparse tensor in COO, which lists the windows that meet a point of x.")
    rulebook = Output("Int32 [3, pairs]: place in the window, point of x, point of out.", intermediate=True)
    counter = Output("Int32: pairs for each place in the window.", intermediate=True)
    kernel_sizes = Attr(REQUIRED, "Sizes of a window.", type=AttrType.INTS)
    paddings = Attr(REQUIRED, "Empty space on both sides of each dim.", type=AttrType.INTS)
    dilations = Attr(REQUIRED, "Steps between the places of a window.", type=AttrType.INTS)
    strides = Attr(REQUIRED, "Steps between windows.", type=AttrType.INTS)

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime and not ctx.dim("x"):
            return
        dims = ctx.require_rank("x", 4, 5)
        space = window_dims(ctx, dims[1:-1], ctx.attr("kernel_sizes"), ctx.attr("paddings"), ctx.attr("strides"))
        ctx.set_dim("out", [dims[0], *space, dims[-1]])
        ctx.set_dim("rulebook", (3, -1))
        ctx.set_dim("counter", (-1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", VarType.SPARSE_COO)
        ctx.set_dtype("out", ctx.dtype("x"))
        for slot in ("rulebook", "counter"):
            ctx.set_kind(slot, VarType.LOD_TENSOR)
            ctx.set_dtype(slot, "int32")


class SparseMaxpoolGrad(GradOpDef, of=SparseMaxpool, reads="x out rulebook", attrs=""):
    r"""$$x@GRAD_i = \sum_o out@GRAD_o \cdot [x_i = out_o]$$ over the windows that i lies in."""

    expected_kernel_type = dtype_of("x")
