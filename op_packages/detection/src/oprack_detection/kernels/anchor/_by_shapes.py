"""Anchors follow from shapes and attributes: a plan computes them once for each."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from oprack.cache import Cache
from oprack.kernel import Array, KernelSpecialization
from oprack.kernel.specialization import Specialize

# Shapes come with the data.
_SHAPES = 1024


def by_shapes(function: Callable[..., tuple[Array, ...]]) -> Specialize:
    """`specialize` of a kernel that reads the shapes of its inputs alone, and the dtype of the first one."""

    def specialize(call: KernelSpecialization) -> Callable[..., Any] | None:
        if call.xp is not np:
            return None
        wanted = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
        compute = partial(function, **{n: call.attrs[n] for n in wanted if n != "xp"}, xp=np)
        known = Cache(_SHAPES, "anchors")

        def run(Input: Array, *others: Array) -> tuple[Array, ...]:
            key = (Input.dtype, Input.shape, *(x.shape for x in others))
            found: tuple[Array, ...] | None = known[key]
            if found is None:
                found = compute(Input, *others)
                known.keep(key, found, sum(array.nbytes for array in found))
            # copies: who reads them last may write to them
            return tuple([array.copy() for array in found])

        return run

    return specialize
