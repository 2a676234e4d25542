"""matmul_v2, matmul, bmm and mul, and gradients where no dim is broadcast but the batch of X over one matrix Y."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from oprack.kernel import Array, KernelContext, KernelSpecialization

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.parameters import Weights, is_constant, is_read_only
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError, element_strides
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, Memory, MemoryDesc
from oprack_onednn.kernels._dense import multiply
from oprack_onednn.kernels.declare import Limits, guarded, onednn_kernel
from oprack_onednn.stretch.callsite import RowMajorPrimitive, call_site


# Products of two arrays -----------------------------------------------------------------------------------------------
class ProductPrimitive(RowMajorPrimitive):
    """x [*batch, m, k] times y [*batch, k, n] of one rank, with any strides; y may be constant and then is packed.

    Args:
        shape: Of the result, with the same elements as [*batch, m, n].
    """

    def __init__(self, x: Array, y: Array, alpha: float, constant: bool, shape: tuple[int, ...] | None) -> None:
        batch = tuple(max(a, b) for a, b in zip(x.shape[:-2], y.shape[:-2], strict=True))
        self.shape = (*batch, x.shape[-2], y.shape[-1]) if shape is None else shape
        attributes = Attributes([("eltwise", _c.ELTWISE["linear"], alpha, 0.0)] if alpha != 1 else ())
        source, weights = (MemoryDesc.strided(a.shape, element_strides(a)) for a in (x, y))
        result = MemoryDesc.strided((*batch, x.shape[-2], y.shape[-1]))
        wanted = MemoryDesc.any(y.shape) if constant else weights
        chain = self.chain = PrimitiveChain()
        given: Memory = chain.input(source)
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
            factor: Memory = chain.input(chosen)
        else:
            factor = chain.input(weights)
            factor = factor if chosen == weights else chain.reorder(factor, chosen)
        given = given if given.desc == source else chain.reorder(given, source)
        chain.add(desc, {_c.SRC: given, _c.WEIGHTS: factor, _c.DST: chain.output(result)})


def find_product(
    x: Array, y: Array, alpha: float = 1.0, shape: tuple[int, ...] | None = None, constant: bool = False
) -> ProductPrimitive | None:
    """The primitive for alpha x y of arrays with two dims or more; None when NumPy should do it.

    Args:
        shape: Of the result, when it has other dims than x and y.
        constant: Whether nobody can write to y.
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


def product(x: Array, y: Array, alpha: float = 1.0, shape: tuple[int, ...] | None = None) -> Array | None:
    """alpha x y of arrays with two dims or more, neither of them constant; None when NumPy should do it.

    Of two matrices no primitive is made: in training their rows are as many as a batch has.
    """
    matrix = x.reshape(-1, x.shape[-1]) if y.ndim == 2 and x.ndim > 2 and x.size and x.flags.c_contiguous else x
    if matrix.ndim == y.ndim == 2 and matrix.shape[1] == y.shape[0] and x.size * y.shape[1] >= max(Limits.product, 1):
        found = multiply(matrix, y, alpha, (*x.shape[:-1], y.shape[1]) if shape is None else shape)
        if found is not None:
            return found
    primitive = find_product(x, y, alpha, shape)
    return None if primitive is None else primitive.run(x, y)


class _Operands(NamedTuple):
    """What an op multiplies, with the factor and the result's shape; shape None: the dims of the product."""

    x: Array
    y: Array
    alpha: float = 1.0
    shape: tuple[int, ...] | None = None


def _matmul(x: Array, y: Array, trans_x: bool, trans_y: bool, alpha: float = 1.0) -> _Operands | None:
    """Those of matmul_v2, which takes arrays of one dim, too."""
    if x.size * y.size < Limits.product or not x.ndim or not y.ndim:
        return None
    left = x.reshape(1, -1) if x.ndim == 1 else x.swapaxes(-1, -2) if trans_x else x
    right = y.reshape(-1, 1) if y.ndim == 1 else y.swapaxes(-1, -2) if trans_y else y
    shape = None
    if 1 in (x.ndim, y.ndim):
        batch = left.shape[:-2] if y.ndim == 1 else right.shape[:-2]
        shape = (*batch, *left.shape[-2:-1] * (x.ndim > 1), *right.shape[-1:] * (y.ndim > 1))
    return _Operands(left, right, alpha, shape)


def row_major(x: Array) -> Array:
    """x, or a copy where its memory goes another way, as that of images does: its dims are to be taken together."""
    return x if x.flags.c_contiguous else np.ascontiguousarray(x)


def _mul(x: Array, y: Array, x_rows: int, y_rows: int) -> _Operands | None:
    """Those of mul, which makes matrices of its arrays."""
    if not (x.size and y.size and x.flags.c_contiguous and y.flags.c_contiguous):
        return None
    left, right = (a.reshape(math.prod(a.shape[:r]), -1) for a, r in ((x, x_rows), (y, y_rows)))
    return _Operands(left, right, 1.0, (*x.shape[:x_rows], *y.shape[y_rows:]))


def _operands(op_type: str, attrs: Mapping[str, Any]) -> Callable[[Array, Array], _Operands | None]:
    """A function of X and Y that says what is multiplied."""
    if op_type == "mul":
        rows = attrs["x_num_col_dims"], attrs["y_num_col_dims"]
        return lambda x, y: _mul(x, y, *rows)
    if op_type == "matmul_v2":
        flags = attrs["trans_x"], attrs["trans_y"]
        return lambda x, y: _matmul(x, y, *flags)
    if op_type == "matmul":
        options = attrs["transpose_X"], attrs["transpose_Y"], attrs["alpha"]
        plain = attrs["head_number"] == 1
        return lambda x, y: _matmul(x, y, *options) if plain and min(x.ndim, y.ndim) > 1 else None
    return _Operands


def _specialize(call: KernelSpecialization) -> Callable[..., Any]:
    """One place for a constant Y, whose address stays, and one for any other."""
    operands = _operands(call.op_type, call.attrs)

    def find(x: Array, y: Array) -> ProductPrimitive | None:
        found = operands(x, y)
        return None if found is None else find_product(*found, is_constant(y))

    weighted, both = call_site(find), call_site(find, (0, 1))

    # two small matrices as they are: what the way to NumPy's kernel would end at
    as_they_are = call.op_type == "matmul_v2" and not (call.attrs["trans_x"] or call.attrs["trans_y"])

    def run(X: Array, Y: Array) -> Array:
        if call.op_type == "mul":
            X = row_major(X)
        if as_they_are and X.ndim == 2 == Y.ndim and X.size * Y.size < Limits.product:
            return np.matmul(X, Y)
        flags = Y.flags
        if not flags.writeable and (flags.owndata or is_read_only(Y)):
            return weighted(X, Y)
        found = operands(X, Y)
        if found is None or found.y.ndim != 2:
            return both(X, Y)
        result: Array | None = guarded(product, *found)
        return both(X, Y) if result is None else result

    return run


def _run(X: Array, Y: Array, ctx: KernelContext) -> Array:
    found = _operands(ctx.op_type, ctx.attrs)(X, Y)
    if found is None:
        return NotImplemented
    if is_read_only(Y):
        primitive = find_product(*found, is_constant(Y))
        result = None if primitive is None else primitive.run(X, Y)
    else:
        result = product(*found)
    return NotImplemented if result is None else result


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


def _matrix(a: Array, transposed: bool) -> Array:
    return a.swapaxes(-1, -2) if transposed else a


@onednn_kernel("matmul_v2_grad")
def matmul_v2_grad(
    X: Array, Y: Array, Out_grad: Array, *, trans_x: bool, trans_y: bool, ctx: KernelContext
) -> tuple[Array | None, Array]:
    x, y, g = X, Y, Out_grad
    if min(x.ndim, y.ndim) < 2 or g.size * x.shape[-1] < Limits.product:
        return _small(x, y, g, trans_x or trans_y, ctx)
    if g.ndim != x.ndim:
        return NotImplemented
    if y.ndim == 2 and x.ndim > 2 and not trans_x and x.flags.c_contiguous and g.flags.c_contiguous:
        # one matrix for the whole batch: the batch counts as rows
        x, g = x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])
    if x.shape[:-2] != y.shape[:-2]:
        return NotImplemented
    left, right = _matrix(x, trans_x), _matrix(y, trans_y)
    if g.shape != (*x.shape[:-2], left.shape[-2], right.shape[-1]):
        return NotImplemented
    return _gradients(left, right, g, trans_x, trans_y, X.shape, ctx)


def _gradients(
    left: np.ndarray,
    right: np.ndarray,
    g: np.ndarray,
    trans_x: bool,
    trans_y: bool,
    shape: tuple[int, ...],
    ctx: KernelContext,
) -> Any:
    """Gradients of the operands of left @ right that are wanted; `shape` is that of X."""
    dx = dy = None
    if ctx.wants("X@GRAD"):
        dx = product(right, _matrix(g, True)) if trans_x else product(g, _matrix(right, True))
        if dx is None:
            return NotImplemented
        dx = dx.reshape(shape)
    if ctx.wants("Y@GRAD"):
        dy = product(_matrix(g, True), left) if trans_y else product(_matrix(left, True), g)
        if dy is None:
            return NotImplemented
    return dx, dy


def _small(x: np.ndarray, y: np.ndarray, g: np.ndarray, transposed: bool, ctx: KernelContext) -> Any:
    """Gradients of two small matrices as they are: what the way to NumPy's kernel would end at."""
    if transposed or x.ndim != 2 or y.ndim != 2:
        return NotImplemented
    dx = np.matmul(g, y.T) if ctx.wants("X@GRAD") else None
    return dx, np.matmul(x.T, g) if ctx.wants("Y@GRAD") else None


@onednn_kernel("mul_grad")
def mul_grad(
    X: Array, Y: Array, Out_grad: Array, *, x_num_col_dims: int, y_num_col_dims: int, ctx: KernelContext
) -> tuple[Array | None, Array | None]:
    if not (X.size and Y.size):
        return NotImplemented
    X, Y, Out_grad = map(row_major, (X, Y, Out_grad))
    x = X.reshape(math.prod(X.shape[:x_num_col_dims]), -1)
    y = Y.reshape(math.prod(Y.shape[:y_num_col_dims]), -1)
    g = Out_grad.reshape(x.shape[0], y.shape[1])
    dx = product(g, y.T) if ctx.wants("X@GRAD") else None
    dy = product(x.T, g) if ctx.wants("Y@GRAD") else None
    if (dx is None and ctx.wants("X@GRAD")) or (dy is None and ctx.wants("Y@GRAD")):
        return NotImplemented
    return dx if dx is None else dx.reshape(X.shape), dy if dy is None else dy.reshape(Y.shape)
