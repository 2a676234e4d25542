"""Kernels of cvm and its gradient."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS

_PLACES = ("cpu", "cuda")


@kernel("cvm", place=_PLACES, dtypes=FLOATS)
def cvm(X: Array, CVM: Array, *, use_cvm: bool, xp: ArrayModule) -> Array:
    if not use_cvm:
        return X[:, 2:].copy()
    y = X.copy()
    y[:, :2] = xp.log(X[:, :2] + X.dtype.type(1))
    y[:, 1] -= y[:, 0]
    return y


@kernel("cvm_grad", place=_PLACES, dtypes=FLOATS)
def cvm_grad(X: ShapeOnly, CVM: Array, Y_grad: Array, *, use_cvm: bool, ctx: KernelContext, xp: ArrayModule) -> Array:
    dx = xp.empty(X.shape, Y_grad.dtype)
    dx[:, 2:] = Y_grad[:, 2:] if use_cvm else Y_grad
    lod = ctx.lod("X")
    counts = CVM
    if lod:
        rows = np.diff(lod[0])
        if len(rows) != len(CVM):
            raise InvalidArgumentError(
                f"op cvm_grad: X has {len(rows)} sequences and CVM {len(CVM)} rows; expected a row for each sequence"
            )
        counts = CVM[xp.asarray(np.repeat(np.arange(len(rows)), rows))]
    dx[:, :2] = counts
    return dx
