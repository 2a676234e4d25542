"""Rank tables, and what puts sequences in their order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oprack.errors import OprackError
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.types import VarType


def ranked(builder, lengths, *fetch):
    """x of sequences of these lengths, cut into time steps and put together again."""
    b = builder()
    b.var("x")
    b.var("table", kind=VarType.LOD_RANK_TABLE)
    b.var("steps", kind=VarType.LOD_TENSOR_ARRAY)
    b.op("lod_rank_table", X="x", Out="table", level=0)
    b.op("max_sequence_len", RankTable="table", Out="longest")
    b.op("lod_tensor_to_array", X="x", RankTable="table", Out="steps")
    b.op("array_to_lod_tensor", X="steps", RankTable="table", Out="again")
    b.op("reorder_lod_tensor_by_rank", X="x", RankTable="table", Out="ordered")
    b.op("reorder_lod_tensor_by_rank_grad", X="ordered", RankTable="table", Out="back")
    lod = lod_from_lengths(lengths)
    x = LoDTensor(np.arange(lod[-1][-1] * 2, dtype=np.float32).reshape(-1, 2), lod)
    return x, b.run({"x": x}, list(fetch))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6).filter(any))
@settings(deadline=None, max_examples=40)
def test_time_steps_and_back(builder, lengths):
    x, (longest, steps, again, ordered, back) = ranked(
        builder, [lengths], "longest", "steps", "again", "ordered", "back"
    )
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    rows = np.split(x.array, np.cumsum(lengths)[:-1])
    assert longest.array.tolist() == [max(lengths)]
    for t, step in enumerate(steps):
        assert np.array_equal(step.array, [rows[i][t] for i in order if lengths[i] > t])
    assert np.array_equal(again.array, x.array) and again.lod == x.lod
    assert np.array_equal(ordered.array, np.concatenate([rows[i] for i in order]))
    assert ordered.lod == lod_from_lengths([[lengths[i] for i in order]])
    assert np.array_equal(back.array, x.array) and back.lod == x.lod


def test_time_steps_of_nested_sequences(builder):
    x, (steps, again) = ranked(builder, [[1, 2], [2, 3, 1]], "steps", "again")
    assert [t.lod for t in steps] == [[[0, 3, 5]], [[0, 1]]]
    assert np.array_equal(steps[0].array, x.array[[2, 3, 4, 0, 1]])
    assert np.array_equal(again.array, x.array) and again.lod == x.lod


def test_a_tensor_without_sequences_can_not_be_ranked(builder):
    b = builder()
    b.var("x")
    b.op("lod_rank_table", X="x", Out="table", level=0)
    with pytest.raises(OprackError, match="0 LoD levels"):
        b.run({"x": np.zeros((2, 2), np.float32)}, ["x"])
