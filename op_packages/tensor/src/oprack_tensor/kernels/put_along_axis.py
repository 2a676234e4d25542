"""Kernels of put_along_axis."""

from __future__ import annotations

import numpy as np
from oprack.kernel import kernel

from oprack_tensor.kernels._index import check_index, grid

_COMBINE = {
    "add": np.add,
    "mean": np.add,
    "mul": np.multiply,
    "multiply": np.multiply,
    "amin": np.minimum,
    "amax": np.maximum,
}


def _neutral(reduce, dtype):
    if reduce in ("amin", "amax"):
        info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        return info.max if reduce == "amin" else info.min
    return 1 if reduce in ("mul", "multiply") else 0


def _writes(shape, places, include_self):
    """How many values meet in each place."""
    count = np.zeros(shape, np.int64)
    np.add.at(count, places, 1)
    return np.maximum(count + include_self, 1)


@kernel("put_along_axis")
def put_along_axis(Input, Index, Value, *, Axis, Reduce, Include_self):
    check_index("put_along_axis", "Index", Index, Input.shape[Axis], np, low=-Input.shape[Axis])
    out, places = Input.copy(), grid(Index, Axis, np)
    value = np.broadcast_to(Value, Index.shape)
    if Reduce == "assign":
        out[places] = value
        return out
    if not Include_self:
        out[places] = _neutral(Reduce, out.dtype)
    _COMBINE[Reduce].at(out, places, value)
    if Reduce == "mean":
        count = np.where(_hit(out.shape, places), _writes(out.shape, places, Include_self), 1)
        out = (out / count if out.dtype.kind == "f" else out // count).astype(Input.dtype)
    return out


def _hit(shape, places):
    hit = np.zeros(shape, bool)
    hit[places] = True
    return hit


@kernel("put_along_axis_grad")
def put_along_axis_grad(Input, Index, Value, Result, Result_grad, *, Axis, Reduce, Include_self):
    places = grid(Index, Axis, np)
    hit = _hit(Input.shape, places)
    value, flow = np.broadcast_to(Value, Index.shape), Result_grad[places]
    if Reduce == "assign":
        # only the value written last is in the result
        order = np.arange(Index.size).reshape(Index.shape)
        last = np.zeros(Input.shape, np.int64)
        last[places] = order
        grad_self, grad_value = np.where(hit, 0, Result_grad), np.where(last[places] == order, flow, 0)
        return grad_self.astype(Input.dtype), grad_value.astype(Input.dtype)
    if Reduce == "add":
        grad_self, grad_value = Result_grad, flow
    elif Reduce == "mean":
        count = _writes(Input.shape, places, Include_self)
        grad_self, grad_value = Result_grad / count, flow / count[places]
    elif Reduce in ("mul", "multiply"):
        with np.errstate(divide="ignore", invalid="ignore"):
            grad_self, grad_value = Result_grad * Result / Input, flow * Result[places] / value
    else:
        winners = np.zeros(Input.shape, np.int64)
        np.add.at(winners, places, value == Result[places])
        winners = np.maximum(winners + ((Input == Result) & Include_self), 1)
        grad_self = np.where(Input == Result, Result_grad / winners, 0)
        grad_value = np.where(value == Result[places], flow / winners[places], 0)
    grad_self = np.where(hit, grad_self if Include_self else 0, Result_grad)
    return grad_self.astype(Input.dtype), grad_value.astype(Input.dtype)
