"""What update kernels share: mixed precision, one-element inputs, and SelectedRows gradients."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np
from oprack.device import row_totals
from oprack.kernel import Array, ArrayModule
from oprack.kernel.commit import Commit
from oprack.tensor import SelectedRows
from oprack.types import FLOATS, HALF_FLOATS

from oprack_optimizer.kernels._threads import apart, in_turns

BOTH = ("cpu", "cuda")
REALS = FLOATS | HALF_FLOATS
# Elements that are updated at a time: what is read and written for them stays in a core's cache.
BLOCK = 1 << 17
# Blocks for each thread at least: to call one takes as long as half a block.
_SHARED = 2


def working(param: Array, master: Array | None, multi_precision: bool) -> Array:
    """The copy of a parameter that is updated: the master weights of a 16-bit one, else the parameter itself."""
    return master if _is_master(master, param, multi_precision) else param


def _is_master(master: Array | None, param: Array, multi_precision: bool) -> TypeGuard[Array]:
    return multi_precision and master is not None and master.dtype != param.dtype


def scalar(tensor: Array, dtype: np.dtype[Any]) -> Array:
    """A one-element tensor as a 0-d array of a dtype; it is not copied from a device."""
    return tensor.reshape(-1)[:1].reshape(()).astype(dtype, copy=False)


def rounded(new: Array, param: Array, master: Array | None, multi_precision: bool) -> tuple[Array, Array | None]:
    """(ParamOut, MasterParamOut) from the updated working copy."""
    if _is_master(master, param, multi_precision):
        return new.astype(param.dtype), new
    return new, None


def number(tensor: Array | None, value: float) -> float:
    """An attribute that a one-element tensor may override."""
    return value if tensor is None else float(tensor.reshape(-1)[0])


def dense(grad: SelectedRows, dtype: np.dtype[Any], xp: ArrayModule) -> Array:
    """A SelectedRows gradient as an array: equal rows added, the others 0."""
    totals = row_totals(grad, xp)
    full = xp.zeros(grad.shape, dtype)
    full[totals.rows] = totals.value
    return full


def shrink(x: Array, lr: Array, l1: float, l2: float, xp: ArrayModule) -> Array:
    """Proximal step: sign(x) max(|x| - lr l1, 0) / (1 + lr l2)."""
    kind = x.dtype.type
    return xp.sign(x) * xp.maximum(abs(x) - lr * kind(l1), kind(0)) / (kind(1) + lr * kind(l2))


def is_large(p: Array) -> bool:
    """Whether a parameter is updated in blocks."""
    return isinstance(p, np.ndarray) and p.size > BLOCK


def by_blocks(
    update: Callable[..., Any],
    given: tuple[Array, ...],
    count: int,
    out: Array | None = None,
    others: Sequence[Array | None] = (),
    commit: Commit | None = None,
) -> tuple[Array, ...]:
    """`count` new arrays like the first one given, made block by block by update(given, made, work).

    It gets rows of all arrays and writes to those of the new ones; work: memory of a block's size. out: the memory of
    the first given array, when the first new one may take it, and then others: what the kernel returns beside the new
    arrays, and commit: the kernel's, which learns when that memory is written.
    Threads take turns at the blocks of a large array, since one core alone can't read memory as fast as it goes.
    """
    first = given[0]
    if out is not None and not (out.flags.c_contiguous and out.dtype == first.dtype and out.shape == first.shape):
        out = None
    made = [np.empty(first.shape, first.dtype) if out is None or i else out for i in range(count)]
    sources = [np.ascontiguousarray(a).reshape(-1) for a in given]
    targets, blocks = [a.reshape(-1) for a in made], deque(range(0, first.size, BLOCK))
    state, finished, total = np.geterr(), list[int](), len(blocks)  # the state of this thread alone

    def some() -> None:
        work = np.empty(BLOCK, first.dtype)
        with np.errstate(**state):
            while blocks:
                try:
                    i = blocks.popleft()
                except IndexError:
                    return  # another thread took the last one
                rows = slice(i, i + BLOCK)
                parts = [a[rows] for a in targets]
                try:
                    update([a[rows] for a in sources], parts, work[: parts[0].size])
                finally:
                    finished.append(i)

    if out is None:
        in_turns(some, total // _SHARED)
        return tuple(made)
    commit = Commit() if commit is None else commit
    commit.result = (*made, *others)
    try:
        apart(some, total // _SHARED)
        commit.done = True
    except BaseException:
        # Of a parameter in place, half of which is new, nobody could make anything: the step is taken to its end.
        some()
        while len(finished) < total:
            time.sleep(1e-4)
        commit.done = True
        raise
    return tuple(made)
