"""Dims of tensors that an op reshapes and transposes on the way in or out; -1 is open."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oprack.op import InferShapeContext


def reshaped(ctx: InferShapeContext, dims: Sequence[int], shape: Sequence[int], what: str) -> list[int]:
    """Dims after a reshape: 0 copies a dim, one -1 takes what is left; `shape` empty leaves them as they are."""
    if not shape:
        return list(dims)
    zeros = [i for i, s in enumerate(shape) if s == 0]
    fits = all(i < len(dims) for i in zeros) and min(shape) >= -1 and list(shape).count(-1) <= 1
    ctx.require(fits, f"{what} is {list(shape)} for {list(dims)}; expected sizes, 0 for a dim as it is, one -1 at most")
    out = [dims[i] if s == 0 else s for i, s in enumerate(shape)]
    if min(dims, default=0) < 0:
        return out
    rest = math.prod(s for i, s in enumerate(out) if shape[i] != -1)
    if -1 in shape:
        out[list(shape).index(-1)] = math.prod(dims) // rest if rest else 0
    ctx.require(
        math.prod(out) == math.prod(dims), f"{what} is {list(shape)} for {list(dims)}; expected as many elements"
    )
    return out


def permuted(ctx: InferShapeContext, dims: Sequence[int], axes: Sequence[int], what: str) -> list[int]:
    """Dims in another order; `axes` empty leaves them."""
    if not axes:
        return list(dims)
    ctx.require(
        sorted(axes) == list(range(len(dims))), f"{what} is {list(axes)} for {list(dims)}; expected each dim once"
    )
    return [dims[a] for a in axes]
