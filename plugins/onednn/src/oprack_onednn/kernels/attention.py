"""onednn_attention: two products with a softmax in between, over heads that stay where they are."""

from __future__ import annotations

import numpy as np
from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_onednn import _c
from oprack_onednn.callsite import call_site
from oprack_onednn.kernels._rows import RowMajorPlan
from oprack_onednn.library import LIBRARY
from oprack_onednn.native import Attributes, MemoryDesc, NotServedError, PrimitiveDesc, element_strides
from oprack_onednn.plan import THREAD, Plan
from oprack_onednn.served import served


def _by_heads(array, heads):
    """(shape [B, heads, T, D], its strides) of [B, T, heads * D]: nothing moves, strides alone say where heads are."""
    batch, length, width = array.shape
    s, t, one = element_strides(array)
    if one != 1:
        raise NotServedError("the elements of a head are apart")
    return (batch, heads, length, width // heads), (s, width // heads, t, 1)


class AttentionPlan(RowMajorPlan):
    """Scores stay in scratch memory; the context is written head beside head, as the next product wants it."""

    def __init__(self, q, k, v, mask, heads, alpha):
        self.weights = {}
        (q_shape, q_strides), (k_shape, k_strides), (v_shape, v_strides) = (_by_heads(a, heads) for a in (q, k, v))
        batch, _, rows, _ = q_shape
        columns, width = v_shape[2:]
        self.shape = (batch, rows, heads * width)
        query, values = MemoryDesc.strided(q_shape, q_strides), MemoryDesc.strided(v_shape, v_strides)
        swap = (0, 1, 3, 2)
        keys = MemoryDesc.strided([k_shape[i] for i in swap], [k_strides[i] for i in swap])
        scores = MemoryDesc.strided((batch, heads, rows, columns))
        flat = MemoryDesc.strided((batch * heads * rows, columns))
        step = heads * width
        context = MemoryDesc.strided((batch, heads, rows, width), (rows * step, width, step, 1))
        added = None if mask is None else MemoryDesc.strided(mask)
        first, separate = self._scores(query, keys, scores, added, alpha)
        engine, plain = LIBRARY.engine, Attributes()
        softmax = PrimitiveDesc(
            "softmax_forward", engine, _c.FORWARD_INFERENCE, _c.SOFTMAX_ACCURATE, flat, flat, 1, plain
        )
        second = PrimitiveDesc("matmul", engine, scores, values, None, context, plain)
        plan = self.plan = Plan()
        arguments = {_c.SRC: plan.input(query), _c.WEIGHTS: plan.input(keys)}
        factor = plan.input(values)
        between = arguments[_c.DST] = plan.temporary(scores)
        seen_flat = plan.alias(between, flat)
        shift = None if added is None else plan.input(added)
        result = plan.output(context)
        if shift is not None and separate is None:
            arguments[_c.POST_OP * (2 if alpha != 1 else 1) | _c.SRC_1] = shift
        plan.add(first, arguments)
        if separate is not None:
            plan.add(separate, {_c.SRC: between, _c.SRC_1: shift, _c.DST: between})
        plan.add(softmax, {_c.SRC: seen_flat, _c.DST: seen_flat})
        plan.add(second, {_c.SRC: between, _c.WEIGHTS: factor, _c.DST: result})

    @staticmethod
    def _scores(query, keys, scores, added, alpha):
        """(product with the mask in it, None); (product, addition of the mask) where that is slow."""
        engine = LIBRARY.engine
        scaled = [("eltwise", _c.ELTWISE["linear"], alpha, 0.0)] if alpha != 1 else []
        if added is not None:
            try:
                whole = Attributes([*scaled, ("binary", _c.BINARY_ADD, added)])
                return PrimitiveDesc("matmul", engine, query, keys, None, scores, whole), None
            except NotServedError:
                pass
        product = PrimitiveDesc("matmul", engine, query, keys, None, scores, Attributes(scaled))
        if added is None:
            return product, None
        return product, PrimitiveDesc("binary", engine, _c.BINARY_ADD, scores, added, scores, Attributes())


def _find(q, k, v, mask, heads, alpha):
    if not (q.size and k.size and v.size) or not (mask is None or mask.flags.c_contiguous):
        return None
    added = None if mask is None else (1,) * (4 - mask.ndim) + mask.shape
    key = ("attention", q.shape, q.strides, k.shape, k.strides, v.shape, v.strides, added, heads, alpha)
    return THREAD.plan(key, AttentionPlan, q, k, v, added, heads, alpha)


def _prepare(call):
    heads, alpha = call.attrs["heads"], call.attrs["alpha"]

    def find(q, k, v, mask=None):
        return _find(q, k, v, mask, heads, alpha)

    def otherwise(q, k, v, mask=None):
        found = find(q, k, v, mask) if LIBRARY.usable() else None
        return attention(q, k, v, mask, heads=heads, alpha=alpha) if found is None else found.run(q, k, v, mask)

    return call_site(find, otherwise, (0, 1, 2, 3) if call.given("Mask") else (0, 1, 2))


@served("onednn_attention", prepare=_prepare)
def onednn_attention(Q, K, V, Mask=None, *, heads, alpha, ctx):
    found = _find(Q, K, V, Mask, heads, alpha)
    return NotImplemented if found is None else found.run(Q, K, V, Mask)


@kernel("onednn_attention", place="cpu", dtypes=FLOATS)
def attention(Q, K, V, Mask=None, *, heads, alpha):
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
