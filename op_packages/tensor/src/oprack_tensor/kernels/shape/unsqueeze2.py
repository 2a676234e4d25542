"""Kernels of unsqueeze2: views."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.dims import to_ints, unsqueeze_dims


@kernel("unsqueeze2", place=("cpu", "cuda"), view=True)
def unsqueeze2(
    X: Array,
    AxesTensor: Array | None = None,
    AxesTensorList: list[Array] | None = None,
    *,
    axes: list[int],
    xp: ArrayModule,
) -> tuple[Array, Array]:
    out = X.reshape(unsqueeze_dims("unsqueeze2", X.shape, to_ints(AxesTensor, AxesTensorList, axes)))
    return out, xp.empty((0, *X.shape), X.dtype)


@kernel("unsqueeze2_grad", place=("cpu", "cuda"), view=True)
def unsqueeze2_grad(Out_grad: Array, XShape: ShapeOnly) -> Array:
    return Out_grad.reshape(XShape.shape[1:])
