"""sparse_conv3d and its gradient."""

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


class SparseConv3d(OpDef, type="sparse_conv3d"):
    r"""$$out_o = \sum_k x_{o \cdot stride - padding + k \cdot dilation}\, kernel_k$$ over the points that x lists.

    Points are listed where a window meets a point of x; with `subm`, a submanifold convolution, where x has one, with
    windows around it and steps of 1. Images of two dims work alike.
    """

    x = Input("Sparse tensor in COO [N, D, H, W, C], of which the channels C are dense.")
    kernel = Input("[kD, kH, kW, C, channels of out].")
    out = Output("Sparse tensor in COO [N, D, H, W, channels of out].")
    rulebook = Output("Int32 [3, pairs]: place in the kernel, point of x, point of out.", intermediate=True)
    counter = Output("Int32: pairs for each place in the kernel.", intermediate=True)
    paddings = Attr(REQUIRED, "Empty space on both sides of each dim.", type=AttrType.INTS)
    dilations = Attr(REQUIRED, "Steps between the places of a window.", type=AttrType.INTS)
    strides = Attr(REQUIRED, "Steps between windows.", type=AttrType.INTS)
    groups = Attr(REQUIRED, "1.", type=AttrType.INT).in_set([1])
    subm = Attr(REQUIRED, "Whether out has the points of x.", type=AttrType.BOOLEAN)
    key = Attr("", "Paddle: under which name to keep the pairs for the next convolution; they are made anew here.")
    expected_kernel_type = dtype_of("x")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, kernel = ctx.dim("x"), ctx.dim("kernel")
        if not ctx.is_runtime and not (dims and kernel):
            return
        fits = len(dims) in (4, 5) and len(kernel) == len(dims) and (dims[-1] in (-1, kernel[-2]))
        ctx.require(fits, f"x is {list(dims)}, kernel {list(kernel)}; expected [N, D, H, W, C] and [kD, kH, kW, C, O]")
        space = list(dims[1:-1])
        if not ctx.attr("subm"):
            space = window_dims(ctx, space, kernel[:-2], ctx.attr("paddings"), ctx.attr("strides"))
        ctx.set_dim("out", [dims[0], *space, kernel[-1]])
        ctx.set_dim("rulebook", (3, -1))
        ctx.set_dim("counter", (-1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", VarType.SPARSE_COO)
        ctx.set_dtype("out", ctx.dtype("x"))
        for slot in ("rulebook", "counter"):
            ctx.set_kind(slot, VarType.LOD_TENSOR)
            ctx.set_dtype(slot, "int32")


class SparseConv3dGrad(GradOpDef, of=SparseConv3d, reads="x kernel out rulebook", attrs=""):
    r"""$$x@GRAD_i = \sum_k out@GRAD_{o(i, k)}\, kernel_k^T,\quad kernel@GRAD_k = \sum_i x_i^T out@GRAD_{o(i, k)}$$"""

    expected_kernel_type = dtype_of("x")
