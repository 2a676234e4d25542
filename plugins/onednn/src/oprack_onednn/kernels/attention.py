"""onednn_attention: two products with a softmax in between, over heads that stay where they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.kernel import Array, KernelSpecialization, kernel
from oprack.types import FLOATS

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError, element_strides
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.stretch.callsite import RowMajorPrimitive, call_site

if TYPE_CHECKING:
    from oprack_onednn.dnnl.objects import PrimitiveDesc

# Bytes of scores that are computed at a time, and parts of a batch at most.
_SCORES, _PARTS = 1 << 21, 32


def _by_heads(array: Array, heads: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(shape [B, heads, T, D], its strides) of [B, T, heads * D]: nothing moves, strides alone say where heads are."""
    batch, length, width = array.shape
    s, t, one = element_strides(array)
    if one != 1:
        raise NotServedError("the elements of a head are apart")
    return (batch, heads, length, width // heads), (s, width // heads, t, 1)


def _part_of(batch: int, nbytes: int) -> int:
    """How many of a batch to take at a time, when the scores of one have so many bytes."""
    parts = [n for n in range(1, batch + 1) if batch % n == 0 and batch // n <= _PARTS]
    return max([n for n in parts if n * nbytes <= _SCORES], default=parts[0])


def _transposed(part: int, shape: Sequence[int], strides: Sequence[int]) -> MemoryDesc:
    """Keys of a part of the batch [part, heads, D, T], without a copy."""
    swap = (0, 1, 3, 2)
    return MemoryDesc.strided((part, *[shape[i] for i in swap[1:]]), [strides[i] for i in swap])


class AttentionPrimitive(RowMajorPrimitive):
    """Scores stay in scratch memory; the context is written head beside head, as the next product wants it.

    A batch is walked in parts whose scores stay in the caches.
    """

    def __init__(self, q: Array, k: Array, v: Array, mask: tuple[int, ...] | None, heads: int, alpha: float) -> None:
        self.weights = {}
        arrays = [_by_heads(a, heads) for a in (q, k, v)]
        batch, rows, columns, width = q.shape[0], q.shape[1], v.shape[1], v.shape[2] // heads
        self.shape = (batch, rows, heads * width)
        step = heads * width
        arrays.append(((batch, heads, rows, width), (rows * step, width, step, 1)))
        part = _part_of(batch, FLOAT.itemsize * heads * rows * columns)
        chain = self.chain = PrimitiveChain()
        wholes = [MemoryDesc.strided(*a) for a in arrays]
        query, keys, values, context = (MemoryDesc.strided((part, *shape[1:]), strides) for shape, strides in arrays)
        keys = _transposed(part, *arrays[1])
        scores = MemoryDesc.strided((part, heads, rows, columns))
        flat = MemoryDesc.strided((part * heads * rows, columns))
        descs, jumps, masks = [query, keys, values, context], [strides[0] for _, strides in arrays], None
        if mask is not None:
            masks = MemoryDesc.strided((min(mask[0], part), *mask[1:]))
            wholes.insert(3, MemoryDesc.strided(mask))
            descs.insert(3, masks)
            jumps.insert(3, math.prod(mask[1:]) if mask[0] > 1 else 0)
        first, separate = self._scores(query, keys, scores, masks, alpha)
        engine, plain = LIBRARY.engine, Attributes()
        softmax = primitive_desc(
            "softmax_forward", engine, _c.FORWARD_INFERENCE, _c.SOFTMAX_ACCURATE, flat, flat, 1, plain
        )
        second = primitive_desc("matmul", engine, scores, values, None, context, plain)
        memory = [chain.input(desc) for desc in wholes]
        between = chain.temporary(scores)
        seen_flat = chain.alias(between, flat)
        # the mask comes before the context, and follows the scale among the post-ops
        slot = _c.POST_OP * (2 if alpha != 1 else 1) | _c.SRC_1
        for i in range(0, batch, part):
            places = zip(memory, descs, jumps, strict=True)
            q_, k_, v_, *m_, out = (chain.alias(m, d, FLOAT.itemsize * i * jump) for m, d, jump in places)
            added = {slot: m_[0]} if m_ and separate is None else {}
            chain.add(first, {_c.SRC: q_, _c.WEIGHTS: k_, _c.DST: between, **added})
            if separate is not None:
                chain.add(separate, {_c.SRC: between, _c.SRC_1: m_[0], _c.DST: between})
            chain.add(softmax, {_c.SRC: seen_flat, _c.DST: seen_flat})
            chain.add(second, {_c.SRC: between, _c.WEIGHTS: v_, _c.DST: out})

    @staticmethod
    def _scores(
        query: MemoryDesc, keys: MemoryDesc, scores: MemoryDesc, added: MemoryDesc | None, alpha: float
    ) -> tuple[PrimitiveDesc, PrimitiveDesc | None]:
        """(product with the mask in it, None); (product, addition of the mask) where that is slow."""
        engine = LIBRARY.engine
        scaled = [("eltwise", _c.ELTWISE["linear"], alpha, 0.0)] if alpha != 1 else []
        if added is not None:
            try:
                whole = Attributes([*scaled, ("binary", _c.BINARY_ADD, added)])
                return primitive_desc("matmul", engine, query, keys, None, scores, whole), None
            # Some shapes have the addition in no fast implementation; it is then a primitive of its own.
            except NotServedError:
                pass
        product = primitive_desc("matmul", engine, query, keys, None, scores, Attributes(scaled))
        if added is None:
            return product, None
        return product, primitive_desc("binary", engine, _c.BINARY_ADD, scores, added, scores, Attributes())


def _find(q: Array, k: Array, v: Array, mask: Array | None, heads: int, alpha: float) -> AttentionPrimitive | None:
    if len({a.shape[0] for a in (q, k, v)}) > 1 or k.shape[1:2] != v.shape[1:2]:
        return None
    if not (q.size and k.size and v.size) or not (mask is None or mask.flags.c_contiguous):
        return None
    added = None if mask is None else (1,) * (4 - mask.ndim) + mask.shape
    if added is not None and added[0] not in (1, q.shape[0]):
        return None
    key = ("attention", q.shape, q.strides, k.shape, k.strides, v.shape, v.strides, added, heads, alpha)
    return THREAD.primitive(key, AttentionPrimitive, q, k, v, added, heads, alpha)


def _specialize(call: KernelSpecialization) -> Callable[..., Any]:
    heads, alpha = call.attrs["heads"], call.attrs["alpha"]

    def find(q: Array, k: Array, v: Array, mask: Array | None = None) -> AttentionPrimitive | None:
        return _find(q, k, v, mask, heads, alpha)

    return call_site(find, (0, 1, 2, 3) if call.has_input("Mask") else (0, 1, 2))


@onednn_kernel("onednn_attention", specialize=_specialize)
def onednn_attention(Q: Array, K: Array, V: Array, Mask: Array | None = None, *, heads: int, alpha: float) -> Array:
    found = _find(Q, K, V, Mask, heads, alpha)
    return NotImplemented if found is None else found.run(Q, K, V, Mask)


@kernel("onednn_attention", place="cpu", dtypes=FLOATS)
def attention(Q: Array, K: Array, V: Array, Mask: Array | None = None, *, heads: int, alpha: float) -> Array:
    q, k, v = (a.reshape(*a.shape[:2], heads, a.shape[2] // heads).swapaxes(1, 2) for a in (Q, K, V))
    scores = np.matmul(q, k.swapaxes(-1, -2))
    scores *= scores.dtype.type(alpha)
    if Mask is not None:
        scores += Mask
    if not scores.size:
        return np.zeros((*Q.shape[:2], V.shape[2]), Q.dtype)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return np.ascontiguousarray(np.matmul(scores, v).swapaxes(1, 2)).reshape(*Q.shape[:2], V.shape[2])
