"""onednn_quantized_matmul: a product of bytes, with sums in 32 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from oprack.kernel import Array, KernelContext, KernelSpecialization, kernel
from oprack.types import FLOATS
from oprack_nn.kernels.with_post_ops import product

from oprack_onednn.chain.descs import one_number, primitive_desc
from oprack_onednn.chain.memory import rows_of
from oprack_onednn.chain.parameters import Weights
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Memory, MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT, INT8
from oprack_onednn.kernels._numbers import restored, serves_quantized, to_result
from oprack_onednn.kernels._steps import as_post_ops
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.stretch.callsite import RowMajorPrimitive, attempt, call_site, varying


class QuantizedProductPrimitive(RowMajorPrimitive):
    """x, m rows that are `apart` elements from each other, times y [k, n], with bias [n], residual and post-ops.

    Args:
        dtype: Of x.
        residual: None, or how many elements apart its rows are.
        input_step, output_step: As of the op.
    """

    def __init__(
        self,
        dtype: np.dtype,
        shape: tuple[int, ...],
        m: int,
        apart: int,
        y_shape: tuple[int, int],
        bias: bool,
        residual: int | None,
        post_ops: tuple[str, ...],
        input_step: float,
        output_step: float,
    ) -> None:
        self.shape, self.dtype = shape, INT8 if output_step else FLOAT
        k, n = y_shape
        rows, plain, row = (
            MemoryDesc.strided((m, k), (apart, 1)),
            MemoryDesc.strided((m, n)),
            MemoryDesc.strided((1, n)),
        )
        source, result = MemoryDesc.strided((m, k)).int8, plain.int8 if output_step else plain
        scales = [(_c.SRC, 0), (_c.WEIGHTS, 0b10), *([(_c.DST, 0)] if output_step else [])]
        attributes, at = as_post_ops(post_ops, plain, scales=scales)
        wanted = MemoryDesc.any(y_shape, _c.S8)
        desc = primitive_desc("matmul", LIBRARY.engine, source, wanted, row if bias else None, result, attributes)
        chosen = desc.desc(_c.QUERY_WEIGHTS_MD)
        self.weights = {1: Weights(MemoryDesc.strided(y_shape).int8, chosen)}
        chain = self.chain = PrimitiveChain()
        given = chain.input(rows.int8 if dtype == INT8 else rows)
        memory: dict[int, Memory] = {
            _c.WEIGHTS: chain.input(chosen),
            _c.SCALES | _c.WEIGHTS: chain.input(MemoryDesc.strided((n,))),
        }
        if bias:
            memory[_c.BIAS] = chain.input(row)
        if residual is not None:
            added = chain.input(MemoryDesc.strided((m, n), (residual, 1)))
            if at is not None:
                memory[_c.POST_OP * (at + 1) | _c.SRC_1] = added if residual == n else chain.reorder(added, plain)
        memory[_c.DST] = chain.output(result)
        memory[_c.SRC] = chain.int8(given, source, input_step)
        memory[_c.SCALES | _c.SRC] = one_number(input_step)
        if output_step:
            memory[_c.SCALES | _c.DST] = one_number(output_step)
        chain.add(desc, memory)


def _find(
    x: Array, y: Array, steps: Array, bias: Array | None, residual: Array | None, attrs: Mapping[str, Any]
) -> QuantizedProductPrimitive | None:
    if attrs["trans_x"]:
        x = x.swapaxes(-1, -2)
    rows = attrs["x_num_col_dims"] if attrs["x_num_col_dims"] > 0 else x.ndim - 1
    shape, seen = (*x.shape[:rows], y.shape[1]), rows_of(x, rows)
    added = None if residual is None else rows_of(residual)
    if seen is None or not x.size or seen[1] != y.shape[0] or not serves_quantized(x, y, steps, bias):
        return None
    if residual is not None and (added is None or residual.shape != shape):
        return None
    own = x.dtype, shape, seen[0], seen[2], y.shape, bias is not None, None if added is None else added[2]
    key = (*own, tuple(attrs["post_ops"]), attrs["input_step"], attrs["output_step"])
    return THREAD.primitive(("quantized product", *key), QuantizedProductPrimitive, *key)


def _specialize(call: KernelSpecialization) -> Callable[..., Any]:
    attrs = call.attrs

    def find(
        x: Array, y: Array, steps: Array, bias: Array | None = None, residual: Array | None = None
    ) -> QuantizedProductPrimitive | None:
        return _find(x, y, steps, bias, residual, attrs)

    free, dtypes = varying(call, {"X": 0, "Residual": 4})
    return call_site(find, free, dtypes=dtypes)


@onednn_kernel("onednn_quantized_matmul", specialize=_specialize, unread=("X", "Y"))
def onednn_quantized_matmul(
    X: Array,
    Y: Array,
    FilterStep: Array,
    Bias: Array | None = None,
    Residual: Array | None = None,
    *,
    ctx: KernelContext,
) -> Array:
    return attempt(partial(_find, attrs=ctx.attrs), X, Y, FilterStep, Bias, Residual)


@kernel("onednn_quantized_matmul", place="cpu", dtypes=FLOATS)
def reference_quantized_matmul(
    X: Array,
    Y: Array,
    FilterStep: Array,
    Bias: Array | None = None,
    Residual: Array | None = None,
    *,
    ctx: KernelContext,
) -> Array:
    attrs = ctx.attrs
    x = restored(X, attrs["input_step"], FilterStep.dtype)
    y = Y.astype(FilterStep.dtype) * FilterStep
    return to_result(product(x, y, Bias, Residual, attrs, ctx), attrs["output_step"])
