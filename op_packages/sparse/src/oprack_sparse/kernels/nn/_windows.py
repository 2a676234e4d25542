"""Windows over listed points: which point meets which place of which window."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array
from oprack.tensor import SparseCooTensor

from oprack_sparse.kernels._patterns import coordinates, numbered


@dataclass(frozen=True)
class Pairs:
    """Pairs of a point of the input and a point of the output, sorted by the place in the window.

    Attributes:
        indices: Coordinates of the points of the output, sorted.
        rulebook: Int32 [3, pairs]: place in the window, point of the input, point of the output.
        counter: Int32: pairs for each place.
    """

    indices: Array
    rulebook: Array
    counter: Array


def pairs(
    x: SparseCooTensor,
    sizes: Sequence[int],
    paddings: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    *,
    subm: bool = False,
) -> Pairs:
    """Find the pairs.

    Args:
        x: Points [N, space ...], with dense channels.
        sizes: Of the window.
        paddings: Empty space on both sides of each dim.
        strides: Steps between windows.
        dilations: Steps between the places of a window.
        subm: Whether the output has the points of the input, with windows around them.

    Returns:
        The pairs.
    """
    points, space = coordinates(x), x.shape[1:-1]
    if len(points) != len(space) + 1:
        raise InvalidArgumentError(
            f"x is {x!r} with {len(points)} sparse dims; expected all dims but the channels to be sparse: "
            f"x.to_sparse_coo({len(space) + 1})"
        )
    if subm:
        paddings, strides = [k // 2 for k in sizes], [1] * len(sizes)
    found = [
        (d + 2 * p - e * (k - 1) - 1) // s + 1
        for d, k, p, s, e in zip(space, sizes, paddings, strides, dilations, strict=True)
    ]
    column = [np.array(v, np.int64).reshape(-1, 1, 1) for v in (found, paddings, strides, dilations)]
    within, padding, stride, dilation = column
    places = np.indices(tuple(sizes), np.int64).reshape(len(sizes), -1, 1)
    # [dims, places, points]: where the window lies whose place meets the point, in steps of 1
    start = points[1:, None, :] + padding - places * dilation
    window = start // stride
    meets = ((start % stride == 0) & (window >= 0) & (window < within)).all(axis=0)
    place, point = np.nonzero(meets)
    at = np.concatenate([points[:1, point], window[:, place, point]])
    if subm:
        known, wanted = numbered(x.shape[:-1], points, at)
        order = np.argsort(known, kind="stable")
        position = np.minimum(np.searchsorted(known[order], wanted), max(len(known) - 1, 0))
        hit = known[order][position] == wanted
        place, point, target, indices = place[hit], point[hit], order[position[hit]], points
    else:
        (wanted,) = numbered((x.shape[0], *found), at)
        _, first, target = np.unique(wanted, return_index=True, return_inverse=True)
        indices = at[:, first]
    rulebook = np.stack([place, point, target.reshape(-1)]).astype(np.int32)
    return Pairs(indices, rulebook, np.bincount(place, minlength=math.prod(sizes)).astype(np.int32))


def by_place(rulebook: Array, count: int) -> list[slice]:
    """The pairs of each place in the window, which are neighbours."""
    ends = np.searchsorted(rulebook[0], np.arange(count + 1))
    return [slice(a, b) for a, b in itertools.pairwise(ends.tolist())]


def summed(values: Array, targets: Array, count: int) -> Array:
    """Sums of rows by their targets: [count, ...]."""
    found = np.zeros((count, *values.shape[1:]), values.dtype)
    if len(targets):
        order = np.argsort(targets, kind="stable")
        ordered = targets[order]
        first = np.flatnonzero(np.diff(ordered, prepend=-1))
        found[ordered[first]] = np.add.reduceat(values[order], first, axis=0)
    return found
