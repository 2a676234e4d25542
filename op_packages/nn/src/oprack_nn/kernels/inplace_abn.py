"""Kernels of inplace_abn and of its gradient: those of batch_norm around an activation."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray, kernel
from oprack.types import FLOATS

from oprack_nn.kernels.batch_norm import batch_norm, batch_norm_grad
from oprack_nn.ops._layout import is_channel_last

_PLACES = ("cpu", "cuda")


@kernel("inplace_abn", place=_PLACES, dtypes=FLOATS)
def inplace_abn(
    X: Array,
    Scale: Array | None = None,
    Bias: Array | None = None,
    Mean: RequiredArray = None,
    Variance: RequiredArray = None,
    MomentumTensor: Array | None = None,
    *,
    is_test: bool,
    momentum: float,
    epsilon: float,
    data_layout: str,
    use_global_stats: bool,
    trainable_statistics: bool,
    activation: str,
    alpha: float,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    """batch_norm, then the activation."""
    z, *statistics = batch_norm(
        X,
        Scale,
        Bias,
        Mean,
        Variance,
        MomentumTensor,
        is_test=is_test,
        momentum=momentum,
        epsilon=epsilon,
        data_layout=data_layout,
        use_global_stats=use_global_stats,
        trainable_statistics=trainable_statistics,
        xp=xp,
    )
    if activation == "leaky_relu":
        z = xp.where(z < 0, z * z.dtype.type(alpha), z)
    elif activation == "elu":
        z = xp.where(z < 0, z.dtype.type(alpha) * xp.expm1(xp.minimum(z, 0)), z)
    return z, *statistics


@kernel("inplace_abn_grad", place=_PLACES, dtypes=FLOATS)
def inplace_abn_grad(
    Y: Array,
    Y_grad: Array,
    Scale: Array | None = None,
    Bias: Array | None = None,
    Mean: RequiredArray = None,
    Variance: RequiredArray = None,
    SavedMean: RequiredArray = None,
    SavedVariance: RequiredArray = None,
    *,
    data_layout: str,
    is_test: bool,
    trainable_statistics: bool,
    use_global_stats: bool,
    epsilon: float,
    activation: str,
    alpha: float,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    """X as it was before, from Y, and its gradient."""
    z, g, slope = Y, Y_grad, Y.dtype.type(alpha)
    if activation == "leaky_relu":
        z, g = xp.where(Y < 0, Y / slope, Y), xp.where(Y < 0, g * slope, g)
    elif activation == "elu":
        z, g = xp.where(Y < 0, xp.log1p(xp.minimum(Y, 0) / slope), Y), xp.where(Y < 0, g * (Y + slope), g)
    channel = z.ndim - 1 if is_channel_last(data_layout) else 1
    shape = [-1 if i == channel else 1 for i in range(z.ndim)]
    fixed = use_global_stats or (is_test and not trainable_statistics)
    mean = Mean if fixed else SavedMean
    std = xp.sqrt(Variance + Variance.dtype.type(epsilon)) if fixed else 1 / SavedVariance
    xhat = z if Bias is None else z - Bias.reshape(shape)
    xhat = xhat if Scale is None else xhat / Scale.reshape(shape)
    x = xhat * std.reshape(shape) + mean.reshape(shape)
    return batch_norm_grad(
        x, Scale, Mean, Variance, SavedMean, SavedVariance, g, data_layout=data_layout, ctx=ctx, xp=xp
    )
