"""Samples of neighbours: as many as asked for, each once, as often as the weights say."""

from __future__ import annotations

import numpy as np
from oprack import functional as F

NODES = np.zeros(4000, np.int64)
ROW, STARTS = np.arange(4), np.array([0, 4])


def test_each_neighbour_is_drawn_once_and_all_alike() -> None:
    found = F.graph_sample_neighbors(ROW, STARTS, NODES, sample_size=2).out.numpy().reshape(-1, 2)
    assert (found[:, 0] < found[:, 1]).all()  # each once, in the order of the graph
    np.testing.assert_allclose(np.bincount(found.reshape(-1)) / 4000, 0.5, atol=0.04)


def test_weights_say_how_often() -> None:
    weights = np.array([1, 2, 3, 4], np.float32)
    found = F.weighted_sample_neighbors(ROW, STARTS, weights, NODES, sample_size=1, return_eids=False)
    np.testing.assert_allclose(np.bincount(found.out_neighbors.numpy()) / 4000, weights / 10, atol=0.04)


def test_hops_sample_each_node_once() -> None:
    """A ring of 12 nodes that all know the next five: two hops of two neighbours each."""
    row = ((np.arange(12)[:, None] + np.arange(1, 6)) % 12).reshape(-1)
    starts = np.arange(0, 61, 5)
    found = F.graph_khop_sampler(row, col_ptr=starts, x=np.array([0, 7]), sample_sizes=[2, 2], return_eids=False)
    nodes = found.sample_index.numpy()
    source, target = (nodes[getattr(found, name).numpy().reshape(-1)] for name in ("out_src", "out_dst"))
    assert set((source - target) % 12) <= {1, 2, 3, 4, 5}
    assert len(set(zip(source, target, strict=True))) == len(source)  # no edge twice
    assert len(set(nodes)) == len(nodes) and list(nodes[:2]) == [0, 7]
    assert set(np.bincount(target)) <= {0, 2}  # a node that was reached is sampled once, with two neighbours
    np.testing.assert_array_equal(found.reindex_x.numpy(), [0, 1])
