"""What update kernels share: mixed precision, one-element inputs, and SelectedRows gradients."""

from __future__ import annotations

from oprack.device import row_totals
from oprack.types import FLOATS, HALF_FLOATS

BOTH = ("cpu", "cuda")
REALS = FLOATS | HALF_FLOATS


def working(param, master, multi_precision):
    """The copy of a parameter that is updated: the master weights of a 16-bit one, else the parameter itself."""
    return master if _has_master(param, master, multi_precision) else param


def _has_master(param, master, multi_precision):
    return multi_precision and master is not None and master.dtype != param.dtype


def scalar(tensor, dtype):
    """A one-element tensor as a 0-d array of a dtype; it is not copied from a device."""
    return tensor.reshape(-1)[:1].reshape(()).astype(dtype, copy=False)


def rounded(new, param, master, multi_precision):
    """(ParamOut, MasterParamOut) from the updated working copy."""
    if _has_master(param, master, multi_precision):
        return new.astype(param.dtype), new
    return new, None


def number(tensor, value):
    """An attribute that a one-element tensor may override."""
    return value if tensor is None else float(tensor.reshape(-1)[0])


def dense(grad, dtype, xp):
    """A SelectedRows gradient as an array: equal rows added, the others 0."""
    totals = row_totals(grad, xp)
    full = xp.zeros(grad.shape, dtype)
    full[totals.rows] = totals.value
    return full


def shrink(x, lr, l1, l2, xp):
    """Proximal step: sign(x) max(|x| - lr l1, 0) / (1 + lr l2)."""
    kind = x.dtype.type
    return xp.sign(x) * xp.maximum(abs(x) - lr * kind(l1), kind(0)) / (kind(1) + lr * kind(l2))
