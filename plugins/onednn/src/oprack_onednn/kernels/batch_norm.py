"""batch_norm, with the running statistics and with those of the batch, and its gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.kernel import Array, KernelContext

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import channels_last_desc, empty_image, image_desc
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.native import Attributes, MemoryDesc, NotServedError
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels import _batch_norm
from oprack_onednn.kernels.declare import Limits, onednn_kernel

if TYPE_CHECKING:
    from oprack_onednn.dnnl.native import PrimitiveDesc


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
    memory = {a: chain.input(row) for a in (_c.MEAN, _c.VARIANCE, _c.SCALE)}
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
    Scale: Array | None = None,
    Bias: Array | None = None,
    Mean: Array | None = None,
    Variance: Array | None = None,
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
    if not fixed and _batch_norm.serves((x,), (Scale, Bias)):
        y, mean, variance, inverse_std = _batch_norm.forward(x, Scale, Bias, epsilon)
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
    Scale: Array | None = None,
    Mean: Array | None = None,
    Variance: Array | None = None,
    SavedMean: Array | None = None,
    SavedVariance: Array | None = None,
    Y_grad: Array | None = None,
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
    if X.size != SavedMean.size and _batch_norm.serves((x, dy), (Scale, SavedMean, SavedVariance)):
        dx, dscale, dshift = _batch_norm.backward(x, dy, Scale, SavedMean, SavedVariance)
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
