"""Cases of tree_conv: a tree of three levels, walked node by node."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((1, 6, 3)), RNG.standard_normal((3, 3, 2, 2))
EDGES = np.array([[[1, 2], [1, 3], [1, 4], [2, 5], [0, 0]]], np.int32)  # node 6 has no edge
CHILDREN = {1: [2, 3, 4], 2: [5], 3: [], 4: [], 5: []}


def window(root: int, depth: int) -> np.ndarray:
    """Out of one node."""
    total, found = np.zeros((2, 2)), [(root, 0, 0.0)]
    while found:
        node, below, place = found.pop()
        top = 1 - below / depth
        left = (1 - top) * place
        weights = left * W[:, 0] + (1 - top) * (1 - left) * W[:, 1] + top * W[:, 2]
        total += np.tensordot(X[0, node - 1], weights, 1)
        children = CHILDREN[node] if below + 1 < depth else []
        places = [0.5] if len(children) == 1 else np.linspace(0, 1, len(children))
        found += [(child, below + 1, p) for child, p in zip(children, places, strict=True)]
    return total


def out(depth: int) -> np.ndarray:
    """Out of all nodes."""
    return np.stack([*(window(root, depth) for root in range(1, 6)), np.zeros((2, 2))])[None]


CASES = [
    OpCase(
        "tree_conv",
        {"NodesVector": X, "EdgeSet": EDGES, "Filter": W},
        {"max_depth": depth},
        {"Out": out(depth)},
        grads=["NodesVector", "Filter"],
        name=f"depth {depth}",
    )
    for depth in (2, 3)
]
