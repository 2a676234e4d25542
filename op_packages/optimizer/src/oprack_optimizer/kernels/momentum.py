"""Kernels of momentum, merged_momentum and sparse_momentum."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import kernel
from oprack.tensor import SelectedRows

from oprack_optimizer.kernels._update import BOTH, REALS, by_blocks, dense, is_large, rounded, scalar, working


def step(p, grad, velocity, lr, mu, nesterov, method, coefficient, rescale, out=None):
    """(parameter, velocity) after one step. out: memory that the parameter may have."""
    kind = p.dtype.type
    g = grad.astype(p.dtype, copy=False)
    if rescale != 1.0:
        g = g * kind(rescale)
    if method == "l2_decay":
        g = g + kind(coefficient) * p
    if is_large(p):
        return by_blocks(lambda *blocks: _update_block(*blocks, kind(mu), nesterov, lr), (p, g, velocity), 2, out)
    v = velocity * kind(mu) + g
    return p - (g + v * kind(mu) if nesterov else v) * lr, v


def _update_block(given, made, work, mu, nesterov, lr):
    """The same operations in the same order."""
    (p, g, velocity), (new, v) = given, made
    np.multiply(velocity, mu, out=v)
    v += g
    if nesterov:
        np.multiply(v, mu, out=work)
        np.add(g, work, out=work)
        work *= lr
    else:
        np.multiply(v, lr, out=work)
    np.subtract(p, work, out=new)


@kernel("momentum", place=BOTH, dtypes=REALS)
def momentum(
    Param,
    Grad,
    Velocity,
    LearningRate,
    MasterParam=None,
    *,
    mu,
    use_nesterov,
    regularization_method,
    regularization_coeff,
    multi_precision,
    rescale_grad,
    out=None,
):
    p = working(Param, MasterParam, multi_precision)
    rule = mu, use_nesterov, regularization_method, regularization_coeff, rescale_grad
    new, v = step(p, Grad, Velocity, scalar(LearningRate, p.dtype), *rule, out if p is Param else None)
    new, master = rounded(new, Param, MasterParam, multi_precision)
    return new, v, master


@kernel("momentum", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def momentum_rows(
    Param,
    Grad: SelectedRows,
    Velocity,
    LearningRate,
    MasterParam=None,
    *,
    mu,
    use_nesterov,
    regularization_method,
    regularization_coeff,
    multi_precision,
    rescale_grad,
    xp,
):
    p = working(Param, MasterParam, multi_precision)
    rule = mu, use_nesterov, regularization_method, regularization_coeff, rescale_grad
    new, v = step(p, dense(Grad, p.dtype, xp), Velocity, scalar(LearningRate, p.dtype), *rule)
    out, master = rounded(new, Param, MasterParam, multi_precision)
    return out, v, master


@kernel("merged_momentum", place=BOTH, dtypes=REALS)
def merged_momentum(
    Param,
    Grad,
    Velocity,
    LearningRate,
    MasterParam,
    *,
    mu,
    use_nesterov,
    regularization_method,
    regularization_coeff,
    multi_precision,
    rescale_grad,
):
    params, velocities, masters = [], [], []
    for i, param in enumerate(Param):
        master = MasterParam[i] if MasterParam else None
        p = working(param, master, multi_precision)
        lr = scalar(LearningRate[i if len(LearningRate) > 1 else 0], p.dtype)
        method = regularization_method[i] if regularization_method else ""
        coefficient = regularization_coeff[i] if regularization_coeff else 0.0
        new, v = step(p, Grad[i], Velocity[i], lr, mu, use_nesterov, method, coefficient, rescale_grad)
        out, master = rounded(new, param, master, multi_precision)
        params.append(out)
        velocities.append(v)
        masters.append(master)
    return params, velocities, masters


@kernel("sparse_momentum", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def sparse_momentum(
    Param,
    Grad,
    Velocity,
    Index,
    LearningRate,
    Axis=None,
    MasterParam=None,
    *,
    mu,
    use_nesterov,
    regularization_method,
    regularization_coeff,
    multi_precision,
    rescale_grad,
    axis,
    xp,
):
    p = working(Param, MasterParam, multi_precision)
    dim = int(Axis.reshape(-1)[0]) if Axis is not None else axis
    rows = Index.reshape(-1).astype(xp.int64)
    # looking at the indices would wait for a device
    if xp is np and len(rows) and not (0 <= rows.min() and rows.max() < Param.shape[dim]):
        raise InvalidArgumentError(
            f"op sparse_momentum: Index lies in [{rows.min()}, {rows.max()}], but Param has shape {list(Param.shape)} "
            f"and axis is {dim}; expected values in [0, {Param.shape[dim]})"
        )
    full = xp.zeros(p.shape, p.dtype)
    xp.add.at(xp.moveaxis(full, dim, 0), rows, xp.moveaxis(Grad, dim, 0))
    rule = mu, use_nesterov, regularization_method, regularization_coeff, rescale_grad
    new, v = step(p, full, Velocity, scalar(LearningRate, p.dtype), *rule)
    out, master = rounded(new, Param, MasterParam, multi_precision)
    return out, v, master
