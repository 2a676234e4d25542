"""Kernels of sync_batch_norm and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray, kernel
from oprack.parallel.rings import ring
from oprack.types import FLOATS

from oprack_nn.kernels.batch_norm import _channels, _global_stats, batch_norm, batch_norm_grad
from oprack_nn.kernels.norm import inverse_std, scale_shift


def _sums_over_ranks(parts: list[Array], ring_id: int, xp: ArrayModule) -> list[Array]:
    """[C] arrays and counts, added over the ranks of a ring in one message."""
    flat = [xp.asarray(p).reshape(-1) for p in parts]
    total = ring(ring_id).all_reduce(xp.concatenate(flat))
    found, start = [], 0
    for part in flat:
        found.append(total[start : start + part.size])
        start += part.size
    return found


@kernel("sync_batch_norm", place=("cpu",), dtypes=FLOATS)
def sync_batch_norm(
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
    ring_id: int,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    alone = ring(ring_id).size == 1
    if alone or _global_stats(is_test, trainable_statistics, use_global_stats):
        return batch_norm(
            *(X, Scale, Bias, Mean, Variance, MomentumTensor),
            is_test=is_test,
            momentum=momentum,
            epsilon=epsilon,
            data_layout=data_layout,
            use_global_stats=use_global_stats,
            trainable_statistics=trainable_statistics,
            xp=xp,
        )
    axes, shape = _channels(X, data_layout)
    count = xp.full(1, X.size / max(*shape, 1), X.dtype)
    total, number = _sums_over_ranks([X.sum(axis=axes), count], ring_id, xp)
    mean = total / number
    centred = X - mean.reshape(shape)
    (squares,) = _sums_over_ranks([(centred * centred).sum(axis=axes)], ring_id, xp)
    variance = squares / number
    keep = X.dtype.type(momentum) if MomentumTensor is None else MomentumTensor.reshape(()).astype(X.dtype)
    inv_std = inverse_std(variance, epsilon, xp)
    scale = None if Scale is None else Scale.reshape(shape)
    bias = None if Bias is None else Bias.reshape(shape)
    y = scale_shift(X, mean.reshape(shape), inv_std.reshape(shape), scale, bias)
    return y, Mean * keep + mean * (1 - keep), Variance * keep + variance * (1 - keep), mean, inv_std


@kernel("sync_batch_norm_grad", place=("cpu",), dtypes=FLOATS)
def sync_batch_norm_grad(
    X: Array,
    Scale: Array | None = None,
    Mean: RequiredArray = None,
    Variance: RequiredArray = None,
    SavedMean: RequiredArray = None,
    SavedVariance: RequiredArray = None,
    Y_grad: RequiredArray = None,
    *,
    data_layout: str,
    is_test: bool,
    use_global_stats: bool,
    trainable_statistics: bool,
    ring_id: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    alone = ring(ring_id).size == 1
    if alone or _global_stats(is_test, trainable_statistics, use_global_stats):
        return batch_norm_grad(
            *(X, Scale, Mean, Variance, SavedMean, SavedVariance, Y_grad), data_layout=data_layout, ctx=ctx, xp=xp
        )
    axes, shape = _channels(X, data_layout)
    inv_std = SavedVariance.reshape(shape)
    xhat = (X - SavedMean.reshape(shape)) * inv_std
    grads = {}
    if ctx.wants("Scale@GRAD"):
        grads["Scale_grad"] = (Y_grad * xhat).sum(axis=axes)
    if ctx.wants("Bias@GRAD"):
        grads["Bias_grad"] = Y_grad.sum(axis=axes)
    if ctx.wants("X@GRAD"):
        g = Y_grad if Scale is None else Y_grad * Scale.reshape(shape)
        count = xp.full(1, X.size / max(*shape, 1), X.dtype)
        parts = [g.sum(axis=axes), (g * xhat).sum(axis=axes), count]
        first, second, number = _sums_over_ranks(parts, ring_id, xp)
        grads["X_grad"] = inv_std * (g - (first / number).reshape(shape) - xhat * (second / number).reshape(shape))
    return grads
