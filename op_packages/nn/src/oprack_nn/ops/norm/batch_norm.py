"""batch_norm and its gradients: all of the ops but their kernels."""

from __future__ import annotations

from collections.abc import Callable

from oprack import op
from oprack.op import Attr, ForwardOp, GradOp, GradOpDef, InferShapeContext, OpDef, dtype_of
from oprack.op.sbp import SbpContext, Signature, split

from oprack_nn.ops._layout import is_channel_last, layout_attr
from oprack_nn.ops.norm._family import norm_types


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
        running = ctx.attr("is_test") and not ctx.attr("trainable_statistics")
        fixed = running or ctx.attr("use_global_stats")
        for slot in ("Scale", *(("Mean", "Variance") if fixed else ("SavedMean", "SavedVariance"))):
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
        dims = ctx.dim("X")
        ctx.set_dim("DX", dims)
        ctx.set_dim("DScale", (dims[-1] if is_channel_last(ctx.attr("data_layout")) else dims[1],))
        ctx.set_dim("DDY", ctx.dim("DY"))
