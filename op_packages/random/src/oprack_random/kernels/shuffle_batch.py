"""Kernels of shuffle_batch and of its gradient."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, KernelContext, kernel


@kernel("shuffle_batch", place=("cpu", "cuda"))
def shuffle_batch(
    X: Array, Seed: Array, *, startup_seed: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array, Array, Array]:
    """Rows in a random order."""
    given = int(Seed.reshape(-1)[0]) if Seed.size else 0
    generator = ctx.generator(given if given > 0 else startup_seed)
    rows = X.reshape(math.prod(X.shape[:-1]), X.shape[-1])
    places = xp.asarray(generator.permutation(len(rows)))
    out = xp.empty_like(rows)
    out[places] = rows
    seed = xp.asarray(generator.integers(1, 1 << 31, 1))
    return out.reshape(X.shape), places.astype(xp.int64), seed.astype(xp.int64)


@kernel("shuffle_batch_grad", place=("cpu", "cuda"))
def shuffle_batch_grad(ShuffleIdx: Array, Out_grad: Array) -> Array:
    """Rows back where they came from."""
    shape = Out_grad.shape
    return Out_grad.reshape(math.prod(shape[:-1]), shape[-1])[ShuffleIdx].reshape(shape)
