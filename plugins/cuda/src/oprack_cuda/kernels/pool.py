"""pool2d and its gradient in one launch each; the gradient gathers, so it adds in one order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from oprack.device import constant
from oprack.kernel import Array, ArrayModule, KernelContext
from oprack.types import FLOATS, HALF_FLOATS
from oprack_nn.kernels._layout import to_channel_first
from oprack_nn.kernels.pool import pool_geometry, windows_of
from oprack_nn.ops._layout import is_channel_last

from oprack_cuda.kernels._launch import I32, cuda_kernel, dense, launch

REALS = FLOATS | HALF_FLOATS


class _Pooling:
    """Windows and layouts of a call, in the form that the CUDA source expects."""

    def __init__(self, X: Array, attrs: Mapping[str, Any], layout: str, xp: ArrayModule) -> None:
        self.xp, self.layout = xp, layout
        self.memory = dense(xp, X)
        self.x = to_channel_first(self.memory, layout)
        self.geo = pool_geometry(self.x, attrs)
        self.windows = windows_of(self.geo)
        self.attrs = attrs
        n, c, h, w = self.x.shape
        self.dims = self._numbers([n, c, h, w, *self.geo.out])

    def _numbers(self, values: Array | Sequence[int]) -> Array:
        return constant(np.array(values, np.int64), self.xp)

    def bounds(self) -> list[Array]:
        """First row, last + 1 and divisor of each window, then the same of columns."""
        arrays = []
        for w in self.windows:
            start, stop = w.bounds()
            average = self.attrs["pooling_type"] != "max"
            sizes = w.full_counts() if average and not (self.attrs["exclusive"] or w.adaptive) else stop - start
            arrays += [self._numbers(start), self._numbers(stop), constant(sizes.astype(np.float64), self.xp)]
        return arrays

    def members(self) -> list[Array]:
        """First and last + 1 window that an element is in, for each row, then for each column."""
        arrays = []
        for w in self.windows:
            start, stop = w.bounds()
            element = np.arange(w.size)
            first = np.searchsorted(stop, element, side="right")
            arrays.append(self._numbers(np.stack([first, np.searchsorted(start, element, side="right")], axis=1)))
        return arrays

    def like(self, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """An array of the layout, and its view channels first."""
        last = (shape[0], *shape[2:], shape[1])
        made = self.xp.empty(last if is_channel_last(self.layout) else shape, self.x.dtype)
        return made, to_channel_first(made, self.layout)

    def strides(self, *views: Array) -> Array:
        return self._numbers([s // v.itemsize for v in views for s in v.strides])


@cuda_kernel("pool2d", REALS)
def pool(X: Array, *, ksize: list[int], data_format: str, ctx: KernelContext, xp: ArrayModule) -> Array:
    on = _Pooling(X, {**ctx.attrs, "ksize": ksize}, data_format, xp)
    y, view = on.like((*on.x.shape[:2], *on.geo.out))
    is_max = I32(on.attrs["pooling_type"] == "max")
    layout = on.dims, on.strides(on.x, view)
    launch(xp, "pool.cu", "pool", y.dtype, y.size, on.memory, y, *layout, *on.bounds(), is_max)
    return y


@cuda_kernel("pool2d_grad", REALS)
def pool_grad(
    X: Array, Out_grad: Array, *, ksize: list[int], data_format: str, ctx: KernelContext, xp: ArrayModule
) -> Array:
    on = _Pooling(X, {**ctx.attrs, "ksize": ksize}, data_format, xp)
    dy = dense(xp, Out_grad)
    dx, view = on.like(on.x.shape)
    x = on.memory if on.attrs["pooling_type"] == "max" else None
    layout = on.dims, on.strides(view, to_channel_first(dy, data_format))
    launch(xp, "pool.cu", "pool_grad", dx.dtype, dx.size, x, dy, dx, *layout, *on.bounds(), *on.members())
    return dx
