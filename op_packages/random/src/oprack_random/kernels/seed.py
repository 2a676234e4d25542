"""Kernel of seed."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel


@kernel("seed", place=("cpu", "cuda"), dtypes=("int32",))
def draw_seed(*, seed: int, ctx: KernelContext, xp: ArrayModule) -> Array:
    """The attribute, or a number drawn."""
    value = seed or int(ctx.generator(0).integers(1, 1 << 31))
    return xp.full(1, value, xp.int32)
