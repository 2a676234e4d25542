"""Kernels of averages of parameters."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

_MOVE_EVERY = 16384  # steps after which sum_1 is moved to sum_2, so that it stays precise


@kernel("average_accumulates", place=("cpu", "cuda"), dtypes=FLOATS)
def average_accumulates(
    param: Array,
    in_sum_1: Array,
    in_sum_2: Array,
    in_sum_3: Array,
    in_num_accumulates: Array,
    in_old_num_accumulates: Array,
    in_num_updates: Array,
    *,
    average_window: float,
    max_average_window: int,
    min_average_window: int,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    updates = int(in_num_updates.reshape(-1)[0]) + 1
    accumulated = int(in_num_accumulates.reshape(-1)[0]) + 1
    old = int(in_old_num_accumulates.reshape(-1)[0])
    sum_1, sum_2, sum_3 = in_sum_1 + param, in_sum_2.copy(), in_sum_3.copy()
    if updates % _MOVE_EVERY == 0:
        sum_1, sum_2 = xp.zeros_like(sum_1), sum_2 + sum_1
    if accumulated >= min_average_window and accumulated >= min(max_average_window, updates * average_window):
        sum_1, sum_2, sum_3 = xp.zeros_like(sum_1), xp.zeros_like(sum_2), sum_1 + sum_2
        accumulated, old = 0, accumulated
    counts = [
        xp.full(like.shape, n, like.dtype)
        for like, n in ((in_num_accumulates, accumulated), (in_old_num_accumulates, old), (in_num_updates, updates))
    ]
    return (sum_1, sum_2, sum_3, *counts)
