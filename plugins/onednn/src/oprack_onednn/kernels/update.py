"""sgd, momentum and adam: what NumPy does in several rounds over memory is done in one, by all threads (update.c).

The numbers are those of NumPy's kernels, bit by bit.
"""

from __future__ import annotations

from ctypes import Structure, addressof, c_float, c_int64, c_void_p
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.kernel import Array
from oprack.kernel.commit import Commit

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import TRAINING_BUFFERS
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.operands import FLOAT, address
from oprack_onednn.kernels.declare import onednn_kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

_SGD, _MOMENTUM, _NESTEROV, _ADAM = range(4)
_MISALIGNED = FLOAT.itemsize - 1
# Elements from which on threads share an update: one core goes over fewer of them before another one has woken up.
_SHARED = 1 << 15


class _Update(Structure):
    """The struct of update.c, field by field."""

    _fields_ = (
        *((name, c_int64) for name in ("rule", "count")),
        *((name, c_void_p) for name in ("param", "grad", "first", "second", "new_param", "new_first", "new_second")),
        ("numbers", c_float * 6),
    )


def _updated(
    rule: int,
    param: Array,
    grad: Array,
    state: Sequence[Array],
    out: Array | None,
    numbers: Sequence[float | np.floating[Any]],
    others: Sequence[Array | None] = (),
) -> Commit | None:
    """Write the new parameter, its new state and `others`; None where NumPy has to do it.

    The kernel keeps the commit in a local variable until it returns: an interruption between the two finds it there.

    Args:
        out: Memory that the parameter may have.
        others: What else the kernel returns.
    """
    run = RUNNER.update
    given = (param, grad, *state)
    if run is None or not param.size or not THREAD.ready():
        return None
    # native code trusts addresses: whoever calls may bring arrays of other dtypes than the kernel was chosen for
    if any(a.dtype != FLOAT or a.shape != param.shape or not a.flags.c_contiguous for a in given):
        return None
    if any(address(a) & _MISALIGNED for a in given):
        return None
    if (
        out is None
        or out.dtype != FLOAT
        or out.shape != param.shape
        or not (out.flags.c_contiguous and out.flags.writeable)
    ):
        # new memory: the parameter takes it over, and the next step may write to it
        out = np.empty(param.shape, FLOAT)
    made = [out, *(TRAINING_BUFFERS.take(param.shape) for _ in state)]
    absent = [None] * (2 - len(state))
    places = (*map(address, given), *absent, *map(address, made), *absent)
    update = _Update(rule, param.size, *places, tuple(numbers))
    commit = Commit((*made, *others))
    commit(run, addressof(update), THREAD.max_threads if param.size >= _SHARED else 1)
    return commit


def _number(array: Array) -> np.float32:
    """The number in a tensor of one element."""
    found: np.float32 = array.reshape(-1)[0]
    return found


@onednn_kernel("sgd", bare=True)
def sgd(
    Param: Array,
    LearningRate: Array,
    Grad: Array,
    MasterParam: Array | None = None,
    *,
    out: Array | None = None,
) -> tuple[Array | None, ...]:
    if MasterParam is not None or not LearningRate.size:
        return NotImplemented
    commit = _updated(_SGD, Param, Grad, (), out, (_number(LearningRate),), (None,))
    return NotImplemented if commit is None else commit.result


@onednn_kernel("momentum", bare=True)
def momentum(
    Param: Array,
    Grad: Array,
    Velocity: Array,
    LearningRate: Array,
    MasterParam: Array | None = None,
    *,
    mu: float,
    use_nesterov: bool,
    regularization_method: str,
    regularization_coeff: float,
    rescale_grad: float,
    out: Array | None = None,
) -> tuple[Array | None, ...]:
    if MasterParam is not None or not LearningRate.size:
        return NotImplemented
    decay = regularization_coeff if regularization_method == "l2_decay" else 0.0
    numbers = (_number(LearningRate), mu, rescale_grad, decay)
    commit = _updated(_NESTEROV if use_nesterov else _MOMENTUM, Param, Grad, (Velocity,), out, numbers, (None,))
    return NotImplemented if commit is None else commit.result


@onednn_kernel("adam", bare=True)
def adam(
    Param: Array,
    Grad: Array,
    LearningRate: Array,
    Moment1: Array,
    Moment2: Array,
    Beta1Pow: Array,
    Beta2Pow: Array,
    MasterParam: Array | None = None,
    SkipUpdate: Array | None = None,
    Beta1Tensor: Array | None = None,
    Beta2Tensor: Array | None = None,
    EpsilonTensor: Array | None = None,
    *,
    beta1: float,
    beta2: float,
    epsilon: float,
    use_global_beta_pow: bool,
    out: Array | None = None,
) -> tuple[Array | None, ...]:
    if any(a is not None for a in (MasterParam, SkipUpdate, Beta1Tensor, Beta2Tensor, EpsilonTensor)):
        return NotImplemented
    if not (LearningRate.size and Beta1Pow.size and Beta2Pow.size) or {Beta1Pow.dtype, Beta2Pow.dtype} != {FLOAT}:
        return NotImplemented
    kind = np.float32
    correction = np.sqrt(kind(1) - _number(Beta2Pow))
    rate = _number(LearningRate) * correction / (kind(1) - _number(Beta1Pow))
    numbers = (beta1, 1 - beta1, beta2, 1 - beta2, kind(epsilon) * correction, rate)
    powers = (Beta1Pow, kind(beta1)), (Beta2Pow, kind(beta2))
    new_powers = [p.copy() if use_global_beta_pow else p * beta for p, beta in powers]
    commit = _updated(_ADAM, Param, Grad, (Moment1, Moment2), out, numbers, (*new_powers, None))
    return NotImplemented if commit is None else commit.result
