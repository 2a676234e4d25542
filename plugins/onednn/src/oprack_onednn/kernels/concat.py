"""concat: one copy per input into a slice of the result; of images in channels-last memory, and within a stretch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from oprack.kernel import Array, KernelContext, KernelSpecialization, decline

from oprack_onednn.chain.memory import Outlet, image_desc, is_channels_last, last_strides
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.layout import contiguous_strides
from oprack_onednn.dnnl.objects import MemoryDesc
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.stretch.callsite import RowMajorPrimitive, ShapedPrimitive, attempt, call_site
from oprack_onednn.stretch.stretch import joins


class ConcatPrimitive(RowMajorPrimitive):
    """Inputs of some shapes and strides along one axis; the result is in channels-last memory, or row-major."""

    def __init__(self, inputs: Sequence[Array], axis: int, images: bool) -> None:
        first = inputs[0]
        total = sum(x.shape[axis] for x in inputs)
        self.shape, self.weights, self._images = (*first.shape[:axis], total, *first.shape[axis + 1 :]), {}, images
        strides = last_strides(self.shape) if images else contiguous_strides(self.shape)
        chain = self.chain = PrimitiveChain()
        sources = [chain.input(image_desc(x) if images else MemoryDesc.of(x)) for x in inputs]
        result = chain.output(MemoryDesc.strided(self.shape, strides))
        start = 0
        for x, source in zip(inputs, sources, strict=True):
            chain.reorder(source, chain.alias(result, MemoryDesc.strided(x.shape, strides), 4 * start * strides[axis]))
            start += x.shape[axis]

    def outlet(self) -> Outlet:
        return ShapedPrimitive.outlet(self) if self._images else super().outlet()


def _serves(images: Sequence[np.ndarray], axis: int) -> bool:
    """Whether these are images that fit together, and one or all of them channels-last.

    NumPy's result would not be, and the convolutions that read it are.
    """
    if len(images) == 1 or not -4 <= axis < 4 or any(x.ndim != 4 or not x.size for x in images):
        return False
    if not (
        any(is_channels_last(x) and not x.flags.c_contiguous for x in images) or all(map(is_channels_last, images))
    ):
        return False
    axis %= 4
    return len({x.shape[:axis] + x.shape[axis + 1 :] for x in images}) == 1


def _find(axis: int, images: Sequence[np.ndarray]) -> ConcatPrimitive | None:
    """The primitive for these images; None when there is none."""
    if not _serves(images, axis):
        return None
    return _made(axis % 4, images, True)


def _made(axis: int, arrays: Sequence[np.ndarray], images: bool) -> ConcatPrimitive | None:
    key = ("concat", axis, images, *((x.shape, x.strides) for x in arrays))
    found: ConcatPrimitive | None = THREAD.primitive(key, ConcatPrimitive, arrays, axis, images)
    return found


def _find_rows(axis: int, arrays: Sequence[np.ndarray]) -> ConcatPrimitive | None:
    """The primitive for row-major arrays of any rank, which NumPy is faster for unless it would end a stretch."""
    rank = arrays[0].ndim
    if not -rank <= axis < rank or any(x.ndim != rank or not x.size or not x.flags.c_contiguous for x in arrays):
        return None
    axis %= rank
    fits = len({x.shape[:axis] + x.shape[axis + 1 :] for x in arrays}) == 1
    return _made(axis, arrays, False) if fits else None


def _specialize(call: KernelSpecialization) -> Callable[..., Any] | None:
    axis, count = call.attrs["axis"], len(call.dtypes.get("X", ()))
    # on axis 0 sequences are joined as well
    if call.has_input("AxisTensor") or (axis in (0, -4) and call.has_lod) or count < 2:
        return None
    site = call_site(lambda *arrays: _find(axis, arrays) or _find_rows(axis, arrays), range(count))

    def concat(X: Sequence[np.ndarray]) -> Any:
        return site(*X) if _serves(X, axis) else decline("NumPy is as fast for what are no images")

    def prepare(*arrays: np.ndarray) -> Any:
        return site.joinable.prepare(*arrays) if _serves(arrays, axis) else None

    return joins(concat, replace(site.joinable, arrange=tuple, is_exact=True, prepare=prepare))


@onednn_kernel("concat", specialize=_specialize)
def concat(X: list[Array], AxisTensor: Array | None = None, *, axis: int, ctx: KernelContext) -> Array:
    if AxisTensor is not None or (axis in (0, -4) and ctx.lod("X")):
        return NotImplemented
    return attempt(lambda *images: _find(axis, images), *X)
