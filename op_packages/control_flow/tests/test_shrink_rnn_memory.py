"""shrink_rnn_memory and its gradient."""

from __future__ import annotations

import numpy as np
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.types import VarType


def test_shrink_rnn_memory_and_its_gradient(builder):
    b = builder()
    b.var("x", "state")
    b.constant("t", 1, VarType.INT64)
    b.op("lod_rank_table", X="x", Out="table", level=0)
    b.op("shrink_rnn_memory", X="state", RankTable="table", I="t", Out="alive")
    b.op("shrink_rnn_memory_grad", X="state", Out_grad="alive", X_grad="grad")
    state = np.arange(6, dtype=np.float32).reshape(3, 2) + 1
    x = LoDTensor(np.zeros((6, 1), np.float32), lod_from_lengths([[3, 1, 2]]))
    alive, grad = b.run({"x": x, "state": state}, ["alive", "grad"])
    assert np.array_equal(alive.array, state[:2])
    assert np.array_equal(grad.array, [*state[:2], [0, 0]])
