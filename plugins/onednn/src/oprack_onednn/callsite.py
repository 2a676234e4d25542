"""One op of a program: its plan for each shape that it meets, with what stays the same set once.

A kernel that is called again and again for one op would otherwise look up its plan by shapes and attributes, and tell
oneDNN every address, each time; for small images that takes longer than the primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import FLOAT, Outlet, Weights, address, is_constant, last_strides
from oprack_onednn.plan import THREAD, BoundPlan, OfThreads, Plan

SHAPES = 64
"""Shapes whose bound plans one op keeps, those of all threads counted."""


class Planned:
    """A plan for arrays of some shapes; its external memory is that of the given inputs in the op's order, and Output.

    weights: of inputs that the plan wants in another layout, by their place among those that are given. shape: of the
    result, [N, C, *spatial] in channels-last memory, or less dims in row-major memory.
    """

    plan: Plan
    shape: tuple[int, ...]
    weights: dict[int, Weights]

    def outlet(self) -> Outlet:
        """Makes results."""
        strides = last_strides(self.shape) if len(self.shape) > 2 else (self.shape[-1], 1)[-len(self.shape) :]
        return Outlet(self.shape, tuple(FLOAT.itemsize * s for s in strides))

    def address(self, i: int, array: np.ndarray) -> int:
        """Address of input number i as the plan wants it."""
        weights = self.weights.get(i)
        return address(array) if weights is None else weights.address(array)

    def bound(self, fixed: Sequence[int]) -> Callable[..., None]:
        """A function of the addresses of inputs and result that are not fixed. fixed: of the inputs, 0 for others."""
        return BoundPlan(self.plan, [*fixed, 0]).run

    def run(self, *arrays: np.ndarray | None) -> np.ndarray:
        """The result. arrays: the op's inputs in order; those that are None are left out."""
        result, out = self.outlet().take()
        given = [a for a in arrays if a is not None]
        self.plan.run(*(self.address(i, a) for i, a in enumerate(given)), out)
        return result


_FREE = object()


class _Bound:
    """A plan with the addresses of an op's parameters. others: the inputs but the first, _FREE for those that vary."""

    __slots__ = ("others", "run", "take")

    def __init__(self, planned: Planned, arrays: Sequence[Any], free: Collection[int]) -> None:
        given = [i for i, a in enumerate(arrays) if a is not None]
        fixed = [0 if i in free else planned.address(n, arrays[i]) for n, i in enumerate(given)]
        self.run = planned.bound(fixed)
        self.take = planned.outlet().take
        self.others = [_FREE if i in free else a for i, a in enumerate(arrays)][1:]


def call_site(
    find: Callable[..., Planned | None], otherwise: Callable[..., Any], free: Sequence[int] = (0,)
) -> Callable[..., Any]:
    """A function of an op's inputs that computes its result.

    find: gives the plan for inputs, or None. otherwise: computes the result of inputs that it is None for, or whose
    parameters may change. free: the inputs that are no parameters, in order; the first input is one of them.
    """
    entries = OfThreads()
    varying = [i - 1 for i in free[1:]]

    def enter(key: tuple[Any, ...], arrays: tuple[Any, ...]) -> _Bound | None:
        planned = find(*arrays)
        constant = all(a is None or i in free or is_constant(a) for i, a in enumerate(arrays))
        if len(entries) >= SHAPES:
            entries.clear()
        bound = _Bound(planned, arrays, free) if planned is not None and constant else None
        entries.keep(key, bound)
        return bound

    def run(x: Any, *others: Any) -> Any:
        if THREAD.revision != LIBRARY.threads_revision:
            if not LIBRARY.usable():
                return otherwise(x, *others)
            THREAD.open()
        key: tuple[Any, ...] = (THREAD.setting, x.shape, x.strides)
        for i in varying:
            key += (others[i].shape, others[i].strides)
        bound = entries.get(key)
        if bound is None:
            # not met yet, or not served
            bound = None if key in entries else enter(key, (x, *others))
        else:
            for known, given in zip(bound.others, others, strict=True):
                if known is not given and known is not _FREE:
                    bound = enter(key, (x, *others))
                    break
        if bound is None:
            return otherwise(x, *others)
        y, out = bound.take()
        if varying:
            bound.run(address(x), *[address(others[i]) for i in varying], out)
        else:
            bound.run(address(x), out)
        return y

    return run
