"""batch_norm in one launch for the statistics and one for the rest; float16 and bfloat16 with statistics in float32."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray
from oprack.types import FLOATS, HALF_FLOATS
from oprack_nn.kernels import batch_norm as plain
from oprack_nn.ops._layout import is_channel_last

from oprack_cuda.kernels._launch import I32, I64, cuda_kernel, dense, launch, launch_rows, sums_dtype

REALS = FLOATS | HALF_FLOATS


class _Channels:
    """An array and how its channels lie."""

    def __init__(self, x: Array, layout: str, xp: ArrayModule) -> None:
        self.xp, self.x = xp, dense(xp, x)
        self.last = is_channel_last(layout)
        self.channels = x.shape[-1 if self.last else 1]
        self.images = x.shape[0]
        self.inner = x.size // max(self.images * self.channels, 1)
        self.sums = sums_dtype(x.dtype)
        self.dims = I64(self.channels), I64(self.inner), I32(self.last)

    def state(self, array: Array) -> Array:
        return dense(self.xp, array, self.sums)

    def empty(self) -> Array:
        return self.xp.empty(self.channels, self.sums)

    def reduce(self, name: str, *arguments: Array | None) -> None:
        """One block per channel."""
        width = self.images * self.inner
        given = I64(self.images), *self.dims
        launch_rows(self.xp, "channels.cu", name, self.x.dtype, self.channels, width, *arguments, *given)

    def map(self, name: str, *arguments: Array | None) -> None:
        """One pass over the elements."""
        launch(self.xp, "channels.cu", name, self.x.dtype, self.x.size, *arguments, I64(self.x.size), *self.dims)

    def affine(self, factor: Array, shift: Array) -> Array:
        y = self.xp.empty(self.x.shape, self.x.dtype)
        self.map("channel_affine", self.x, dense(self.xp, factor), dense(self.xp, shift), y)
        return y


def _normalised(on: _Channels, mean: Array, inverse: Array, Scale: Array | None, Bias: Array | None) -> Array:
    factor = inverse if Scale is None else inverse * on.state(Scale)
    shift = -mean * factor if Bias is None else on.state(Bias) - mean * factor
    return on.affine(factor, shift)


@cuda_kernel("batch_norm", REALS)
def batch_norm(
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
    xp: ArrayModule,
) -> tuple[Array, ...]:
    on = _Channels(X, data_layout, xp)
    running, spread = on.state(Mean), on.state(Variance)
    if plain._global_stats(is_test, trainable_statistics, use_global_stats):
        inverse = 1 / xp.sqrt(spread + on.sums.type(epsilon))
        y = _normalised(on, running, inverse, Scale, Bias)
        return y, Mean.copy(), Variance.copy(), running.copy(), inverse
    if X.size == on.channels:
        # Paddle: a single element per channel is passed on, and the running statistics stay
        return X.copy(), Mean.copy(), Variance.copy(), xp.zeros_like(running), xp.zeros_like(spread)
    mean, variance = xp.zeros(on.channels, on.sums), xp.zeros(on.channels, on.sums)
    on.reduce("channel_moments", on.x, mean, variance)
    keep = on.sums.type(momentum) if MomentumTensor is None else MomentumTensor.reshape(()).astype(on.sums)
    inverse = 1 / xp.sqrt(variance + on.sums.type(epsilon))
    y = _normalised(on, mean, inverse, Scale, Bias)
    return y, running * keep + mean * (1 - keep), spread * keep + variance * (1 - keep), mean, inverse


@cuda_kernel("batch_norm_grad", REALS)
def batch_norm_grad(
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
    epsilon: float,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    on, dy = _Channels(X, data_layout, xp), dense(xp, Y_grad)
    scale, batch = dense(xp, Scale, on.sums), not plain._global_stats(is_test, trainable_statistics, use_global_stats)
    if batch and X.size == on.channels:
        zeros = xp.zeros(on.channels, on.sums)
        return {"X_grad": Y_grad.copy(), "Scale_grad": zeros, "Bias_grad": zeros.copy()}
    if batch:
        mean, inverse = on.state(SavedMean), on.state(SavedVariance)
    else:
        mean, inverse = on.state(Mean), 1 / xp.sqrt(on.state(Variance) + on.sums.type(epsilon))
    sums, crossed = xp.zeros(on.channels, on.sums), xp.zeros(on.channels, on.sums)
    on.reduce("channel_grad_sums", on.x, dy, mean, inverse, sums, crossed)
    grads = {"Scale_grad": crossed, "Bias_grad": sums}
    if ctx.wants("X@GRAD") and batch:
        dx = grads["X_grad"] = xp.empty(on.x.shape, on.x.dtype)
        on.map("channel_grad", on.x, dy, mean, inverse, scale, sums, crossed, dx)
    elif ctx.wants("X@GRAD"):
        factor = inverse if scale is None else inverse * scale
        grads["X_grad"] = _Channels(dy, data_layout, xp).affine(factor, xp.zeros(on.channels, on.sums))
    return grads
