"""onednn_matmul: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, InferShapeContext, OpDef, empty_grad

from oprack_onednn.ops.post_ops import post_ops_attr
from oprack_onednn.ops.precision import data_type_attr, with_data_type


class FusedMatmul(OpDef):
    """A product with a weight and what follows it; made by passes, for inference."""

    X = op.Input("[*, K]; its first x_num_col_dims dims are rows.")
    Y = op.Input("Weights [K, N].")
    Bias = op.Input("[N].", dispensable=True)
    Residual = op.Input('What the post-op "residual" adds; the shape of Out.', dispensable=True)
    Out = op.Output("[*, N], LoD of X.")
    x_num_col_dims = Attr(-1, "How many dims of X are rows; -1 = all but the last.")
    trans_x = Attr(False, "The last two dims of X are swapped first.")
    post_ops = post_ops_attr()
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        x = list(ctx.dim("X"))
        rows, width = ctx.attr("x_num_col_dims"), ctx.require_rank("Y", 2)
        ctx.require(len(x) > 1, f"X {x} is no matrix")
        if ctx.attr("trans_x"):
            x[-2:] = x[:-3:-1]
        ctx.require_dims("Bias", width[1:])
        ctx.set_dim("Out", (*x[: rows if rows > 0 else len(x) - 1], width[1]))
        ctx.share_lod("X", "Out")


class OneDNNMatmul(FusedMatmul, type="onednn_matmul"):
    r"""$$Out = p_n(... p_1(X Y + Bias))$$ with the post-ops p; made by passes, for inference."""

    mkldnn_data_type = data_type_attr()
    versions = with_data_type("onednn_matmul")
