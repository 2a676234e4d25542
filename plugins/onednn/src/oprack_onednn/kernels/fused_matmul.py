"""matmul_post_ops: a product with a weight and what follows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from oprack.kernel import Array, KernelContext, KernelSpecialization
from oprack_nn.ops.precision import is_narrow

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import channels_last_desc, rows_of
from oprack_onednn.chain.parameters import Weights, is_constant
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError, element_strides
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Memory, MemoryDesc, dims
from oprack_onednn.kernels._convolution import ConvolutionStep, Filter, Window, conv_layer
from oprack_onednn.kernels._implementation import convolution, is_read_once
from oprack_onednn.kernels._steps import as_post_ops
from oprack_onednn.kernels.declare import Limits, onednn_kernel
from oprack_onednn.stretch.callsite import (
    RowMajorPrimitive,
    ShapedPrimitive,
    SizedRowMajorPrimitive,
    attempt,
    call_site,
)

# Rows of a weight up to which a step in C is as fast: with more of them its columns do not stay in the first cache.
_SHALLOW = 240
_ONE_TAP = (dims((1, 1)), *[dims((0, 0))] * 3)  # strides, dilations and paddings of a convolution


class FusedPrimitive(RowMajorPrimitive):
    """x, m rows that are `apart` elements from each other, times y [k, n], with bias [n], residual and post-ops.

    Args:
        residual: None, or what rows_of says of it.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        m: int,
        apart: int,
        y_shape: tuple[int, ...],
        y_strides: tuple[int, int],
        constant: bool,
        bias: bool,
        residual: tuple[int, ...] | None,
        post_ops: tuple[str, ...],
        bfloat16: bool,
    ) -> None:
        self.shape = shape
        self._step: ConvolutionStep | None = None
        k, n = y_shape
        dense = apart == k and (residual is None or residual[2] == n)
        shallow = constant and dense and not bfloat16 and k <= _SHALLOW
        if shallow and self._add_layer(m, y_shape, y_strides, bias, residual, post_ops):
            return
        if constant and dense and not bfloat16 and is_read_once(m, k * n):
            # rows as the pixels of an image: the convolution of one tap is the same product
            source, result = channels_last_desc((1, k, 1, m)), channels_last_desc((1, n, 1, m))
            weights = MemoryDesc.strided((n, k, 1, 1), (*y_strides[::-1], 1, 1))
        else:
            source, result = MemoryDesc.strided((m, k), (apart, 1)), MemoryDesc.strided((m, n))
            weights = MemoryDesc.strided(y_shape, y_strides)
        attributes, at = as_post_ops(post_ops, result)
        wanted = MemoryDesc.any(weights.shape, _c.BF16 if bfloat16 else _c.F32) if constant else weights
        factor = MemoryDesc.strided((m, k), None, _c.BF16) if bfloat16 else source
        if len(source.shape) > 2:
            row = MemoryDesc.strided((n,)) if bias else None
            kind = (LIBRARY.engine, _c.FORWARD_INFERENCE, _c.CONVOLUTION_DIRECT)
            desc = convolution(*kind, source, wanted, row, result, *_ONE_TAP, attributes, outputs=n)
        else:
            row = MemoryDesc.strided((1, n)) if bias else None
            desc = primitive_desc("matmul", LIBRARY.engine, factor, wanted, row, result, attributes)
        chosen = desc.desc(_c.QUERY_WEIGHTS_MD)
        self.weights = {1: Weights(weights, chosen)} if constant else {}
        chain = self.chain = PrimitiveChain()
        given = chain.input(source)
        memory: dict[int, Memory] = {_c.SRC: given, _c.WEIGHTS: chain.input(chosen)}
        if bfloat16:
            memory[_c.SRC] = chain.reorder(given, factor)
        if row is not None:
            memory[_c.BIAS] = chain.input(row)
        if at is not None:
            assert residual is not None
            # a post-op reads what is without gaps
            added = chain.input(result if residual[2] == n else MemoryDesc.strided((m, n), (residual[2], 1)))
            memory[_c.POST_OP * (at + 1) | _c.SRC_1] = added if residual[2] == n else chain.reorder(added, result)
        memory[_c.DST] = chain.output(result)
        chain.add(desc, memory)

    def _add_layer(
        self,
        m: int,
        y_shape: tuple[int, ...],
        y_strides: tuple[int, int],
        bias: bool,
        residual: tuple[int, ...] | None,
        post_ops: tuple[str, ...],
    ) -> bool:
        """Make a chain of a step in C, for which nothing is compiled; False where it has none, or a slower one."""
        k, n = y_shape
        layer = conv_layer(Filter(k, 1, n, y_strides[0], 1, y_strides[1]), Window(), bias, post_ops, m, halves=False)
        if layer is None:
            return False
        self.chain = PrimitiveChain()
        added = None if residual is None else channels_last_desc((1, n, m, 1))
        self._step = ConvolutionStep(self.chain, [layer], channels_last_desc((1, k, m, 1)), added)
        self.weights = self._step.weights
        return True

    def resized(self, x: Array, *others: Array) -> ShapedPrimitive | None:
        lead, step = x.shape[: len(self.shape) - 1], self._step
        if step is None or not all(a.flags.c_contiguous for a in (x, *others)):
            return None
        m, k = math.prod(lead), math.prod(x.shape[len(lead) :])
        found, shape = step.resized((1, k, m, 1)), (*lead, self.shape[-1])
        return (
            None if found is None or any(a.shape != shape for a in others) else SizedRowMajorPrimitive(found[0], shape)
        )


def _find_fused(
    x: Array,
    y: Array,
    bias: Array | None,
    residual: Array | None,
    rows: int,
    swapped: bool,
    post_ops: tuple[str, ...],
    bfloat16: bool,
) -> FusedPrimitive | None:
    if swapped:
        x = x.swapaxes(-1, -2)
    if rows < 1:
        rows = x.ndim - 1
    shape = (*x.shape[:rows], y.shape[1])
    seen = rows_of(x, rows)
    added = None if residual is None else rows_of(residual)
    if seen is None or not x.size or not y.flags.c_contiguous:
        return None
    constant = is_constant(y)
    if not constant and seen[0] * y.size < Limits.product:
        return None  # packed once, a small product and what follows it is faster here, too
    if seen[1] != y.shape[0] or (bias is not None and not bias.flags.c_contiguous):
        return None
    if residual is not None and (added is None or residual.shape != shape):
        return None
    key = (
        *(shape, seen[0], seen[2], y.shape, element_strides(y), constant, bias is not None, added, post_ops),
        bfloat16 and constant,
    )
    return THREAD.primitive(("fused", *key), _build_fused, *key)


def _build_fused(*key: Any) -> FusedPrimitive:
    """In float32 where oneDNN has no product in bfloat16."""
    if key[-1]:
        with suppress(NotServedError):
            return FusedPrimitive(*key)
    plain = (*key[:-1], False)
    return FusedPrimitive(*plain)


def _own(attrs: Mapping[str, Any]) -> tuple[int, bool, tuple[str, ...], bool]:
    return attrs["x_num_col_dims"], attrs["trans_x"], tuple(attrs["post_ops"]), is_narrow(attrs)


def _run_fused(x: Array, y: Array, bias: Array | None, residual: Array | None, attrs: Mapping[str, Any]) -> Array:
    rows, swapped, post_ops, bfloat16 = _own(attrs)
    find = partial(_find_fused, rows=rows, post_ops=post_ops, bfloat16=bfloat16)
    out = attempt(partial(find, swapped=swapped), x, y, bias, residual)
    if out is NotImplemented and LIBRARY.usable():
        # rows in an odd order: a row-major copy is cheaper than what NumPy does
        dense = np.ascontiguousarray(x.swapaxes(-1, -2) if swapped else x)
        added = residual if residual is None else np.ascontiguousarray(residual)
        out = attempt(partial(find, swapped=False), dense, y, bias, added)
    return out


def _specialize_fused(call: KernelSpecialization) -> Callable[..., Any]:
    attrs, own = call.attrs, _own(call.attrs)

    def find(x: Array, y: Array, bias: Array | None = None, residual: Array | None = None) -> FusedPrimitive | None:
        return _find_fused(x, y, bias, residual, *own)

    def fallback(x: Array, y: Array, bias: Array | None = None, residual: Array | None = None) -> Array:
        return _run_fused(x, y, bias, residual, attrs)

    return call_site(find, (0, 3) if call.has_input("Residual") else (0,), fallback, resizes=not own[1])


@onednn_kernel("matmul_post_ops", specialize=_specialize_fused)
def matmul_post_ops(
    X: Array, Y: Array, Bias: Array | None = None, Residual: Array | None = None, *, ctx: KernelContext
) -> Array:
    return _run_fused(X, Y, Bias, Residual, ctx.attrs)
