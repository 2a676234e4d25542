"""What both batch norms share."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType, VarType


class Norm(OpDef):
    """Normalises the values over all listed points."""

    x = Input("Sparse tensor in COO [N, ..., C], of which the channels C alone are dense.")
    mean = Input("[C], running mean.")
    variance = Input("[C], running variance.")
    scale = Input("[C].")
    bias = Input("[C].")
    out = Output("Sparse tensor with x's pattern.")
    mean_out = Output("[C], new running mean; usually the variable of mean.", stop_gradient=True)
    variance_out = Output("[C], new running variance; usually the variable of variance.", stop_gradient=True)
    saved_mean = Output("[C], the mean of the listed points.", stop_gradient=True)
    saved_variance = Output("[C], 1 / sqrt(variance + epsilon) of the listed points.", stop_gradient=True)
    reserve_space = Output("Paddle: scratch of cuDNN; empty here.", stop_gradient=True)
    is_test = Attr(REQUIRED, "Normalise by mean and variance and leave them as they are.", type=AttrType.BOOLEAN)
    momentum = Attr(REQUIRED, "Weight of the old running statistics.", type=AttrType.FLOAT)
    epsilon = Attr(REQUIRED, "Added to the variance.", type=AttrType.FLOAT)
    data_layout = Attr(REQUIRED, "Where the channels are; those of a sparse tensor are last.", type=AttrType.STRING)
    use_global_stats = Attr(REQUIRED, "Normalise by mean and variance in training, too.", type=AttrType.BOOLEAN)
    trainable_statistics = Attr(REQUIRED, "Use the points' statistics even with is_test.", type=AttrType.BOOLEAN)
    expected_kernel_type = dtype_of("x")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("x")
        if not dims and not ctx.is_runtime:
            return
        for slot in ("mean", "variance", "scale", "bias"):
            ctx.require_dims(slot, dims[-1:], why=f"the channels of x {list(dims)}")
        ctx.set_dim("out", dims)
        for slot in ("mean_out", "variance_out", "saved_mean", "saved_variance"):
            ctx.set_dim(slot, dims[-1:])
        ctx.set_dim("reserve_space", (0,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", ctx.kind("x"))
        ctx.set_dtype("out", ctx.dtype("x"))
        of = {"mean_out": "mean", "variance_out": "variance", "saved_mean": "x", "saved_variance": "x"}
        for slot, source in (of | {"reserve_space": "x"}).items():
            ctx.set_kind(slot, VarType.LOD_TENSOR)
            ctx.set_dtype(slot, ctx.dtype(source))


class NormGrad(
    GradOpDef,
    reads="x scale bias mean_out variance_out saved_mean saved_variance out@GRAD",
    shape_of="bias",
    grads_of="x scale bias",
):
    """Gradient of a Norm."""

    expected_kernel_type = dtype_of("x")
