"""Definitions of normalisations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oprack import op
from oprack.op import (
    Attr,
    ForwardOp,
    GradOp,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of,
)
from oprack.op.sbp import SbpContext, Signature, leading, split
from oprack.types import HALF_FLOATS

from oprack_nn.ops._layout import is_channel_last, layout_attr


# What the normalisations share.
def norm_types(like: Mapping[str, str], *statistics: str, first: str = "X") -> Callable[[Any], None]:
    """The type rule of a normalisation: outputs are of the dtype of `first`, with exceptions for 16-bit floats.

    like: output -> the input whose dtype it has where that is given, as gradients of parameters, which stay float32.
    statistics: outputs that are float32 where `first` is narrower, since means of 16-bit floats would be too rough.
    """

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtype = ctx.dtype(first)
        wide = "float32" if dtype in HALF_FLOATS else dtype
        for slot in ctx.proto.outputs:
            if ctx.has_output(slot):
                source = like.get(slot, "")
                own = ctx.dtype(source) if source and ctx.has_input(source) else dtype
                ctx.set_kind(slot, ctx.kind(first))
                ctx.set_dtype(slot, wide if slot in statistics else own)

    return infer_var_type


class AffineChannel(OpDef, type="affine_channel"):
    r"""$$Out = Scale_c X + Bias_c$$ per channel; a batch_norm with fixed statistics."""

    X = op.Input("[N, C] or [N, C, H, W], channels last with data_layout NHWC.")
    Scale = op.Input("[C].")
    Bias = op.Input("[C].")
    Out = op.Output("Shape of X.")
    data_layout = layout_attr("AnyLayout")
    inplace = {"X": "Out"}
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
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


class AffineChannelGrad(GradOpDef, of=AffineChannel, reads="X? Scale", grads_of="X? Scale? Bias?"):
    """X@GRAD = Scale Out@GRAD; Scale@GRAD and Bias@GRAD are sums of X Out@GRAD and of Out@GRAD per channel."""

    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require(
            ctx.has_input("X") or not ctx.has_output("Scale@GRAD"),
            "X is absent and Scale@GRAD an output; expected X, or no Scale@GRAD, which is a sum of X Out@GRAD",
        )
        source = "X" if ctx.has_input("X") else "Out@GRAD"
        ctx.set_dim("X@GRAD", ctx.dim(source))
        ctx.share_lod(source, "X@GRAD")
        ctx.set_dim("Scale@GRAD", ctx.dim("Scale"))
        ctx.set_dim("Bias@GRAD", ctx.dim("Scale"))


class BatchNorm(OpDef, type="batch_norm"):
    r"""$$Y = Scale \frac{X - \mu}{\sqrt{\sigma^2 + epsilon}} + Bias$$ per channel

    mu and sigma^2 are the batch's mean and biased variance, or Mean and Variance with is_test or use_global_stats. In
    training $$MeanOut = Mean \cdot momentum + \mu (1 - momentum)$$ and VarianceOut alike.
    """

    X = op.Input("[N, C, ...], or [N, ..., C] with data_layout NHWC; rank 2 to 5.")
    Scale = op.Input("[C]; 1 when absent.", dispensable=True)
    Bias = op.Input("[C]; 0 when absent.", dispensable=True)
    Mean = op.Input("[C], running mean.")
    Variance = op.Input("[C], running variance.")
    MomentumTensor = op.Input("One element that overrides momentum.", dispensable=True)
    Y = op.Output("Shape of X.")
    MeanOut = op.Output("[C], new running mean; usually the variable of Mean.", stop_gradient=True)
    VarianceOut = op.Output("[C], new running variance; usually the variable of Variance.", stop_gradient=True)
    SavedMean = op.Output("[C], the batch's mean.", intermediate=True)
    SavedVariance = op.Output("[C], 1 / sqrt(variance + epsilon) of the batch.", intermediate=True)
    ReserveSpace = op.Output("Paddle: scratch of cuDNN; not written.", dispensable=True, extra=True)
    is_test = Attr(False, "Normalise by Mean and Variance and leave them as they are.")
    momentum = Attr(0.9, "Weight of the old running statistics.")
    epsilon = Attr(1e-5, "Added to the variance.").between(0.0, 0.001)
    data_layout = layout_attr("NCHW")
    use_global_stats = Attr(False, "Normalise by Mean and Variance in training, too.")
    trainable_statistics = Attr(False, "Use the batch's statistics even with is_test.")
    fuse_with_relu = Attr(False, "Paddle: ReLU fused by oneDNN passes.", extra=True)
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    expected_kernel_type = dtype_of("X")
    infer_var_type = norm_types({"MeanOut": "Mean", "VarianceOut": "Variance"}, "SavedMean", "SavedVariance")

    def sbp(ctx: SbpContext) -> list[Signature]:
        last = len(ctx.dim("X")) - 1
        channels = split(last if is_channel_last(ctx.attr("data_layout", "NCHW")) else 1)
        each = {s: split(0) for s in ("Scale", "Bias", "Mean", "Variance") if ctx.has(s)}
        statistics = dict.fromkeys(("MeanOut", "VarianceOut", "SavedMean", "SavedVariance"), split(0))
        found = [Signature({"X": channels, **each}, {"Y": channels, **statistics})]
        rows = {"X": split(0)}, {"Y": split(0)}
        running = ctx.attr("is_test", False) and not ctx.attr("trainable_statistics", False)
        if running or ctx.attr("use_global_stats", False):
            return [*found, Signature(*rows)]
        # Statistics of the rows of all ranks.
        return [*found, Signature(*rows, via="sync_batch_norm")] if ctx.op_type == "batch_norm" else found

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 2, 3, 4, 5)
        c = dims[-1] if is_channel_last(ctx.attr("data_layout")) else dims[1]
        for slot in ("Scale", "Bias", "Mean", "Variance"):
            if ctx.has_input(slot):
                got = ctx.dim(slot)
                ctx.require(
                    len(got) == 1 and (c < 0 or got[0] < 0 or got[0] == c),
                    f"{slot} has shape {list(got)}; expected [{c}], the channels of X {list(dims)} in "
                    f"{ctx.attr('data_layout')}",
                )
        ctx.set_dim("Y", dims)
        for slot in ("MeanOut", "VarianceOut", "SavedMean", "SavedVariance"):
            ctx.set_dim(slot, (c,))
        ctx.set_dim("ReserveSpace", (-1,))
        ctx.share_lod("X", "Y")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return batch_norm_gradient("batch_norm_grad", fwd)


def batch_norm_gradient(op_type: str, fwd: ForwardOp, source: str = "X") -> GradOp:
    """The gradient op of an op with the slots of batch_norm.

    Args:
        op_type: Its type.
        fwd: The forward op.
        source: What it goes back from: X, or Y where X is gone.

    Returns:
        The gradient op.
    """
    running = fwd.attrs["is_test"] or fwd.attrs["use_global_stats"]
    from_x = source == "X"
    return GradOp(
        op_type,
        X=fwd.input("X") if from_x else None,
        Y=None if from_x else fwd.output("Y"),
        Scale=fwd.input("Scale"),
        Bias=fwd.input("Bias"),
        Mean=fwd.output("MeanOut") if running else None,
        Variance=fwd.output("VarianceOut") if running else None,
        MeanOut=fwd.output("MeanOut") if from_x else None,
        VarianceOut=fwd.output("VarianceOut") if from_x else None,
        SavedMean=fwd.output("SavedMean"),
        SavedVariance=fwd.output("SavedVariance"),
        ReserveSpace=fwd.output("ReserveSpace") if fwd.has_output("ReserveSpace") else None,
        Y_grad=fwd.output_grad("Y"),
        X_grad=fwd.input_grad("X"),
        Scale_grad=fwd.input_grad("Scale"),
        Bias_grad=fwd.input_grad("Bias"),
        attrs=fwd.attrs,
    )


def _statistics(ctx: InferShapeContext) -> tuple[str, str]:
    """Slots of the statistics by which the forward op normalised. Raises InvalidArgumentError when one is absent."""
    running = ctx.attr("is_test") and not ctx.attr("trainable_statistics")
    fixed = running or ctx.attr("use_global_stats")
    slots = ("Mean", "Variance") if fixed else ("SavedMean", "SavedVariance")
    absent = [slot for slot in slots if not ctx.has_input(slot)]
    flags = ", ".join(f"{n} {ctx.attr(n)}" for n in ("is_test", "trainable_statistics", "use_global_stats"))
    ctx.require(
        not absent,
        f"no {' and no '.join(absent)} given; with {flags} the forward op normalised by {slots[0]} and {slots[1]}, so "
        "expected both",
    )
    return slots


def batch_norm_dims(source: str) -> Callable[[InferShapeContext], None]:
    """The shape rule of a gradient that reads `source`, which has the shape of X.

    Args:
        source: X itself, or Y where X is gone.

    Returns:
        The rule.
    """

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank(source, 2, 3, 4, 5)
        c = dims[-1] if is_channel_last(ctx.attr("data_layout")) else dims[1]
        ctx.require_dims("Y@GRAD", dims, why=f"the shape of {source}")
        for slot in ("Scale", *_statistics(ctx)):
            ctx.require_dims(slot, (c,), why=f"the channels of {source} {list(dims)}")
        ctx.set_dim("X@GRAD", dims)
        ctx.share_lod(source, "X@GRAD")
        ctx.set_dim("Scale@GRAD", (c,))
        ctx.set_dim("Bias@GRAD", (c,))

    return infer_shape


class BatchNormGrad(
    GradOpDef,
    of=BatchNorm,
    reads="X Scale Bias Mean? Variance? MeanOut? VarianceOut? SavedMean SavedVariance ReserveSpace Y@GRAD",
    shape_of="Bias MeanOut VarianceOut ReserveSpace",
    grads_of="X? Scale? Bias?",
):
    r"""With xhat the normalised X: Bias@GRAD = sum Y@GRAD, Scale@GRAD = sum xhat Y@GRAD, and

    $$X@GRAD = \frac{Scale}{\sigma} (Y@GRAD - mean(Y@GRAD) - xhat \cdot mean(xhat Y@GRAD))$$, without the means where
    the forward op used Mean and Variance.
    """

    expected_kernel_type = dtype_of("X")
    infer_shape = batch_norm_dims("X")


class BatchNormGradGrad(
    GradOpDef,
    of=BatchNormGrad,
    reads="X Scale Mean Variance SavedMean? SavedVariance? Y@GRAD X@GRAD@GRAD? Scale@GRAD@GRAD? Bias@GRAD@GRAD?",
    grads_of="X? Scale? Y@GRAD?",
    names={"Y@GRAD": "DY"},
    grad_names={
        "Bias@GRAD": "DDBias",
        "Scale@GRAD": "DDScale",
        "X@GRAD": "DDX",
        "Y@GRAD": "DDY",
        "Scale": "DScale",
        "X": "DX",
    },
):
    """Gradient of batch_norm_grad by X, Scale and Y@GRAD."""

    inplace = {"DY": "DDY"}
    expected_kernel_type = dtype_of("X")
    infer_var_type = norm_types({"DScale": "Scale"})

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 2, 3, 4, 5)
        c = dims[-1] if is_channel_last(ctx.attr("data_layout")) else dims[1]
        for slot in ("Scale", *_statistics(ctx)):
            ctx.require_dims(slot, (c,), why=f"the channels of X {list(dims)}")
        ctx.set_dim("DX", dims)
        ctx.set_dim("DScale", (c,))
        ctx.set_dim("DDY", ctx.dim("DY"))


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


# inplace_abn (Paddle 1.x) and its gradient: all of the ops but their kernels.
class InplaceAbn(BatchNorm, type="inplace_abn"):
    r"""$$Y = f(BN(X))$$ batch_norm and an activation f, whose result takes the memory of X

    f(x) is x, x or $$alpha \cdot x$$ below 0 (leaky_relu), or x or $$alpha (e^x - 1)$$ below 0 (elu). The gradient goes
    back from Y, so that X need not be kept (Rota Bulo et al., 2018): Scale may have no zeros, and alpha is positive.
    """

    activation = Attr("identity", "f.").in_set(("identity", "leaky_relu", "elu", ""))
    alpha = Attr(0.1, "What f does below 0.")
    use_sync_bn = Attr(False, "Paddle: statistics of all trainers.")
    inplace = {"X": "Y"}

    def make_grad(fwd: ForwardOp) -> GradOp:
        return batch_norm_gradient("inplace_abn_grad", fwd, source="Y")


class InplaceAbnGrad(
    GradOpDef,
    of=InplaceAbn,
    reads="Scale Bias Mean? Variance? SavedMean SavedVariance ReserveSpace? Y Y@GRAD",
    shape_of="ReserveSpace",
    grads_of="X? Scale? Bias?",
    like={"X": "Y"},
):
    r"""With $$z = f^{-1}(Y), \; \hat{x} = (z - Bias) / Scale$$ and $$g = Y@GRAD \cdot f'(z)$$: the gradient of
    batch_norm for g and x hat"""

    expected_kernel_type = dtype_of("Y")
    infer_shape = batch_norm_dims("Y")


class Lrn(OpDef, type="lrn"):
    r"""$$Out_c = X_c MidOut_c^{-beta}$$ with $$MidOut_c = k + alpha \sum_{|j - c| \le (n - 1) / 2} X_j^2$$

    Local response normalization across channels (Krizhevsky et al., 2012).
    """

    X = Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Out = Output("Shape of X.")
    MidOut = Output("What is raised to -beta, kept for the gradient; shape of X.", stop_gradient=True)
    n = Attr(5, "Channels that are summed around each; an odd number.").check(
        lambda v: v > 0 and v % 2 == 1, "odd and greater than 0"
    )
    k = Attr(2.0, "Added to the sum.").at_least(0.0)
    alpha = Attr(0.0001, "Factor of the sum.").at_least(0.0)
    beta = Attr(0.75, "Exponent.").at_least(0.0)
    data_format = layout_attr("AnyLayout")
    is_test = Attr(False, "Paddle: MidOut is not needed.", extra=True)
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    sbp = leading(("X",), ("Out", "MidOut"))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 4)
        ctx.set_dim("Out", dims)
        ctx.set_dim("MidOut", dims)
        ctx.share_lod("X", "Out")


class LrnGrad(GradOpDef, of=Lrn, reads="X Out MidOut Out@GRAD"):
    r"""$$X@GRAD_c = Out@GRAD_c MidOut_c^{-beta} - 2 \, alpha \, beta X_c \sum_{|j - c| \le (n - 1) / 2}
    \frac{Out@GRAD_j Out_j}{MidOut_j}$$
    """


class SyncBatchNorm(BatchNorm, type="sync_batch_norm"):
    r"""$$Y = Scale \frac{X - \mu}{\sqrt{\sigma^2 + epsilon}} + Bias$$ per channel, over the rows of all ranks

    mu and sigma^2 are those of the rows of all ranks; each rank has rows of its own and gets theirs. All else is as in
    batch_norm.
    """

    ring_id = Attr(0, "The ring of the ranks that have rows; 0 is all ranks.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        return []  # its ranks are those of the ring

    def make_grad(fwd: ForwardOp) -> GradOp:
        return batch_norm_gradient("sync_batch_norm_grad", fwd)


class SyncBatchNormGrad(
    GradOpDef,
    of=SyncBatchNorm,
    reads="X Scale Bias Mean? Variance? MeanOut? VarianceOut? SavedMean SavedVariance ReserveSpace Y@GRAD",
    shape_of="Bias MeanOut VarianceOut ReserveSpace",
    grads_of="X? Scale? Bias?",
):
    r"""Bias@GRAD and Scale@GRAD are this rank's summands, $$\sum Y@GRAD$$ and $$\sum \hat{x} Y@GRAD$$; in X@GRAD

    $$\frac{Scale}{\sigma} (Y@GRAD - mean(Y@GRAD) - \hat{x} \cdot mean(\hat{x} Y@GRAD))$$ the means are over all ranks.
    """

    expected_kernel_type = dtype_of("X")
    infer_shape = batch_norm_dims("X")
