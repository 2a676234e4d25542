"""batch_norm, with the running statistics and with those of the batch, and its gradient.

Numbers of channels that oneDNN has no fast implementation for go to native code (batch_norm.c).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from ctypes import Structure, addressof, c_double, c_int64, c_void_p
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.kernel import Array, KernelContext, RequiredArray

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import channels_last_desc, empty_image, image_desc, is_channels_last
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT, address
from oprack_onednn.kernels.declare import Limits, onednn_kernel

if TYPE_CHECKING:
    from oprack_onednn.dnnl.objects import Memory, PrimitiveDesc


_VECTOR, _PERIOD, _CHANNELS = 16, 128, 256
_SHARED = 1 << 15
"""Elements from which on threads share the work."""
_PERIODS = 256
"""The most that a share has: float32 adds up so many numbers without loss."""
_FEWEST, _SHARES = 64, 16
"""The fewest that one has while there are less than so many shares."""


class _Norm(Structure):
    """The struct of batch_norm.c, field by field."""

    _fields_ = (
        *((name, c_int64) for name in ("count", "channels", "period", "shares", "threads", "phase")),
        *((name, c_void_p) for name in ("x", "dy", "scale", "shift")),
        *((name, c_void_p) for name in ("mean", "variance", "inverse", "y", "dscale", "dshift", "work")),
        ("epsilon", c_double),
    )


def serves_natively(images: Sequence[Array], rows: Sequence[Array]) -> bool:
    """Whether native code takes images [N, C, *spatial] and rows [C] such as these, and is the faster one."""
    x = images[0]
    channels = x.shape[1]
    if not x.size or RUNNER.batch_norm is None or not channels % _VECTOR or channels > _CHANNELS or not THREAD.ready():
        return False
    if not all(a.flags.aligned for a in (*images, *rows)):
        return False
    if any(a.dtype != FLOAT or a.shape != (channels,) or not a.flags.c_contiguous for a in rows):
        return False
    return all(a.dtype == FLOAT and a.shape == x.shape and is_channels_last(a) for a in images)


def _run_native(back: bool, x: Array, dy: Array | None, epsilon: float, **arrays: Array) -> None:
    channels = x.shape[1]
    period = math.lcm(channels, _VECTOR)
    period *= -(-_PERIOD // period)
    periods = -(-x.size // period)
    # whatever the number of threads, so that results do not depend on it
    shares = max(2, min(periods // _FEWEST, _SHARES), -(-periods // _PERIODS))
    threads = THREAD.max_threads if x.size >= _SHARED else 1
    work = np.empty(period * (6 + 2 * shares), FLOAT)
    places = {name: address(a) for name, a in arrays.items()} | {"x": address(x), "work": address(work)}
    if dy is not None:
        places["dy"] = address(dy)
    norm = _Norm(x.size, channels, period, shares, threads, epsilon=epsilon, **places)
    assert RUNNER.batch_norm is not None
    RUNNER.batch_norm(addressof(norm), back)


def native_forward(x: Array, scale: Array, shift: Array, epsilon: float) -> tuple[Array, Array, Array, Array]:
    """(y, mean, variance, 1 / sqrt(variance + epsilon)) of an image that is served."""
    y, found = empty_image(x.shape), np.empty((3, x.shape[1]), FLOAT)
    mean, variance, inverse = found
    rows = {"mean": mean, "variance": variance, "inverse": inverse}
    _run_native(False, x, None, epsilon, scale=scale, shift=shift, y=y, **rows)
    return y, mean, variance, inverse


def native_backward(x: Array, dy: Array, scale: Array, mean: Array, inverse: Array) -> tuple[Array, Array, Array]:
    """Gradients of x, scale and shift."""
    dx, (dscale, dshift) = empty_image(x.shape), np.empty((2, x.shape[1]), FLOAT)
    rows = {"scale": scale, "mean": mean, "inverse": inverse, "dscale": dscale, "dshift": dshift}
    _run_native(True, x, dy, 0.0, y=dx, **rows)
    return dx, dscale, dshift


def forward(image: MemoryDesc, epsilon: float, fixed: bool) -> PrimitiveDesc:
    """The primitive descriptor; fixed: mean and variance are given."""
    kind = _c.FORWARD_INFERENCE if fixed else _c.FORWARD_TRAINING
    flags = _c.USE_SCALE | _c.USE_SHIFT | (_c.USE_GLOBAL_STATS if fixed else 0)
    arguments = (LIBRARY.engine, kind, image, image, epsilon, flags, Attributes())
    return primitive_desc("batch_normalization_forward", *arguments)


def build(x: Array, epsilon: float, fixed: bool) -> PrimitiveChain:
    """Chain for [N, C, *spatial]: x, mean, variance, scale, shift, y; not fixed, mean and variance are results."""
    if 0 in x.shape:
        raise NotServedError("an empty tensor")
    image = channels_last_desc(x.shape)
    desc = forward(image, epsilon, fixed)
    chain = PrimitiveChain()
    given = chain.input(image_desc(x))
    row = MemoryDesc.strided((x.shape[1],))
    arguments = {a: chain.input(row) for a in (_c.MEAN, _c.VARIANCE, _c.SCALE, _c.SHIFT)}
    inner = given if given.desc == image else chain.reorder(given, image)
    chain.add(desc, {_c.SRC: inner, _c.DST: chain.output(image), **arguments})
    return chain


def build_grad(x: Array, dy: Array, epsilon: float) -> PrimitiveChain:
    """Chain: x, dy, mean, variance, scale, dx, dscale, dshift."""
    if 0 in x.shape or x.shape != dy.shape:
        raise NotServedError("an empty tensor, or a gradient of another shape")
    image, row = channels_last_desc(x.shape), MemoryDesc.strided((x.shape[1],))
    flags, hint = _c.USE_SCALE | _c.USE_SHIFT, forward(image, epsilon, False)
    arguments = (LIBRARY.engine, _c.BACKWARD, image, image, image, epsilon, flags, hint, Attributes())
    desc = primitive_desc("batch_normalization_backward", *arguments)
    chain = PrimitiveChain()
    given = [chain.input(image_desc(a)) for a in (x, dy)]
    memory: dict[int, Memory] = {a: chain.input(row) for a in (_c.MEAN, _c.VARIANCE, _c.SCALE)}
    memory[_c.DIFF_SRC] = chain.output(image)
    memory |= {a: chain.output(row) for a in (_c.DIFF_SCALE, _c.DIFF_SHIFT)}
    for argument, a in zip((_c.SRC, _c.DIFF_DST), given, strict=True):
        memory[argument] = a if a.desc == image else chain.reorder(a, image)
    chain.add(desc, memory)
    return chain


def _image(a: Array, layout: str) -> Array:
    return a.transpose(0, 3, 1, 2) if layout == "NHWC" else a


def _unimage(a: Array, layout: str) -> Array:
    return a.transpose(0, 2, 3, 1) if layout == "NHWC" else a


def _rows(*arrays: Array | None) -> bool:
    """Whether all are row-major arrays of one dim."""
    return all(a is not None and a.ndim == 1 and a.flags.c_contiguous for a in arrays)


def _fixed(attrs: Mapping[str, Any]) -> bool:
    return attrs["use_global_stats"] or (attrs["is_test"] and not attrs["trainable_statistics"])


@onednn_kernel("batch_norm")
def batch_norm(
    X: Array,
    Scale: RequiredArray = None,
    Bias: RequiredArray = None,
    Mean: RequiredArray = None,
    Variance: RequiredArray = None,
    MomentumTensor: Array | None = None,
    *,
    momentum: float,
    epsilon: float,
    data_layout: str,
    ctx: KernelContext,
) -> tuple[Array, ...]:
    fixed = _fixed(ctx.attrs)
    if X.ndim != 4 or X.size < Limits.eltwise or not _rows(Mean, Variance, Scale, Bias):
        return NotImplemented
    if not fixed and (MomentumTensor is not None or X.size == Mean.size):
        return NotImplemented
    x = _image(X, data_layout)
    if not fixed and serves_natively((x,), (Scale, Bias)):
        y, mean, variance, inverse_std = native_forward(x, Scale, Bias, epsilon)
        return _statistics(_unimage(y, data_layout), Mean, Variance, mean, variance, inverse_std, momentum)
    chain = THREAD.primitive(("batch_norm", x.shape, x.strides, epsilon, fixed), build, x, epsilon, fixed)
    if chain is None:
        return NotImplemented
    y, kind = empty_image(x.shape), X.dtype.type
    mean, variance = (Mean, Variance) if fixed else (np.empty(x.shape[1], FLOAT) for _ in range(2))
    chain.run(x, mean, variance, Scale, Bias, y)
    inverse_std = 1 / np.sqrt(variance + kind(epsilon))
    y = _unimage(y, data_layout)
    if fixed:
        return y, Mean.copy(), Variance.copy(), Mean.copy(), inverse_std
    return _statistics(y, Mean, Variance, mean, variance, inverse_std, momentum)


def _statistics(
    y: Array, before: Array, spread: Array, mean: Array, variance: Array, inverse_std: Array, momentum: float
) -> tuple[Array, ...]:
    """The results, with the running statistics `before` and `spread` moved towards those of the batch."""
    kind = y.dtype.type
    keep, new = kind(momentum), kind(1) - kind(momentum)
    return y, before * keep + mean * new, spread * keep + variance * new, mean, inverse_std


@onednn_kernel("batch_norm_grad")
def batch_norm_grad(
    X: Array,
    Scale: RequiredArray = None,
    Mean: RequiredArray = None,
    Variance: RequiredArray = None,
    SavedMean: RequiredArray = None,
    SavedVariance: RequiredArray = None,
    Y_grad: RequiredArray = None,
    *,
    epsilon: float,
    data_layout: str,
    ctx: KernelContext,
) -> dict[str, Array]:
    if _fixed(ctx.attrs) or X.ndim != 4 or X.size < Limits.eltwise or Y_grad.shape != X.shape:
        return NotImplemented
    if not _rows(Scale, SavedMean, SavedVariance):
        return NotImplemented
    x, dy = _image(X, data_layout), _image(Y_grad, data_layout)
    if X.size != SavedMean.size and serves_natively((x, dy), (Scale, SavedMean, SavedVariance)):
        dx, dscale, dshift = native_backward(x, dy, Scale, SavedMean, SavedVariance)
        return {"X_grad": _unimage(dx, data_layout), "Scale_grad": dscale, "Bias_grad": dshift}
    key = ("batch_norm_grad", x.shape, x.strides, dy.shape, dy.strides, epsilon)
    chain = None if X.size == SavedMean.size else THREAD.primitive(key, build_grad, x, dy, epsilon)
    if chain is None:
        return NotImplemented
    # the forward op saves 1 / sqrt(variance + epsilon)
    variance = 1 / (SavedVariance * SavedVariance) - X.dtype.type(epsilon)
    dx, dscale, dshift = empty_image(x.shape), *(np.empty(x.shape[1], FLOAT) for _ in range(2))
    chain.run(x, dy, SavedMean, variance, Scale, dx, dscale, dshift)
    return {"X_grad": _unimage(dx, data_layout), "Scale_grad": dscale, "Bias_grad": dshift}
