"""Kernels of put_along_axis."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.kernel import Array, ArrayModule, attr, kernel

from oprack_tensor.kernels._index import check_index, grid

_COMBINE = {"mean": "add", "mul": "multiply", "amin": "minimum", "amax": "maximum"}
# no device multiplies atomically
_ATOMIC = attr("Reduce").isin("assign", "add", "mean", "amin", "amax")


def _neutral(reduce: str, dtype: np.dtype[Any]) -> Array | int:
    if reduce in ("amin", "amax"):
        info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        return info.max if reduce == "amin" else info.min
    return 1 if reduce in ("mul", "multiply") else 0


def _writes(shape: tuple[int, ...], places: tuple[Array, ...], include_self: bool, xp: ArrayModule) -> Array:
    """How many values meet in each place."""
    count = xp.zeros(shape, xp.int64)
    xp.add.at(count, places, 1)
    return xp.maximum(count + include_self, 1)


def _last(shape: tuple[int, ...], places: tuple[Array, ...], index: Array, xp: ArrayModule) -> tuple[Array, Array]:
    """(number of the value that is written last to each place, or -1; the numbers of all values)."""
    order = xp.arange(index.size).reshape(index.shape)
    last = xp.full(shape, -1, xp.int64)
    xp.maximum.at(last, places, order)
    return last, order


def _put(
    Input: Array, Index: Array, Value: Array, Axis: int, Reduce: str, Include_self: bool, xp: ArrayModule
) -> Array:
    check_index("put_along_axis", "Index", Index, Input.shape[Axis], xp, low=-Input.shape[Axis])
    out, places = Input.copy(), grid(Index, Axis, xp)
    value = xp.broadcast_to(Value, Index.shape)
    if Reduce == "assign":
        last, _ = _last(Input.shape, places, Index, xp)
        chosen = value.reshape(-1)[xp.maximum(last, 0)] if Index.size else out
        return xp.where(last >= 0, chosen, out)
    if not Include_self:
        out[places] = _neutral(Reduce, out.dtype)
    getattr(xp, _COMBINE.get(Reduce, Reduce)).at(out, places, value)
    if Reduce == "mean":
        count = xp.where(_hit(out.shape, places, xp), _writes(out.shape, places, Include_self, xp), 1)
        out = (out / count if out.dtype.kind == "f" else out // count).astype(Input.dtype)
    return out


@kernel("put_along_axis")
def put_along_axis(
    Input: Array, Index: Array, Value: Array, *, Axis: int, Reduce: str, Include_self: bool, xp: ArrayModule
) -> Array:
    return _put(Input, Index, Value, Axis, Reduce, Include_self, xp)


@kernel("put_along_axis", place="cuda", when=_ATOMIC, deterministic=False)
def put_along_axis_atomic(
    Input: Array, Index: Array, Value: Array, *, Axis: int, Reduce: str, Include_self: bool, xp: ArrayModule
) -> Array:
    return _put(Input, Index, Value, Axis, Reduce, Include_self, xp)


def _hit(shape: tuple[int, ...], places: tuple[Array, ...], xp: ArrayModule) -> Array:
    hit = xp.zeros(shape, bool)
    hit[places] = True
    return hit


@kernel("put_along_axis_grad", place=("cpu", "cuda"))
def put_along_axis_grad(
    Input: Array,
    Index: Array,
    Value: Array,
    Result: Array,
    Result_grad: Array,
    *,
    Axis: int,
    Reduce: str,
    Include_self: bool,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    places = grid(Index, Axis, xp)
    hit = _hit(Input.shape, places, xp)
    value, flow = xp.broadcast_to(Value, Index.shape), Result_grad[places]
    if Reduce == "assign":
        # only the value written last is in the result
        last, order = _last(Input.shape, places, Index, xp)
        grad_self, grad_value = xp.where(hit, 0, Result_grad), xp.where(last[places] == order, flow, 0)
        return grad_self.astype(Input.dtype), grad_value.astype(Input.dtype)
    if Reduce == "add":
        grad_self, grad_value = Result_grad, flow
    elif Reduce == "mean":
        count = _writes(Input.shape, places, Include_self, xp)
        grad_self, grad_value = Result_grad / count, flow / count[places]
    elif Reduce in ("mul", "multiply"):
        with np.errstate(divide="ignore", invalid="ignore"):
            grad_self, grad_value = Result_grad * Result / Input, flow * Result[places] / value
    else:
        winners = xp.zeros(Input.shape, xp.int64)
        xp.add.at(winners, places, (value == Result[places]).astype(xp.int64))
        winners = xp.maximum(winners + ((Input == Result) & Include_self), 1)
        grad_self = xp.where(Input == Result, Result_grad / winners, 0)
        grad_value = xp.where(value == Result[places], flow / winners[places], 0)
    grad_self = xp.where(hit, grad_self if Include_self else 0, Result_grad)
    return grad_self.astype(Input.dtype), grad_value.astype(Input.dtype)
