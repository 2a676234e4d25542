"""layer_norm and its gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from oprack.kernel import Array, KernelContext, KernelSpecialization, RequiredArray

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import BUFFERS, Outlet
from oprack_onednn.chain.native_steps import NativeStep, widest_serves
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import contiguous_strides
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.stretch.callsite import RowMajorPrimitive, ShapedPrimitive, call_site


def build(rows: int, columns: int, epsilon: float, scaled: bool, shifted: bool) -> PrimitiveChain:
    """Chain for [rows, columns]: X, then scale and bias if there are any, result, mean, variance."""
    matrix, column, row = (MemoryDesc.strided(s) for s in ((rows, columns), (rows,), (columns,)))
    chain = PrimitiveChain()
    arguments = {_c.SRC: chain.input(matrix)}
    if scaled:
        arguments[_c.SCALE] = chain.input(row)
    if shifted:
        arguments[_c.SHIFT] = chain.input(row)
    arguments |= {_c.DST: chain.output(matrix), _c.MEAN: chain.output(column), _c.VARIANCE: chain.output(column)}
    if widest_serves():
        chain.add(_step(rows, columns, epsilon, scaled, shifted), arguments)
        return chain
    kind, flags = _c.FORWARD_TRAINING, _c.USE_SCALE * scaled | _c.USE_SHIFT * shifted
    described = kind, matrix, matrix, column, epsilon, flags, Attributes()
    chain.add(primitive_desc("layer_normalization_forward", LIBRARY.engine, *described), arguments)
    return chain


def _step(rows: int, columns: int, epsilon: float, scaled: bool, shifted: bool) -> NativeStep:
    """The step of normalize.c, for which nothing is compiled."""
    return NativeStep("oprack_layer_norm", (rows, columns, scaled, shifted, int(np.float64(epsilon).view(np.int64))))


class LayerNormPrimitive(RowMajorPrimitive):
    """One shape; the result is (y, mean, variance).

    Args:
        chain: What `build` returned.
        shape: Of x and y.
        lead: Of mean and variance.
        options: What `build` takes behind the sizes.
    """

    def __init__(
        self, chain: PrimitiveChain, shape: tuple[int, ...], lead: tuple[int, ...], options: tuple[float, bool, bool]
    ) -> None:
        self.chain, self.shape, self.lead, self.weights, self._options = chain, shape, lead, {}, options

    def taker(self, outlets: Sequence[Outlet]) -> Callable[[], tuple[Any, Any]]:
        return _Outlets(*outlets[:2]).take

    def outlets(self) -> tuple[Outlet, Outlet, Outlet]:
        column = Outlet(self.lead, tuple(FLOAT.itemsize * s for s in contiguous_strides(self.lead)))
        return self.outlet(), column, column

    def results(self, made: tuple[Array, ...]) -> tuple[Array, ...]:
        return made

    def called(self, run: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, outs: run(x, *outs)

    def resized(self, x: Array, *others: Array) -> ShapedPrimitive | None:
        rank = len(self.lead)
        lead, rest = x.shape[:rank], x.shape[rank:]
        if rest != self.shape[rank:] or not x.size or not x.flags.c_contiguous or not widest_serves():
            return None
        step = _step(math.prod(lead), math.prod(rest), *self._options)
        chain = self.chain.resized(step, 2 * x.nbytes)
        return None if chain is None else LayerNormPrimitive(chain, x.shape, lead, self._options)


def _built(shape: tuple[int, ...], lead: tuple[int, ...], columns: int, *options: Any) -> LayerNormPrimitive:
    return LayerNormPrimitive(build(math.prod(lead), columns, *options), shape, lead, options)


class _Outlets:
    """Makes y, mean and variance."""

    def __init__(self, rows: Outlet, column: Outlet) -> None:
        self._rows, self._column = rows.take, column.take

    def take(self) -> tuple[tuple[Array, ...], tuple[int, ...]]:
        (y, out), (mean, start), (variance, begin) = self._rows(), self._column(), self._column()
        return (y, mean, variance), (out, start, begin)


def _find(
    x: Array, scale: Array | None, bias: Array | None, epsilon: float, begin_norm_axis: int
) -> LayerNormPrimitive | None:
    """The primitive for the op's inputs; None when NumPy should do it."""
    parameters = (scale, bias)
    if not x.size or not x.flags.c_contiguous:
        return None
    if not all(p is None or p.flags.c_contiguous for p in parameters):
        return None
    lead = x.shape[:begin_norm_axis]
    columns = math.prod(x.shape[begin_norm_axis:])
    if columns < 2:
        return None
    key = (x.shape, lead, columns, epsilon, *(p is not None for p in parameters))
    return THREAD.primitive(("layer_norm", *key), _built, *key)


def _specialize(call: KernelSpecialization) -> Callable[..., Any]:
    """Scale and bias keep their addresses, and with it the chain, for each shape."""
    options = call.attrs["epsilon"], call.attrs["begin_norm_axis"]

    def find(x: Array, scale: Array | None = None, bias: Array | None = None) -> LayerNormPrimitive | None:
        return _find(x, scale, bias, *options)

    return call_site(find)


@onednn_kernel("layer_norm", specialize=_specialize)
def layer_norm(
    X: Array, Scale: Array | None = None, Bias: Array | None = None, *, epsilon: float, begin_norm_axis: int
) -> tuple[Array, ...]:
    found = _find(X, Scale, Bias, epsilon, begin_norm_axis)
    return NotImplemented if found is None else found.run(X, Scale, Bias)


def build_grad(rows: int, columns: int, epsilon: float, scaled: bool) -> PrimitiveChain:
    """Chain of the gradient: x, dy, mean, variance, then scale if there is one; dx, and with a scale dscale, dbias."""
    matrix, column, row = (MemoryDesc.strided(s) for s in ((rows, columns), (rows,), (columns,)))
    flags, engine = (_c.USE_SCALE | _c.USE_SHIFT) * scaled, LIBRARY.engine
    forward = primitive_desc(
        *("layer_normalization_forward", engine, _c.FORWARD_TRAINING, matrix, matrix, column, epsilon, flags),
        Attributes(),
    )
    kind = _c.BACKWARD if scaled else _c.BACKWARD_DATA
    desc = primitive_desc(
        *("layer_normalization_backward", engine, kind, matrix, matrix, matrix, column, epsilon, flags, forward),
        Attributes(),
    )
    chain = PrimitiveChain()
    inputs = [(_c.SRC, matrix), (_c.DIFF_DST, matrix), (_c.MEAN, column), (_c.VARIANCE, column)]
    memory = {a: chain.input(d) for a, d in inputs}
    if scaled:
        memory[_c.SCALE] = memory[_c.SHIFT] = chain.input(row)  # the shift is asked for, but not read
    memory[_c.DIFF_SRC] = chain.output(matrix)
    if scaled:
        memory |= {a: chain.output(row) for a in (_c.DIFF_SCALE, _c.DIFF_SHIFT)}
    chain.add(desc, memory)
    return chain


def _are_alike(arrays: Sequence[np.ndarray | None], dtype: np.dtype) -> bool:
    """Whether all are there, row-major and of one dtype."""
    return all(a is not None and a.flags.c_contiguous and a.dtype == dtype for a in arrays)


@onednn_kernel("layer_norm_grad", min_numel="eltwise")
def layer_norm_grad(
    X: Array,
    Scale: Array | None = None,
    Mean: RequiredArray = None,
    Variance: RequiredArray = None,
    Y_grad: RequiredArray = None,
    *,
    epsilon: float,
    begin_norm_axis: int,
    ctx: KernelContext,
) -> dict[str, Array]:
    arrays = [X, Y_grad, Mean, Variance, *([] if Scale is None else [Scale])]
    if not X.size or not _are_alike(arrays, X.dtype):
        return NotImplemented
    rows, columns = math.prod(X.shape[:begin_norm_axis]), math.prod(X.shape[begin_norm_axis:])
    # Without a scale the primitive computes no gradient of a shift either.
    if Y_grad.shape != X.shape or columns < 2 or (Scale is None and ctx.wants("Bias@GRAD")):
        return NotImplemented
    key = (rows, columns, epsilon, Scale is not None)
    chain = THREAD.primitive(("layer_norm_grad", *key), build_grad, *key)
    if chain is None:
        return NotImplemented
    dx = BUFFERS.take(X.shape)
    grads = {"X_grad": dx}
    if Scale is not None:
        grads |= {"Scale_grad": np.empty(columns, FLOAT), "Bias_grad": np.empty(columns, FLOAT)}
    chain.run(*arrays, *grads.values())
    wanted = {name: f"{name.removesuffix('_grad')}@GRAD" for name in grads}
    return {name: grad for name, grad in grads.items() if ctx.wants(wanted[name])}
