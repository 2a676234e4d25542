"""Kernels of reshape2: views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprack.kernel import Array, ArrayModule, KernelSpecialization, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.dims import reshape_dims, to_ints


def _specialize(call: KernelSpecialization) -> Callable[..., Any] | None:
    """A shape that says all itself, but for one dim at most, is what the arrays' own reshape takes."""
    shape = tuple(call.attrs["shape"])
    if call.given("Shape") or call.given("ShapeTensor") or 0 in shape or min(shape, default=1) < -1:
        return None
    empty, xp = call.xp.empty, call.xp

    def run(X: Array, Shape: Array | None = None, ShapeTensor: Sequence[Array] = ()) -> tuple[Array, Array]:
        if not X.size:
            return reshape2(X, shape=shape, xp=xp)
        return X.reshape(shape), empty((0, *X.shape), X.dtype)

    return run


@kernel("reshape2", place=("cpu", "cuda"), view=True, specialize=_specialize)
def reshape2(
    X: Array, Shape: Array | None = None, ShapeTensor: list[Array] | None = None, *, shape: list[int], xp: ArrayModule
) -> tuple[Array, ...]:
    out = X.reshape(reshape_dims("reshape2", X.shape, to_ints(None if ShapeTensor else Shape, ShapeTensor, shape)))
    return out, xp.empty((0, *X.shape), X.dtype)


@kernel("reshape2_grad", place=("cpu", "cuda"), view=True)
def reshape2_grad(Out_grad: Array, XShape: ShapeOnly) -> Array:
    return Out_grad.reshape(XShape.shape[1:])


@kernel("reshape2_grad_grad", place=("cpu", "cuda"), view=True)
def reshape2_grad_grad(DDX: Array, DOut: ShapeOnly) -> Array:
    return DDX.reshape(DOut.shape)
