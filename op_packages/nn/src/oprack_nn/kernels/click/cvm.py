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


def _instances(ctx: KernelContext, count: int) -> np.ndarray:
    """The instance of each row of X."""
    lod = ctx.lod("X")
    if not lod or len(lod[0]) != count + 1:
        raise InvalidArgumentError(
            f"op cvm_grad: X has LoD {lod} and CVM {count} rows; expected a row of CVM for each row of X, or for "
            "each of its sequences"
        )
    return np.repeat(np.arange(count), np.diff(lod[0]))


@kernel("cvm_grad", place=_PLACES, dtypes=FLOATS)
def cvm_grad(X: ShapeOnly, CVM: Array, Y_grad: Array, *, use_cvm: bool, ctx: KernelContext, xp: ArrayModule) -> Array:
    dx = xp.empty(X.shape, Y_grad.dtype)
    dx[:, 2:] = Y_grad[:, 2:] if use_cvm else Y_grad
    dx[:, :2] = CVM if len(CVM) == len(dx) else CVM[xp.asarray(_instances(ctx, len(CVM)))]
    return dx
