"""Names of dims, from which rules of splitting make signatures: dims of one name are split together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from oprack.op.sbp_signature import SbpContext

Letters = Sequence[str | None] | str
"""A name for each dim of a tensor; None, or "." in a text of names, for a dim that is never split."""


def letters(rank: int, start: str = "a") -> list[str | None]:
    """Names for the dims of a tensor: "a", "b" and so on."""
    return [chr(ord(start) + k) for k in range(rank)]


def broadcast_names(ctx: SbpContext, x: str, y: str, out: str) -> tuple[list[str | None], list[str | None]]:
    """Names of the dims of two inputs that are broadcast to the shape of an output, with Paddle's attribute `axis`."""
    xs, ys, outs = ctx.dim(x), ctx.dim(y), ctx.dim(out)
    axis = ctx.attr("axis", -1)
    axis = -1 if axis is None else axis

    def names(shape: Sequence[int], smaller: bool) -> list[str | None]:
        # From dim `axis` on, where trailing dims of size 1 may hang over.
        start = axis if smaller and axis >= 0 and len(xs) != len(ys) else len(outs) - len(shape)
        return [
            chr(ord("a") + at) if 0 <= at < len(outs) and size == outs[at] and size != 1 else None
            for at, size in enumerate(shape, start)
        ]

    return names(xs, len(xs) < len(ys)), names(ys, len(ys) < len(xs))


def merged_names(
    source: Sequence[int], target: Sequence[int]
) -> tuple[list[str | None], list[str | None], dict[str, int]]:
    """Names of the dims of a tensor before and after a reshape: a dim that is split has to stay the first of its group.

    Dims are grouped where products of sizes meet. The outermost dims of two groups get one name. If their sizes are
    equal, a part of one is a part of the other; else that is so for as many equal parts as divide both sizes.

    Args:
        source: The shape before.
        target: The shape after.

    Returns:
        Names before, names after, and for names of dims of two sizes the greatest common divisor of these.
    """
    before: list[str | None] = [None] * len(source)
    after: list[str | None] = [None] * len(target)
    shared: dict[str, int] = {}
    for i, j in _groups(source, target):
        both = math.gcd(source[i], target[j])
        if both > 1:
            before[i] = after[j] = name = f"g{i}"
            if source[i] != target[j]:
                shared[name] = both
    return before, after, shared


def _groups(source: Sequence[int], target: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The outermost dims of groups of one product; none behind the first group that does not meet."""
    i = j = 0
    while i < len(source) and j < len(target):
        if source[i] == 1 or target[j] == 1:  # a dim of size 1 belongs to any group
            i, j = i + (source[i] == 1), j + (target[j] == 1)
            continue
        a, b, start_i, start_j = source[i], target[j], i, j
        while a != b and (i + 1 < len(source) or j + 1 < len(target)):
            if a < b and i + 1 < len(source):
                i += 1
                a *= source[i]
            elif j + 1 < len(target):
                j += 1
                b *= target[j]
            else:
                break
        if a != b:
            return
        yield start_i, start_j
        i, j = i + 1, j + 1


def product_names(
    x: Sequence[int], y: Sequence[int], out: Sequence[int], trans_x: bool, trans_y: bool
) -> tuple[list[str | None], list[str | None], list[str | None]]:
    """Names of the dims of X, Y and Out of a product of matrices, with batch dims that may be broadcast."""
    batch = letters(max(len(x), len(y)) - 2)

    def with_batch(shape: Sequence[int], last: list[str | None]) -> list[str | None]:
        own = batch[len(batch) - (len(shape) - 2) :] if len(shape) > 2 else []
        return [*(n if size != 1 else None for n, size in zip(own, shape, strict=False)), *last]

    rows: list[str | None] = ["k"] if len(x) == 1 else ["k", "m"] if trans_x else ["m", "k"]
    columns: list[str | None] = ["k"] if len(y) == 1 else ["n", "k"] if trans_y else ["k", "n"]
    xs, ys = with_batch(x, rows), with_batch(y, columns)
    outs = [n if n in xs or n in ys else None for n in batch]
    outs += (["m"] if len(x) > 1 else []) + (["n"] if len(y) > 1 else [])
    return xs, ys, outs if len(outs) == len(out) else [None] * len(out)
