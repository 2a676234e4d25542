"""Arithmetic on LoD offsets against loops over sequences."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oprack.errors import InvalidLoDError
from oprack_sequence.kernels._lod import (
    Packing,
    absolute_offsets,
    offsets_of,
    padded_rows,
    positions,
    reversed_rows,
    row_ranges,
    segment_ids,
    segment_sum,
    sequence_offsets,
    sum_by_index,
)

lengths = st.lists(st.integers(0, 5), max_size=8)


def rows_of(n: list[int]) -> list[list[int]]:
    offsets = offsets_of(np.array(n, np.int64)).tolist()
    return [list(range(a, b)) for a, b in itertools.pairwise(offsets)]


@given(lengths)
def test_rows_know_their_sequence_and_their_place_in_it(n: list[int]) -> None:
    offsets, rows = offsets_of(np.array(n, np.int64)), rows_of(n)
    assert segment_ids(offsets).tolist() == [i for i, r in enumerate(rows) for _ in r]
    assert positions(offsets).tolist() == [k for r in rows for k in range(len(r))]
    assert reversed_rows(offsets).tolist() == [t for r in rows for t in r[::-1]]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=8))
def test_row_ranges(pairs: list[tuple[int, int]]) -> None:
    starts, counts = np.array(pairs, np.int64).reshape(-1, 2).T
    assert row_ranges(starts, counts).tolist() == [t for s, k in pairs for t in range(s, s + k)]


@given(lengths)
def test_padded_rows(n: list[int]) -> None:
    rows, valid = padded_rows(offsets_of(np.array(n, np.int64)), 5)
    assert [r[v].tolist() for r, v in zip(rows, valid, strict=True)] == rows_of(n)
    assert not rows[~valid].any()


@given(lengths)
def test_segment_sum(n: list[int]) -> None:
    x = np.arange(2.0 * sum(n)).reshape(-1, 2)
    out = segment_sum(x, offsets_of(np.array(n, np.int64)), np)
    assert out.tolist() == [x[r].sum(axis=0).tolist() for r in rows_of(n)]


@given(st.lists(st.integers(0, 4), max_size=10))
def test_sum_by_index(index: list[int]) -> None:
    x = np.arange(1.0, len(index) + 1)[:, None]
    want = [[float(sum(v for v, k in zip(x[:, 0], index, strict=True) if k == i))] for i in range(5)]
    assert sum_by_index(x, np.array(index, np.int64), 5, np).tolist() == want


@given(lengths, st.booleans())
def test_packing_walks_all_sequences_at_once(n: list[int], reverse: bool) -> None:
    packing = Packing(offsets_of(np.array(n, np.int64)), reverse)
    walks = [r[::-1] if reverse else r for r in rows_of(n)]
    by_length = sorted(range(len(n)), key=lambda i: -n[i])
    assert packing.order.tolist() == by_length
    steps = [packing.rows[a:b].tolist() for a, b in packing.steps]
    assert steps == [[walks[i][t] for i in by_length if t < n[i]] for t in range(max(n, default=0))]
    x = np.arange(1.0, sum(n) + 1)[:, None]
    assert packing.unpack(packing.pack(x, np), np).tolist() == x.tolist()


@given(lengths, st.booleans())
def test_packing_finds_the_row_of_the_step_before(n: list[int], reverse: bool) -> None:
    packing = Packing(offsets_of(np.array(n, np.int64)), reverse)
    x, initial = np.arange(1.0, sum(n) + 1)[:, None], -np.arange(1.0, len(n) + 1)[:, None]
    before = packing.unpack(packing.previous(packing.pack(x, np), initial, np), np)
    for i, rows in enumerate(rows_of(n)):
        walk = rows[::-1] if reverse else rows
        assert before[walk, 0].tolist() == [initial[i, 0], *x[walk, 0]][: len(walk)]
    first = -initial[packing.order[: packing.sizes[0] if packing.sizes else 0]]
    back = packing.scatter_initial(first, initial, np)[:, 0]
    assert back.tolist() == [float(i + 1) if k else 0 for i, k in enumerate(n)]


@given(st.lists(st.integers(0, 3), max_size=6))
def test_packing_of_padded_rows(n: list[int]) -> None:
    packing = Packing.padded(np.array(n, np.int64), 3)
    assert sorted(packing.rows.tolist()) == [3 * i + t for i, k in enumerate(n) for t in range(k)]


def test_absolute_offsets_count_rows() -> None:
    lod = [[0, 2, 2, 3], [0, 2, 2, 6]]
    assert absolute_offsets(lod, 0).tolist() == [0, 2, 2, 6]
    assert absolute_offsets(lod, 1).tolist() == [0, 2, 2, 6]
    assert absolute_offsets([[0, 1, 3], [0, 4, 4, 9]], 0).tolist() == [0, 4, 9]


def test_a_tensor_without_lod_is_an_error_that_names_the_slot() -> None:
    ctx = SimpleNamespace(op_type="sequence_pool", lod=lambda slot, i: [])
    with pytest.raises(InvalidLoDError, match=r"op sequence_pool: X has no LoD"):
        sequence_offsets(ctx, "X")
