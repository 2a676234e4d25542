"""Kernels of tree_conv and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.types import FLOATS


def _weights(edges: Array, nodes: int, max_depth: int, dtype: np.dtype) -> np.ndarray:
    """[3, n, n]: eta for left, right and top of node v (last dim) in the window of node u; 0 where v is not in it."""
    ended = np.flatnonzero((edges == 0).any(axis=1))
    edges = edges[: ended[0]] if len(ended) else edges
    parent, child = edges.T.astype(np.int64) - 1
    if edges.size and (edges.min() < 1 or edges.max() > nodes or len(np.unique(child)) < len(child)):
        raise InvalidArgumentError(
            f"op tree_conv: EdgeSet names nodes {edges.min()} to {edges.max()}; expected a tree of nodes 1 to {nodes}, "
            "each the child of one node at most"
        )
    below, place = np.zeros((nodes, nodes)), np.zeros(nodes)
    below[parent, child] = 1
    order = np.argsort(parent, kind="stable")
    counts = np.bincount(parent, minlength=nodes)
    rank = np.empty(len(parent))
    rank[order] = np.arange(len(parent)) - np.repeat(np.cumsum(counts) - counts, counts)
    siblings = counts[parent]
    place[child] = np.where(siblings == 1, 0.5, rank / np.maximum(siblings - 1, 1))
    out, level = np.zeros((3, nodes, nodes)), np.eye(nodes)
    # A node without an edge has no window.
    level[len(edges) + 1 :] = 0
    for depth in range(max_depth):
        rest = depth / max_depth
        left = rest * place
        out += level * np.stack([left, rest * (1 - left), np.full(nodes, 1 - rest)])[:, None, :]
        level = level @ below
    return out.astype(dtype)


@kernel("tree_conv", dtypes=FLOATS)
def tree_conv(NodesVector: Array, EdgeSet: Array, Filter: Array, *, max_depth: int) -> Array:
    """Each tree's windows as a matrix, then products."""
    batch, nodes, width = NodesVector.shape
    wide = Filter.transpose(1, 0, 2, 3).reshape(3 * width, -1)
    out = np.empty((batch, nodes, wide.shape[1]), NodesVector.dtype)
    for x, edges, into in zip(NodesVector, EdgeSet, out, strict=True):
        windows = _weights(edges, nodes, max_depth, x.dtype) @ x
        into[:] = windows.transpose(1, 0, 2).reshape(nodes, 3 * width) @ wide
    return out.reshape(batch, nodes, *Filter.shape[2:])


@kernel("tree_conv_grad", dtypes=FLOATS)
def tree_conv_grad(
    NodesVector: Array, EdgeSet: Array, Filter: Array, Out_grad: Array, *, max_depth: int, ctx: KernelContext
) -> dict[str, Array]:
    """The same products, transposed."""
    batch, nodes, width = NodesVector.shape
    wide = Filter.transpose(1, 0, 2, 3).reshape(3 * width, -1)
    of_x, of_filter = np.zeros_like(NodesVector), np.zeros_like(wide)
    for x, edges, g, into in zip(NodesVector, EdgeSet, Out_grad.reshape(batch, nodes, -1), of_x, strict=True):
        weights = _weights(edges, nodes, max_depth, x.dtype)
        windows = (weights @ x).transpose(1, 0, 2).reshape(nodes, 3 * width)
        of_filter += windows.T @ g
        of_windows = (g @ wide.T).reshape(nodes, 3, width).transpose(1, 0, 2)
        into[:] = (weights.transpose(0, 2, 1) @ of_windows).sum(axis=0)
    shape = (3, width, *Filter.shape[2:])
    return {"NodesVector_grad": of_x, "Filter_grad": of_filter.reshape(shape).transpose(1, 0, 2, 3).copy()}
