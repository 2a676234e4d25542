"""fused_matmul: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType

from oprack_fused.ops._attrs import MKLDNN_DATA_TYPE
from oprack_fused.ops.onednn._dims import permuted, reshaped
from oprack_fused.ops.onednn._post import FUSE_ACTIVATION, FUSE_ALPHA, FUSE_BETA, OUTPUT_SCALE, unquantised


def _ints(doc: str) -> Attr:
    return Attr([], doc, type=AttrType.INTS)


class FusedMatmul(OpDef, type="fused_matmul"):
    r"""$$Out = fused\_output\_scale \cdot f(matmul\_alpha \cdot X Y + ResidualData)$$, f the activation

    X and Y are reshaped and transposed before, Out transposed and reshaped behind. Dims in front of matrices broadcast.
    """

    X = Input("Matrices [.., M, K].")
    Y = Input("Matrices [.., K, N].")
    ResidualData = Input("What is added to the products.", dispensable=True, extra=True)
    Out = Output("[.., M, N], transposed and reshaped.")
    trans_x = Attr(False, "X holds its matrices transposed.")
    trans_y = Attr(False, "Y holds its matrices transposed.")
    matmul_alpha = Attr(1.0, "Factor of the products.")
    fuse_activation = FUSE_ACTIVATION
    fuse_alpha = FUSE_ALPHA
    fuse_beta = FUSE_BETA
    fused_output_scale = OUTPUT_SCALE
    fused_reshape_X = _ints("Shape of X, 0 for a dim as it is.")
    fused_transpose_X = _ints("Order of the dims of X behind that.")
    fused_reshape_Y = _ints("Shape of Y, 0 for a dim as it is.")
    fused_transpose_Y = _ints("Order of the dims of Y behind that.")
    fused_reshape_Out = _ints("Shape of Out.")
    fused_transpose_Out = _ints("Order of the dims of Out before that.")
    mkldnn_data_type = MKLDNN_DATA_TYPE
    Scale_x = unquantised("Scale of X")
    Scale_y = unquantised("Scale of Y")
    Scale_in_eltwise = unquantised("Scale of ResidualData", 0.0)
    Scale_out = unquantised("Scale of Out")
    force_fp32_output = Attr(False, "Quantised kernels give float32.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = (
            permuted(
                ctx,
                reshaped(ctx, ctx.dim(s), ctx.attr(f"fused_reshape_{s}"), f"fused_reshape_{s}"),
                ctx.attr(f"fused_transpose_{s}"),
                f"fused_transpose_{s}",
            )
            for s in ("X", "Y")
        )
        ctx.require(min(len(x), len(y)) >= 2, f"X has dims {x} and Y {y}; expected matrices")
        x = [*x[:-2], x[-1], x[-2]] if ctx.attr("trans_x") else x
        y = [*y[:-2], y[-1], y[-2]] if ctx.attr("trans_y") else y
        ctx.require(-1 in (x[-1], y[-2]) or x[-1] == y[-2], f"X has dims {x} and Y {y}; expected equal inner sizes")
        rank = max(len(x), len(y)) - 2
        left, right = ([1] * (rank + 2 - len(d)) + d[:-2] for d in (x, y))
        fits = all(a == b or 1 in (a, b) or -1 in (a, b) for a, b in zip(left, right, strict=True))
        ctx.require(fits, f"X has dims {x} and Y {y}; expected dims in front of the matrices that broadcast")
        out = [b if a == 1 else a for a, b in zip(left, right, strict=True)] + [x[-2], y[-1]]
        out = permuted(ctx, out, ctx.attr("fused_transpose_Out"), "fused_transpose_Out")
        ctx.set_dim("Out", reshaped(ctx, out, ctx.attr("fused_reshape_Out"), "fused_reshape_Out"))
