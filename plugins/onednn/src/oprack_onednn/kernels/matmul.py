"""matmul_v2, matmul, bmm and mul, and onednn_matmul: a product with a weight and what follows it."""

from __future__ import annotations

import math

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_onednn import _c
from oprack_onednn.kernels import activation, elementwise  # noqa: F401  (steps of a fused product)
from oprack_onednn.kernels._steps import Step, after
from oprack_onednn.kernels.conv import chain
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import BUFFERS, Weights, address, is_constant
from oprack_onednn.native import Attributes, MemoryDesc, NotServedError, PrimitiveDesc, element_strides
from oprack_onednn.plan import THREAD, Plan
from oprack_onednn.served import Limits, plain_step, served, step


class ProductPlan:
    """x [*batch, m, k] times y [*batch, k, n] of one rank, with any strides; y may be constant and then is packed."""

    def __init__(self, x, y, alpha, constant):
        batch = tuple(max(a, b) for a, b in zip(x.shape[:-2], y.shape[:-2], strict=True))
        self.shape = (*batch, x.shape[-2], y.shape[-1])
        attributes = Attributes([("eltwise", _c.ELTWISE["linear"], alpha, 0.0)] if alpha != 1 else ())
        source, weights = (MemoryDesc.strided(a.shape, element_strides(a)) for a in (x, y))
        result = MemoryDesc.strided(self.shape)
        wanted = MemoryDesc.any(y.shape) if constant else weights
        plan = self.plan = Plan()
        given = plan.input(source)
        try:
            desc = PrimitiveDesc("matmul", LIBRARY.engine, source, wanted, None, result, attributes)
        except NotServedError:
            # batch dims in an odd order: a row-major copy is cheaper than a slow product
            source = MemoryDesc.strided(x.shape)
            wanted = wanted if constant else MemoryDesc.strided(y.shape)
            desc = PrimitiveDesc("matmul", LIBRARY.engine, source, wanted, None, result, attributes)
        self.weights = None
        chosen = desc.desc(_c.QUERY_WEIGHTS_MD)
        if constant:
            self.weights = Weights(weights, chosen)
            factor = plan.input(chosen)
        else:
            factor = plan.input(weights)
            factor = factor if chosen == weights else plan.reorder(factor, chosen)
        given = given if given.desc == source else plan.reorder(given, source)
        plan.add(desc, {_c.SRC: given, _c.WEIGHTS: factor, _c.DST: plan.output(result)})


def product(x, y, parameter, alpha=1.0):
    """alpha x y of arrays with two dims or more; parameter: the array that y is a view of, which may be constant.

    None when NumPy should do it.
    """
    k, n = x.shape[-1], y.shape[-1]
    if k != y.shape[-2] or math.prod(x.shape) * n < Limits.product or not (x.size and y.size):
        return None
    lead = x.shape[:-1]
    if y.ndim == 2 and x.ndim > 2 and x.flags.c_contiguous:
        x = x.reshape(-1, k)  # one matrix for the whole batch
    elif x.ndim != y.ndim:
        rank = max(x.ndim, y.ndim)
        x, y = (a.reshape((1,) * (rank - a.ndim) + a.shape) if a.ndim < rank else a for a in (x, y))
    if any(a != b and 1 not in (a, b) for a, b in zip(x.shape[:-2], y.shape[:-2], strict=True)):
        return None
    constant = is_constant(parameter)
    key = ("product", x.shape, x.strides, y.shape, y.strides, alpha, constant)
    found = THREAD.plan(key, ProductPlan, x, y, alpha, constant)
    if found is None:
        return None
    weights = found.weights
    out = BUFFERS.take(found.shape)
    found.plan.run(THREAD, address(x), address(y) if weights is None else weights.address(parameter), address(out))
    return out if x.ndim > 2 else out.reshape(*lead, n)


def _factors(X, Y, trans_x, trans_y):
    """Views with at least two dims, ready to be multiplied."""
    x = X.reshape(1, -1) if X.ndim == 1 else X.swapaxes(-1, -2) if trans_x else X
    y = Y.reshape(-1, 1) if Y.ndim == 1 else Y.swapaxes(-1, -2) if trans_y else Y
    return x, y


@served("matmul_v2")
def matmul_v2(X, Y, *, trans_x, trans_y, ctx):
    if X.size * Y.size < Limits.product or not X.ndim or not Y.ndim:
        return NotImplemented
    out = product(*_factors(X, Y, trans_x, trans_y), Y)
    if out is None:
        return NotImplemented
    if X.ndim > 1 and Y.ndim > 1:
        return out
    rows, columns = out.shape[-2:]
    return out.reshape((*out.shape[:-2], *(() if X.ndim == 1 else (rows,)), *(() if Y.ndim == 1 else (columns,))))


@served("matmul")
def matmul(X, Y, *, transpose_X, transpose_Y, alpha, head_number, ctx):
    if head_number != 1 or X.ndim < 2 or Y.ndim < 2 or X.size * Y.size < Limits.product:
        return NotImplemented
    out = product(*_factors(X, Y, transpose_X, transpose_Y), Y, alpha)
    return NotImplemented if out is None else out


@served("bmm")
def bmm(X, Y, *, ctx):
    out = product(X, Y, Y)
    return NotImplemented if out is None else out


@served("mul")
def mul(X, Y, *, x_num_col_dims, y_num_col_dims, ctx):
    if not (X.flags.c_contiguous and Y.flags.c_contiguous):
        return NotImplemented
    x = X.reshape(math.prod(X.shape[:x_num_col_dims]), -1) if X.size else X
    y = Y.reshape(math.prod(Y.shape[:y_num_col_dims]), -1) if Y.size else Y
    if x.ndim != 2 or y.ndim != 2:
        return NotImplemented
    out = product(x, y, Y)
    if out is None:
        return NotImplemented
    return out.reshape(*X.shape[:x_num_col_dims], *Y.shape[y_num_col_dims:])


class FusedPlan:
    """x [m, k] times y [k, n], with bias [n], residual [m, n] and post-ops."""

    def __init__(self, m, y_shape, y_strides, constant, bias, residual, post_ops):
        k, n = y_shape
        source, result = MemoryDesc.strided((m, k)), MemoryDesc.strided((m, n))
        weights = MemoryDesc.strided(y_shape, y_strides)
        row = MemoryDesc.strided((1, n)) if bias else None
        attributes, at = chain(post_ops, result)
        wanted = MemoryDesc.any(y_shape) if constant else weights
        desc = PrimitiveDesc("matmul", LIBRARY.engine, source, wanted, row, result, attributes)
        chosen = desc.desc(_c.QUERY_WEIGHTS_MD)
        self.weights = Weights(weights, chosen) if constant else None
        plan = self.plan = Plan()
        memory = {_c.SRC: plan.input(source), _c.WEIGHTS: plan.input(chosen)}
        if bias:
            memory[_c.BIAS] = plan.input(row)
        if at is not None:
            memory[_c.POST_OP * (at + 1) | _c.SRC_1] = plan.input(result)
        memory[_c.DST] = plan.output(result)
        plan.add(desc, memory)


@served("onednn_matmul")
def onednn_matmul(X, Y, Bias=None, Residual=None, *, x_num_col_dims, post_ops, ctx):
    rows = x_num_col_dims if x_num_col_dims > 0 else X.ndim - 1
    shape = (*X.shape[:rows], Y.shape[1])
    m = math.prod(X.shape[:rows])
    others = [a for a in (Bias, Residual) if a is not None]
    simple = X.flags.c_contiguous and Y.flags.c_contiguous and all(a.flags.c_contiguous for a in others)
    if simple and m * Y.size >= Limits.product and X.size and (Residual is None or Residual.shape == shape):
        constant = is_constant(Y)
        key = (m, Y.shape, element_strides(Y), constant, Bias is not None, Residual is not None, tuple(post_ops))
        found = THREAD.plan(("fused", *key), FusedPlan, *key)
        if found is not None:
            out = BUFFERS.take(shape)
            weights = address(Y) if found.weights is None else found.weights.address(Y)
            found.plan.run(THREAD, address(X), weights, *map(address, others), address(out))
            return out
    return by_steps(X, Y, Bias, Residual, ctx.attrs, step)


@kernel("onednn_matmul", place="cpu", dtypes=FLOATS)
def plain_matmul(X, Y, Bias=None, Residual=None, *, ctx):
    return by_steps(X, Y, Bias, Residual, ctx.attrs, plain_step)


def by_steps(x, y, bias, residual, attrs, run):
    """The product, then what follows it."""
    rows = attrs["x_num_col_dims"] if attrs["x_num_col_dims"] > 0 else x.ndim - 1
    out = run("mul", {"X": x, "Y": y}, Step.of("mul", x_num_col_dims=rows, y_num_col_dims=1))
    return after(out, -1, bias, residual, attrs["post_ops"], run)
