"""affine_channel and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import GradOp, GradOpDef, OpDef

from oprack_nn.ops._conv import is_channel_last, layout_attr


class _Attrs(OpDef):
    data_layout = layout_attr("AnyLayout")


def _infer_grad_shape(ctx):
    source = "X" if ctx.has_input("X") else "Out@GRAD"
    ctx.set_dim("X@GRAD", ctx.dim(source))
    ctx.share_lod(source, "X@GRAD")
    ctx.set_dim("Scale@GRAD", ctx.dim("Scale"))
    ctx.set_dim("Bias@GRAD", ctx.dim("Scale"))


class AffineChannel(_Attrs, type="affine_channel"):
    r"""$$Out = Scale_c X + Bias_c$$ per channel; a batch_norm with fixed statistics."""

    X = op.Input("[N, C] or [N, C, H, W], channels last with data_layout NHWC.")
    Scale = op.Input("[C].")
    Bias = op.Input("[C].")
    Out = op.Output("Shape of X.")
    inplace = {"X": "Out"}

    def infer_shape(ctx):
        dims = ctx.require_rank("X", 2, 4)
        c = dims[-1] if is_channel_last(ctx.attr("data_layout")) else dims[1]
        for slot in ("Scale", "Bias"):
            got = ctx.dim(slot)
            ctx.require(
                len(got) == 1 and (c < 0 or got[0] < 0 or got[0] == c),
                f"{slot} has shape {list(got)}; expected [{c}], the channels of X {list(dims)}",
            )
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")

    def make_grad(fwd):
        return GradOp(
            "affine_channel_grad",
            X=fwd.input("X"),
            Scale=fwd.input("Scale"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            Scale_grad=fwd.input_grad("Scale"),
            Bias_grad=fwd.input_grad("Bias"),
            attrs=fwd.attrs,
        )


class AffineChannelGrad(_Attrs, GradOpDef, type="affine_channel_grad"):
    """X@GRAD = Scale Out@GRAD; Scale@GRAD and Bias@GRAD are sums of X Out@GRAD and of Out@GRAD per channel."""

    X = op.Input("X of the forward op.", dispensable=True)
    Scale = op.Input("Scale of the forward op.")
    Out_grad = op.Input("Shape of Out.")
    X_grad = op.Output("Shape of X.", dispensable=True)
    Scale_grad = op.Output("[C].", dispensable=True)
    Bias_grad = op.Output("[C].", dispensable=True)
    inplace = {"Out@GRAD": "X@GRAD"}
    infer_shape = _infer_grad_shape
