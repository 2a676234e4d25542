"""Cases of sparse_conv3d and of its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.testing import OpCase

from .._data import at, coo, drawn, holes, picked, slopes
from ._windows import windows


def case(
    name: str,
    dims: list[int],
    sizes: list[int],
    paddings: list[int],
    strides: list[int],
    dilation: int,
    subm: bool = False,
) -> list[OpCase]:
    rank = len(sizes)
    x = coo(holes(drawn(1, *dims, 2, seed=90), seed=90, sparse_dim=rank + 1), rank + 1)
    kernel, listed = drawn(*sizes, 2, 3, seed=91), np.zeros(x.shape[:-1], bool)
    listed[at(x)] = True
    dilations = [dilation] * rank
    rules = ([k // 2 for k in sizes], [1] * rank) if subm else (paddings, strides)
    pairs = list(windows(tuple(dims), sizes, *rules, dilations))
    space = tuple(np.max([w for w, _, _ in pairs], axis=0) + 1) if not subm else tuple(dims)
    met = np.zeros((1, *space), bool)
    for window, _, point in pairs:
        met[(0, *window)] |= listed[(0, *point)] and (not subm or listed[(0, *window)])
    out = coo(np.broadcast_to(met[..., None], (*met.shape, 3)).astype(np.float32), rank + 1)

    def dense(a: np.ndarray, k: np.ndarray) -> np.ndarray:
        found = np.zeros((1, *space, 3))
        for window, place, point in pairs:
            found[(0, *window)] += a[(0, *point)] @ k[place]
        return found * met[..., None]

    a, g = x.to_dense(), drawn(1, *space, 3, seed=92)
    attrs: dict[str, Any] = {
        "paddings": paddings,
        "strides": strides,
        "dilations": dilations,
        "groups": 1,
        "subm": subm,
    }
    expected = picked(out, dense(a, kernel))
    rulebook = np.array(
        sorted(
            (np.ravel_multi_index(place, sizes), i, o)
            for i, point in enumerate(x.indices[1:].T.tolist())
            for o, window in enumerate(out.indices[1:].T.tolist())
            for w, place, p in pairs
            if list(w) == window and list(p) == point
        ),
        np.int32,
    ).T
    by_x = slopes(lambda v: dense(v, kernel.astype(np.float64)), a, g * met[..., None])
    by_kernel = slopes(lambda k: dense(a.astype(np.float64), k), kernel, g * met[..., None])
    read = {"x": x, "kernel": kernel, "out": expected, "rulebook": rulebook, "out@GRAD": picked(out, g)}
    return [
        OpCase("sparse_conv3d", {"x": x, "kernel": kernel}, attrs, {"out": expected}, ["x", "kernel"], name=name),
        OpCase(
            "sparse_conv3d_grad", read, {}, {"x@GRAD": picked(x, by_x), "kernel@GRAD": by_kernel}, name=name, atol=1e-5
        ),
    ]


CASES = [
    *case("volume", [3, 2, 3], [2, 2, 2], [0, 0, 0], [1, 1, 1], 1),
    *case("image", [3, 4], [2, 3], [1, 1], [2, 1], 1),
    *case("dilated", [4, 4], [2, 2], [1, 1], [1, 1], 2),
    *case("subm", [3, 4], [3, 3], [0, 0], [1, 1], 1, subm=True),
]
