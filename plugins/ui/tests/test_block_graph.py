"""Layout of drawn graphs: boxes apart, edges downwards, and lines past the boxes between their ends."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oprack_ui.block_graph import BEND_WIDTH, GAP, lay_out

WIDTH = 100.0


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    count = draw(st.integers(1, 14))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda p: p[0] < p[1])
    return count, sorted(draw(st.lists(pairs, max_size=25)) if count > 1 else [], key=lambda p: p[1])


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_nothing_overlaps_and_edges_run_down(graph: tuple[int, list[tuple[int, int]]]) -> None:
    count, edges = graph
    layout = lay_out([WIDTH] * count, edges)
    row = {n: i for i, layer in enumerate(layout.layers) for n in layer}
    assert sorted(row) == list(range(count))
    spans = {(i, layout.x[n], WIDTH) for n, i in row.items()}
    spans |= {(i, x, BEND_WIDTH) for points in layout.bends.values() for i, x in points}
    for i in range(len(layout.layers)):
        placed = sorted((x, w) for layer, x, w in spans if layer == i)
        for (x1, w1), (x2, w2) in pairwise(placed):
            assert x2 - x1 >= (w1 + w2) / 2 + GAP - 1e-6
    assert all(w / 2 - 1e-6 <= x <= layout.width - w / 2 + 1e-6 for _, x, w in spans)
    for a, b in edges:
        assert row[a] < row[b]
        assert [i for i, _ in layout.bends[a, b]] == list(range(row[a] + 1, row[b]))


def test_a_source_stands_above_its_first_reader() -> None:
    layout = lay_out([WIDTH] * 4, [(0, 1), (1, 2), (2, 3)])
    assert layout.layers == [[0], [1], [2], [3]]
    late = lay_out([WIDTH] * 5, [(0, 1), (1, 2), (2, 4), (3, 4)])
    assert sorted(late.layers[2]) == [2, 3], "not at the top, with a line through the whole picture"


def test_a_chain_is_straight_and_an_edge_too_long_is_cut() -> None:
    chain = [(i, i + 1) for i in range(60)]
    layout = lay_out([WIDTH] * 61, [*chain[:-1], (0, 60), chain[-1]])
    assert layout.cut == [(0, 60)] and (0, 60) not in layout.bends
    assert max(layout.x) == pytest.approx(min(layout.x))
