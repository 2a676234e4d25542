"""group_norm and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, OpDef, dtype_of
from oprack.op.sbp import leading

from oprack_nn.ops._layout import is_channel_last, layout_attr
from oprack_nn.ops.norm._family import norm_types


class GroupNorm(OpDef, type="group_norm"):
    r"""$$Y = Scale \frac{X - \mu}{\sqrt{\sigma^2 + epsilon}} + Bias$$

    mu and sigma^2 are the mean and biased variance over the channels of a group and all positions of one sample.
    """

    X = op.Input("[N, C, ...], or [N, ..., C] with data_layout NHWC.")
    Scale = op.Input("[C]; 1 when absent.", dispensable=True)
    Bias = op.Input("[C]; 0 when absent.", dispensable=True)
    Y = op.Output("Shape of X.")
    Mean = op.Output("[N, groups].", intermediate=True)
    Variance = op.Output("[N, groups].", intermediate=True)
    epsilon = Attr(1e-5, "Added to the variance.").between(0.0, 1.0)
    groups = Attr(-1, "Number of groups of channels; has to divide C.").greater_than(0)
    data_layout = layout_attr("NCHW")
    expected_kernel_type = dtype_of("X")
    infer_var_type = norm_types({}, "Mean", "Variance")
    sbp = leading(("X",), ("Y", "Mean", "Variance"))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, groups = ctx.dim("X"), ctx.attr("groups")
        ctx.require(len(dims) >= 2, f"X has shape {list(dims)}; expected a batch and a channel dim at least")
        c = dims[-1] if is_channel_last(ctx.attr("data_layout")) else dims[1]
        ctx.require(
            c < 0 or (0 < groups <= c and c % groups == 0),
            f"groups is {groups}; expected a divisor of {c}, the channels of X {list(dims)}",
        )
        for slot in ("Scale", "Bias"):
            if ctx.has_input(slot):
                got = ctx.dim(slot)
                ctx.require(
                    len(got) == 1 and (c < 0 or got[0] < 0 or got[0] == c),
                    f"{slot} has shape {list(got)}; expected [{c}], the channels of X {list(dims)}",
                )
        ctx.set_dim("Y", dims)
        ctx.set_dim("Mean", (dims[0], groups))
        ctx.set_dim("Variance", (dims[0], groups))
        ctx.share_lod("X", "Y")


class GroupNormGrad(
    GradOpDef, of=GroupNorm, reads="X Scale Mean Variance", shape_of="Bias Y?", grads_of="X? Scale? Bias?"
):
    """As batch_norm_grad, the means over a group of one sample; Scale@GRAD and Bias@GRAD are sums per channel."""

    inplace = {"Y@GRAD": "X@GRAD"}
    expected_kernel_type = dtype_of("X")
