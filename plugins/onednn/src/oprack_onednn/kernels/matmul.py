"""matmul_v2, matmul, bmm and mul, and onednn_matmul: a product with a weight and what follows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from oprack.kernel import Array, KernelContext, KernelSpecialization, kernel
from oprack.types import FLOATS

from oprack_onednn import _c
from oprack_onednn.callsite import attempt, call_site
from oprack_onednn.declare import Limits, onednn_kernel
from oprack_onednn.descs import primitive_desc
from oprack_onednn.kernels._rows import RowMajorPrimitive, rows_of
from oprack_onednn.kernels._steps import after, as_post_ops
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import Weights, is_constant, is_read_only
from oprack_onednn.native import Attributes, MemoryDesc, NotServedError, element_strides
from oprack_onednn.primitive_chain import THREAD, PrimitiveChain


# Products of two arrays -----------------------------------------------------------------------------------------------
class ProductPrimitive(RowMajorPrimitive):
    """x [*batch, m, k] times y [*batch, k, n] of one rank, with any strides; y may be constant and then is packed.

    shape: of the result, with the same elements as [*batch, m, n].
    """

    def __init__(self, x: Array, y: Array, alpha: float, constant: bool, shape: tuple[int, ...] | None) -> None:
        batch = tuple(max(a, b) for a, b in zip(x.shape[:-2], y.shape[:-2], strict=True))
        self.shape = (*batch, x.shape[-2], y.shape[-1]) if shape is None else shape
        attributes = Attributes([("eltwise", _c.ELTWISE["linear"], alpha, 0.0)] if alpha != 1 else ())
        source, weights = (MemoryDesc.strided(a.shape, element_strides(a)) for a in (x, y))
        result = MemoryDesc.strided((*batch, x.shape[-2], y.shape[-1]))
        wanted = MemoryDesc.any(y.shape) if constant else weights
        chain = self.chain = PrimitiveChain()
        given = chain.input(source)
        try:
            desc = primitive_desc("matmul", LIBRARY.engine, source, wanted, None, result, attributes)
        except NotServedError:
            # batch dims in an odd order: a row-major copy is cheaper than a slow product
            source = MemoryDesc.strided(x.shape)
            wanted = wanted if constant else MemoryDesc.strided(y.shape)
            desc = primitive_desc("matmul", LIBRARY.engine, source, wanted, None, result, attributes)
        self.weights = {}
        chosen = desc.desc(_c.QUERY_WEIGHTS_MD)
        if constant:
            self.weights[1] = Weights(weights, chosen)
            factor = chain.input(chosen)
        else:
            factor = chain.input(weights)
            factor = factor if chosen == weights else chain.reorder(factor, chosen)
        given = given if given.desc == source else chain.reorder(given, source)
        chain.add(desc, {_c.SRC: given, _c.WEIGHTS: factor, _c.DST: chain.output(result)})


def find_product(
    x: Array, y: Array, alpha: float = 1.0, shape: tuple[int, ...] | None = None, constant: bool = False
) -> ProductPrimitive | None:
    """The primitive for alpha x y of arrays with two dims or more; None when NumPy should do it.

    shape: of the result, when it has other dims than x and y. constant: whether nobody can write to y.
    """
    k, n = x.shape[-1], y.shape[-1]
    if k != y.shape[-2] or math.prod(x.shape) * n < Limits.product or not (x.size and y.size):
        return None
    if y.ndim == 2 and x.ndim > 2 and x.flags.c_contiguous:
        shape = (*x.shape[:-1], n) if shape is None else shape
        x = x.reshape(-1, k)  # one matrix for the whole batch
    elif x.ndim != y.ndim:
        rank = max(x.ndim, y.ndim)
        x, y = (a.reshape((1,) * (rank - a.ndim) + a.shape) if a.ndim < rank else a for a in (x, y))
    if any(a != b and 1 not in (a, b) for a, b in zip(x.shape[:-2], y.shape[:-2], strict=True)):
        return None
    key = ("product", x.shape, x.strides, y.shape, y.strides, alpha, constant, shape)
    return THREAD.primitive(key, ProductPrimitive, x, y, alpha, constant, shape)


def product(x: Array, y: Array, alpha: float = 1.0) -> Array | None:
    """alpha x y of arrays with two dims or more, neither of them constant; None when NumPy should do it."""
    found = find_product(x, y, alpha)
    return None if found is None else found.run(x, y)


def _find_matmul(x: Array, y: Array, trans_x: bool, trans_y: bool, alpha: float = 1.0) -> ProductPrimitive | None:
    """The primitive of matmul_v2, which takes arrays of one dim, too."""
    if x.size * y.size < Limits.product or not x.ndim or not y.ndim:
        return None
    left = x.reshape(1, -1) if x.ndim == 1 else x.swapaxes(-1, -2) if trans_x else x
    right = y.reshape(-1, 1) if y.ndim == 1 else y.swapaxes(-1, -2) if trans_y else y
    shape = None
    if 1 in (x.ndim, y.ndim):
        batch = left.shape[:-2] if y.ndim == 1 else right.shape[:-2]
        shape = (*batch, *left.shape[-2:-1] * (x.ndim > 1), *right.shape[-1:] * (y.ndim > 1))
    return find_product(left, right, alpha, shape, is_constant(y))


def row_major(x: Array) -> Array:
    """x, or a copy where its memory goes another way, as that of images does: its dims are to be taken together."""
    return x if x.flags.c_contiguous else np.ascontiguousarray(x)


def _find_mul(x: Array, y: Array, x_rows: int, y_rows: int) -> ProductPrimitive | None:
    """The primitive of mul, which makes matrices of its arrays."""
    if not (x.size and y.size and x.flags.c_contiguous and y.flags.c_contiguous):
        return None
    left, right = (a.reshape(math.prod(a.shape[:r]), -1) for a, r in ((x, x_rows), (y, y_rows)))
    return find_product(left, right, 1.0, (*x.shape[:x_rows], *y.shape[y_rows:]), is_constant(y))


def _finder(op_type: str, attrs: Mapping[str, Any]) -> Callable[..., Any]:
    """A function of X and Y that gives their primitive."""
    if op_type == "mul":
        rows = attrs["x_num_col_dims"], attrs["y_num_col_dims"]
        return lambda x, y: _find_mul(x, y, *rows)
    if op_type == "matmul_v2":
        flags = attrs["trans_x"], attrs["trans_y"]
        return lambda x, y: _find_matmul(x, y, *flags)
    if op_type == "matmul":
        flags = attrs["transpose_X"], attrs["transpose_Y"], attrs["alpha"]
        plain = attrs["head_number"] == 1
        return lambda x, y: _find_matmul(x, y, *flags) if plain and min(x.ndim, y.ndim) > 1 else None
    return lambda x, y: find_product(x, y, 1.0, None, is_constant(y))


def _specialize(call: KernelSpecialization) -> Callable[..., Any]:
    """One place for a constant Y, whose address stays, and one for any other."""
    find = _finder(call.op_type, call.attrs)
    weighted, both = call_site(find), call_site(find, (0, 1))

    # two small matrices as they are: what the way to NumPy's kernel would end at
    as_they_are = call.op_type == "matmul_v2" and not (call.attrs["trans_x"] or call.attrs["trans_y"])

    def run(X: Array, Y: Array) -> Array:
        if call.op_type == "mul":
            X = row_major(X)
        if as_they_are and X.ndim == 2 == Y.ndim and X.size * Y.size < Limits.product:
            return np.matmul(X, Y)
        flags = Y.flags
        return weighted(X, Y) if not flags.writeable and (flags.owndata or is_read_only(Y)) else both(X, Y)

    return run


def _run(X: Array, Y: Array, ctx: KernelContext) -> Array:
    found = _finder(ctx.op_type, ctx.attrs)(X, Y)
    return NotImplemented if found is None else found.run(X, Y)


@onednn_kernel("matmul_v2", specialize=_specialize)
def matmul_v2(X: Array, Y: Array, *, ctx: KernelContext) -> Array:
    return _run(X, Y, ctx)


@onednn_kernel("matmul", specialize=_specialize)
def matmul(X: Array, Y: Array, *, ctx: KernelContext) -> Array:
    return _run(X, Y, ctx)


@onednn_kernel("bmm", specialize=_specialize)
def bmm(X: Array, Y: Array, *, ctx: KernelContext) -> Array:
    return _run(X, Y, ctx)


@onednn_kernel("mul", specialize=_specialize)
def mul(X: Array, Y: Array, *, ctx: KernelContext) -> Array:
    return _run(row_major(X), Y, ctx)


# A product with what follows it ---------------------------------------------------------------------------------------
class FusedPrimitive(RowMajorPrimitive):
    """x, m rows that are `apart` elements from each other, times y [k, n], with bias [n], residual and post-ops.

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
    ) -> None:
        self.shape = shape
        k, n = y_shape
        source, result = MemoryDesc.strided((m, k), (apart, 1)), MemoryDesc.strided((m, n))
        weights = MemoryDesc.strided(y_shape, y_strides)
        row = MemoryDesc.strided((1, n)) if bias else None
        attributes, at = as_post_ops(post_ops, result)
        wanted = MemoryDesc.any(y_shape) if constant else weights
        desc = primitive_desc("matmul", LIBRARY.engine, source, wanted, row, result, attributes)
        chosen = desc.desc(_c.QUERY_WEIGHTS_MD)
        self.weights = {1: Weights(weights, chosen)} if constant else {}
        chain = self.chain = PrimitiveChain()
        memory = {_c.SRC: chain.input(source), _c.WEIGHTS: chain.input(chosen)}
        if bias:
            memory[_c.BIAS] = chain.input(row)
        if at is not None:
            # a post-op reads what is without gaps
            added = chain.input(MemoryDesc.strided((m, n), (residual[2], 1)))
            memory[_c.POST_OP * (at + 1) | _c.SRC_1] = added if residual[2] == n else chain.reorder(added, result)
        memory[_c.DST] = chain.output(result)
        chain.add(desc, memory)


def _find_fused(
    x: Array, y: Array, bias: Array | None, residual: Array | None, rows: int, swapped: bool, post_ops: tuple[str, ...]
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
    key = (shape, seen[0], seen[2], y.shape, element_strides(y), constant, bias is not None, added, post_ops)
    return THREAD.primitive(("fused", *key), FusedPrimitive, *key)


def _own(attrs: Mapping[str, Sequence[str] | int | str]) -> tuple[int, bool, tuple[str, ...]]:
    return attrs["x_num_col_dims"], attrs["trans_x"], tuple(attrs["post_ops"])


def _run_fused(
    x: Array, y: Array, bias: Array | None, residual: Array | None, attrs: Mapping[str, Sequence[str] | int | str]
) -> Array:
    rows, swapped, post_ops = _own(attrs)
    out = attempt(lambda *arrays: _find_fused(*arrays, rows, swapped, post_ops), x, y, bias, residual)
    if out is NotImplemented and LIBRARY.usable():
        # rows in an odd order: a row-major copy is cheaper than what NumPy does
        dense = np.ascontiguousarray(x.swapaxes(-1, -2) if swapped else x)
        added = residual if residual is None else np.ascontiguousarray(residual)
        out = attempt(lambda *arrays: _find_fused(*arrays, rows, False, post_ops), dense, y, bias, added)
    return out


def _specialize_fused(call: KernelSpecialization) -> Callable[..., Any]:
    attrs, own = call.attrs, _own(call.attrs)

    def find(x: Array, y: Array, bias: Array | None = None, residual: Array | None = None) -> FusedPrimitive | None:
        return _find_fused(x, y, bias, residual, *own)

    def fallback(x: Array, y: Array, bias: Array | None = None, residual: Array | None = None) -> Array:
        return _run_fused(x, y, bias, residual, attrs)

    return call_site(find, (0, 3) if call.given("Residual") else (0,), fallback)


@onednn_kernel("onednn_matmul", specialize=_specialize_fused)
def onednn_matmul(
    X: Array, Y: Array, Bias: Array | None = None, Residual: Array | None = None, *, ctx: KernelContext
) -> Array:
    return _run_fused(X, Y, Bias, Residual, ctx.attrs)


@kernel("onednn_matmul", place="cpu", dtypes=FLOATS)
def reference_matmul(
    X: Array, Y: Array, Bias: Array | None = None, Residual: Array | None = None, *, ctx: KernelContext
) -> Array:
    return by_steps(X, Y, Bias, Residual, ctx.attrs, ctx)


def by_steps(
    x: Array,
    y: Array,
    bias: Array | None,
    residual: Array | None,
    attrs: Mapping[str, Sequence[str] | int | str],
    ctx: KernelContext,
) -> Array:
    """The product, then what follows it."""
    if attrs["trans_x"]:
        x = x.swapaxes(-1, -2)
    rows = attrs["x_num_col_dims"] if attrs["x_num_col_dims"] > 0 else x.ndim - 1
    out = ctx.run_op("mul", {"X": x, "Y": y}, {"x_num_col_dims": rows, "y_num_col_dims": 1})
    return after(out, -1, bias, residual, attrs["post_ops"], ctx)
