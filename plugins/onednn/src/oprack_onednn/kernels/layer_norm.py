"""layer_norm and its gradient."""

from __future__ import annotations

import math

import numpy as np

from oprack_onednn import _c
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import BUFFERS, address
from oprack_onednn.native import Attributes, MemoryDesc, PrimitiveDesc
from oprack_onednn.plan import THREAD, Plan
from oprack_onednn.served import Limits, served


def build(rows, columns, epsilon, scaled, shifted):
    """Plan for [rows, columns]: X, then scale and bias if there are any, result, mean, variance."""
    matrix, column, row = (MemoryDesc.strided(s) for s in ((rows, columns), (rows,), (columns,)))
    flags = _c.USE_SCALE * scaled | _c.USE_SHIFT * shifted
    desc = PrimitiveDesc(
        "layer_normalization_forward",
        LIBRARY.engine,
        _c.FORWARD_TRAINING,
        matrix,
        matrix,
        column,
        epsilon,
        flags,
        Attributes(),
    )
    plan = Plan()
    arguments = {_c.SRC: plan.input(matrix)}
    if scaled:
        arguments[_c.SCALE] = plan.input(row)
    if shifted:
        arguments[_c.SHIFT] = plan.input(row)
    arguments |= {_c.DST: plan.output(matrix), _c.MEAN: plan.output(column), _c.VARIANCE: plan.output(column)}
    plan.add(desc, arguments)
    return plan


@served("layer_norm")
def layer_norm(X, Scale=None, Bias=None, *, epsilon, begin_norm_axis, ctx):
    parameters = [p for p in (Scale, Bias) if p is not None]
    if X.size < Limits.eltwise or not X.flags.c_contiguous or not all(p.flags.c_contiguous for p in parameters):
        return NotImplemented
    lead = X.shape[:begin_norm_axis]
    rows, columns = math.prod(lead), math.prod(X.shape[begin_norm_axis:])
    if not X.size or columns < 2:
        return NotImplemented
    key = (rows, columns, epsilon, Scale is not None, Bias is not None)
    plan = THREAD.plan(("layer_norm", *key), build, *key)
    if plan is None:
        return NotImplemented
    y, mean, variance = BUFFERS.take(X.shape), np.empty(lead, X.dtype), np.empty(lead, X.dtype)
    plan.run(THREAD, address(X), *map(address, parameters), address(y), address(mean), address(variance))
    return y, mean, variance


def build_grad(rows, columns, epsilon, scaled):
    """Plan of the gradient: x, dy, mean, variance, then scale if there is one; dx, and with a scale dscale, dbias."""
    matrix, column, row = (MemoryDesc.strided(s) for s in ((rows, columns), (rows,), (columns,)))
    flags, engine = (_c.USE_SCALE | _c.USE_SHIFT) * scaled, LIBRARY.engine
    forward = PrimitiveDesc(
        *("layer_normalization_forward", engine, _c.FORWARD_TRAINING, matrix, matrix, column, epsilon, flags),
        Attributes(),
    )
    kind = _c.BACKWARD if scaled else _c.BACKWARD_DATA
    desc = PrimitiveDesc(
        *("layer_normalization_backward", engine, kind, matrix, matrix, matrix, column, epsilon, flags, forward),
        Attributes(),
    )
    plan = Plan()
    inputs = [(_c.SRC, matrix), (_c.DIFF_DST, matrix), (_c.MEAN, column), (_c.VARIANCE, column)]
    memory = {a: plan.input(d) for a, d in inputs}
    if scaled:
        memory[_c.SCALE] = memory[_c.SHIFT] = plan.input(row)  # the shift is asked for, but not read
    memory[_c.DIFF_SRC] = plan.output(matrix)
    if scaled:
        memory |= {a: plan.output(row) for a in (_c.DIFF_SCALE, _c.DIFF_SHIFT)}
    plan.add(desc, memory)
    return plan


@served("layer_norm_grad", least="eltwise")
def layer_norm_grad(X, Scale=None, Mean=None, Variance=None, Y_grad=None, *, epsilon, begin_norm_axis, ctx):
    arrays = [X, Y_grad, Mean, Variance, *([] if Scale is None else [Scale])]
    if not X.size or not all(a is not None and a.flags.c_contiguous and a.dtype == X.dtype for a in arrays):
        return NotImplemented
    rows, columns = math.prod(X.shape[:begin_norm_axis]), math.prod(X.shape[begin_norm_axis:])
    if columns < 2 or (Scale is None and ctx.wants("Bias@GRAD")):
        return NotImplemented
    key = (rows, columns, epsilon, Scale is not None)
    plan = THREAD.plan(("layer_norm_grad", *key), build_grad, *key)
    if plan is None:
        return NotImplemented
    dx = BUFFERS.take(X.shape)
    grads = {"X_grad": dx}
    if Scale is not None:
        grads |= {"Scale_grad": np.empty(columns, X.dtype), "Bias_grad": np.empty(columns, X.dtype)}
    plan.run(THREAD, *map(address, arrays), *map(address, grads.values()))
    wanted = {name: f"{name.removesuffix('_grad')}@GRAD" for name in grads}
    return {name: grad for name, grad in grads.items() if ctx.wants(wanted[name])}
