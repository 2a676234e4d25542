"""Cases of sparse_maxpool and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import at, coo, drawn, holes, picked
from ._windows import windows


def case(name: str, dims: list[int], sizes: list[int], paddings: list[int], strides: list[int]) -> list[OpCase]:
    x = coo(holes(drawn(1, *dims, 2, seed=93), seed=93, sparse_dim=4), 4)
    ones, a = [1, 1, 1], x.to_dense()
    listed = np.zeros(x.shape[:-1], bool)
    listed[at(x)] = True
    pairs = list(windows(tuple(dims), sizes, paddings, strides, ones))
    space = tuple(np.max([w for w, _, _ in pairs], axis=0) + 1)
    largest = np.full((1, *space, 2), -np.inf, np.float32)
    for window, _, point in pairs:
        if listed[(0, *point)]:
            largest[(0, *window)] = np.maximum(largest[(0, *window)], a[(0, *point)])
    out = coo(np.isfinite(largest).astype(np.float32), 4)
    g, back = drawn(1, *space, 2, seed=94), np.zeros(a.shape, np.float32)
    for window, _, point in pairs:
        back[(0, *point)] += g[(0, *window)] * (listed[(0, *point)] & (a[(0, *point)] == largest[(0, *window)]))
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
    attrs = {"kernel_sizes": sizes, "paddings": paddings, "dilations": ones, "strides": strides}
    expected = picked(out, largest)
    read = {"x": x, "out": expected, "rulebook": rulebook, "out@GRAD": picked(out, g)}
    return [
        OpCase("sparse_maxpool", {"x": x}, attrs, {"out": expected}, ["x"], name=name),
        OpCase("sparse_maxpool_grad", read, {}, {"x@GRAD": picked(x, back)}, name=name),
    ]


CASES = [
    *case("apart", [4, 2, 4], [2, 2, 2], [0, 0, 0], [2, 2, 2]),
    *case("over", [3, 2, 3], [2, 2, 2], [1, 0, 1], [1, 1, 1]),
]
