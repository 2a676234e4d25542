"""Kernel of random_crop."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, KernelContext, kernel


@kernel("random_crop", place=("cpu", "cuda"))
def random_crop(
    X: Array, Seed: Array, *, shape: list[int], startup_seed: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array, Array]:
    """One gather, with a shift of its own for each instance and dim."""
    given = int(Seed.reshape(-1)[0]) if Seed.size else 0
    generator = ctx.generator(given if given > 0 else startup_seed)
    lead = X.shape[: X.ndim - len(shape)]
    count = math.prod(lead)
    places = [xp.arange(count).reshape(-1, *[1] * len(shape))]
    for i, (size, dim) in enumerate(zip(shape, X.shape[len(lead) :], strict=True)):
        first = xp.asarray(generator.integers(0, dim - size + 1, count)).reshape(-1, *[1] * len(shape))
        places.append(first + xp.arange(size).reshape([-1 if j == i else 1 for j in range(len(shape))]))
    seed = xp.asarray(generator.integers(1, 1 << 31, 1)).astype(xp.int64)
    return X.reshape(count, *X.shape[len(lead) :])[tuple(places)].reshape(*lead, *shape), seed
