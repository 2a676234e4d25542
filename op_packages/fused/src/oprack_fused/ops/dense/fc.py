"""fc: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading

from oprack_fused.ops import _attrs
from oprack_fused.ops._shapes import dense_dims


class Fc(OpDef, type="fc"):
    r"""$$Out = a(Input\,W + Bias)$$ mul, elementwise_add and the activation $a$."""

    Input_ = Input("The first `in_num_col_dims` dims are rows.", name="Input")
    W = Input("[K, N], or [K + 4, N + 4] with `padding_weights`.")
    Bias = Input("[N] or [1, N].", dispensable=True)
    Out = Output("Rows of Input, then N; LoD of Input.")
    in_num_col_dims = Attr(1, "How many dims of Input are rows.")
    activation_type = Attr("", "Type of the activation's op; empty: none.")
    use_mkldnn = _attrs.USE_MKLDNN
    padding_weights = Attr(False, "The last 4 rows and columns of W are padding.")
    use_quantizer = Attr(False, "Paddle: marked for quantisation.")
    mkldnn_data_type = _attrs.MKLDNN_DATA_TYPE
    Scale_in = Attr(1.0, "Scale of Input in a quantised model.")
    Scale_weights = _attrs.SCALE_WEIGHTS
    Scale_out = Attr(1.0, "Scale of Out in a quantised model.")
    force_fp32_output = _attrs.FORCE_FP32_OUTPUT

    sbp = leading(("Input",), ("Out",), lambda ctx: int(ctx.attr("in_num_col_dims", 1)))

    def infer_shape(ctx: InferShapeContext) -> None:
        weight, bias = tuple(ctx.dim("W")), tuple(ctx.dim("Bias")) if ctx.has_input("Bias") else None
        if ctx.attr("padding_weights"):
            weight = tuple(d if d < 0 else d - 4 for d in weight)
        x = tuple(ctx.dim("Input"))
        ctx.set_dim("Out", dense_dims(ctx, x, weight, bias, rows=ctx.attr("in_num_col_dims"), of="Input"))
        ctx.share_lod("Input", "Out")
