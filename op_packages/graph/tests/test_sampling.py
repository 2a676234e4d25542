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
