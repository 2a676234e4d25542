"""What tile and expand share."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import InferShapeContext


def set_tiled(ctx: InferShapeContext, name: str, given: Sequence[int | None]) -> None:
    """Shape rule of repetitions along each dim; the shorter of both is filled up with ones in front."""
    dims = ctx.dim("X")
    rank = max(len(dims), len(given))
    full, times = (1,) * (rank - len(dims)) + tuple(dims), [1] * (rank - len(given)) + list(given)
    out = [-1 if t is None or d < 0 else d * t for d, t in zip(full, times, strict=True)]
    ctx.require(all(t is None or t > 0 for t in times), f"{name} is {times}; expected positive numbers")
    ctx.set_dim("Out", out)
    if dims and out[0] == dims[0]:
        ctx.share_lod("X", "Out")
