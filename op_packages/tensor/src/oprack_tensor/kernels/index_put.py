"""Kernels of index_put and of its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels._index import check_index
from oprack_tensor.kernels._reduce import sum_to


def _places(shape: tuple[int, ...], indices: Sequence[Array], xp: ArrayModule) -> tuple[Any, ...]:
    """Indices of integers alone. Raises InvalidArgumentError for truth values of other dims, or integers beyond x."""
    found: list[Any] = []
    for index in indices:
        at = len(found)
        if index.dtype.kind == "b":
            if index.shape != shape[at : at + index.ndim]:
                raise InvalidArgumentError(
                    f"op index_put: truth values of shape {list(index.shape)} choose from dim {at} on of x, of shape "
                    f"{list(shape)}; expected {list(shape[at : at + index.ndim])}"
                )
            found += xp.nonzero(index)
        else:
            if at < len(shape):
                check_index("index_put", f"indices[{at}]", index, shape[at], xp, low=-shape[at])
            found.append(index)
    if len(found) > len(shape):
        raise InvalidArgumentError(
            f"op index_put: {len(found)} indices for x of shape {list(shape)}; expected at most its rank"
        )
    return tuple(found)


@kernel("index_put", place=("cpu", "cuda"), deterministic={"cpu"})
def index_put(
    x: Array, indices: list[Array], value: Array, *, accumulate: bool, out: Array | None = None, xp: ArrayModule
) -> Array:
    """x with value put, or added, at the places."""
    places = _places(x.shape, indices, xp)
    out = x.copy() if out is None else out
    if accumulate:
        xp.add.at(out, places, value)
    else:
        out[places] = value
    return out


@kernel("index_put_grad", place=("cpu", "cuda"))
def index_put_grad(
    x: ShapeOnly,
    indices: list[Array],
    value: ShapeOnly,
    out_grad: Array,
    *,
    accumulate: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Any]:
    """out@GRAD without the places that were replaced, and what is there."""
    places, by_x = _places(out_grad.shape, indices, xp), None
    if ctx.wants("x@GRAD"):
        by_x = out_grad.copy()
        if not accumulate:
            by_x[places] = 0
    return {
        "x_grad": by_x,
        "value_grad": sum_to(out_grad[places], value.shape, xp) if ctx.wants("value@GRAD") else None,
    }
