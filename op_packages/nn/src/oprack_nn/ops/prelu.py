"""prelu: all of the op but its kernels."""

from __future__ import annotations

import math

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN
from oprack.op.sbp import leading

_MODE = Attr("all", "all: one slope. channel: one per channel. element: one per element of a sample.")


class PRelu(OpDef, type="prelu"):
    r"""$$Out = X$$ where $$X > 0$$, else $$Alpha \cdot X$$ with learned slopes"""

    X = Input("Tensor [N, C, ...] or [N, ..., C].")
    Alpha = Input("Slopes: 1, C, or as many as a sample has elements.")
    Out = Output("Shape and LoD of X.")
    data_format = Attr("NCHW", "NCHW or NHWC: where the channels are.")
    mode = Attr("all", _MODE.doc).in_set(("all", "channel", "element"))
    is_test = Attr(False, "Run for inference only.", extra=True)
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN

    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        x, alpha, mode = ctx.dim("X"), ctx.dim("Alpha"), ctx.attr("mode")
        if mode == "all":
            expected = 1
        elif mode == "channel":
            ctx.require(len(x) >= 2, f"X has shape {list(x)}; mode 'channel' expects rank 2 or more")
            expected = x[-1] if ctx.attr("data_format") == "NHWC" else x[1]
        else:
            expected = -1 if -1 in x[1:] else math.prod(x[1:])
        if expected >= 0 and -1 not in alpha:
            count = math.prod(alpha)
            ctx.require(
                count == expected,
                f"Alpha has shape {list(alpha)} with {count} slopes, but X has shape {list(x)} and mode is {mode!r}; "
                f"expected {expected}",
            )
        ctx.set_dim("Out", x)
        ctx.share_lod("X", "Out")


class PReluGrad(GradOpDef, of=PRelu, reads="X Alpha"):
    r"""$$X@GRAD = Out@GRAD$$ where $$X > 0$$, else $$Alpha \cdot Out@GRAD$$;
    $$Alpha@GRAD = \sum X \cdot Out@GRAD$$ over the elements with $$X \le 0$$ that share a slope"""
