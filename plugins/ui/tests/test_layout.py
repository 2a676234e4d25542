"""Places in drawn graphs: boxes apart, edges downwards, chains straight, and what is not drawn is named."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oprack.errors import InvalidArgumentError
from oprack.program import Program
from oprack_ui import layout as layout_module
from oprack_ui.graph import FAR, MANY, draw
from oprack_ui.layout import lay_out, path
from oprack_ui.svg import draw_program

SIZE = (100.0, 30.0)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
    sizes = draw(st.lists(st.tuples(st.floats(20, 300), st.floats(20, 120)), min_size=1, max_size=14))
    last = len(sizes) - 1
    pairs = st.tuples(st.integers(0, last), st.integers(0, last)).filter(lambda p: p[0] < p[1])
    return sizes, sorted(draw(st.lists(pairs, max_size=25)) if last else [], key=lambda p: p[1])


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_boxes_are_apart_and_edges_run_down(graph: tuple[list[tuple[float, float]], list[tuple[int, int]]]) -> None:
    sizes, edges = graph
    layout = lay_out(sizes, edges)
    spans = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(layout.boxes, sizes, strict=True)]
    for (l1, t1, r1, b1), (l2, t2, r2, b2) in combinations(spans, 2):
        assert r1 < l2 or r2 < l1 or b1 < t2 or b2 < t1
    for left, top, right, bottom in spans:
        assert left >= -1e-6 and top >= -1e-6 and right <= layout.width + 1e-6 and bottom <= layout.height + 1e-6
    assert set(layout.lines) == set(edges)
    for (a, b), points in layout.lines.items():
        assert points[0][1] == pytest.approx(spans[a][3]) and points[-1][1] == pytest.approx(spans[b][1])
        assert spans[a][3] < spans[b][1]


def test_a_chain_is_straight_beside_edges_that_pass_it() -> None:
    chain = [(i, i + 1) for i in range(60)]
    passing = [(i, i + 3) for i in range(0, 57, 3)]
    layout = lay_out([SIZE] * 61, [*chain, *passing])
    assert max(x for x, _ in layout.boxes) == pytest.approx(min(x for x, _ in layout.boxes))


def test_a_cycle_is_drawn_too() -> None:
    layout = lay_out([SIZE] * 3, [(0, 1), (1, 2), (2, 0)])
    assert layout.boxes[0][1] < layout.boxes[1][1] < layout.boxes[2][1] and len(layout.lines) == 3


def test_graphs_that_are_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"max_nodes": 10, "max_edges": 10, "max_dummies": 10}
    monkeypatch.setitem(layout_module._OPTIONS, "limits", limits)
    with pytest.raises(InvalidArgumentError, match=r"a graph of 11 boxes .* can't be laid out.*fold chains"):
        lay_out([SIZE] * 11, [])


def test_corners_are_round_and_ends_are_kept() -> None:
    assert path([(0, 0), (0, 100), (50, 100)]) == "M0.0 0.0L0.0 94.0Q0.0 100.0 6.0 100.0L50.0 100.0"
    assert path([(0, 0), (0, 4), (50, 4)]).startswith("M0.0 0.0L0.0 2.0Q"), "not past the middle of a short piece"


def _program(ops: list[tuple[str, list[str], str]]) -> Program:
    """A program of (type, inputs, output), all of whose variables are float32 [4]."""
    program = Program()
    block = program.global_block()
    for name in dict.fromkeys(n for _, inputs, out in ops for n in (*inputs, out)):
        block.create_var(name, dtype="float32", shape=[4], persistable=name.startswith("w"))
    for kind, inputs, out in ops:
        block.append_op(kind, {"X": inputs}, {"Out": [out]}, {})
    return program


def test_edges_that_pass_too_much_are_named_at_both_ends() -> None:
    chain = [("relu", ["x"], "t0"), *(("relu", [f"t{i}"], f"t{i + 1}") for i in range(FAR + 2))]
    program = _program([*chain, ("sum", [f"t{FAR + 2}", "t0"], "y")])
    drawn = draw(program.desc.blocks[0], {"relu": "a", "sum": "a"}, [], folded=False)
    first, last = drawn["boxes"][1], drawn["boxes"][-1]
    assert ("", "→ 1 further box") in first["lines"] and ("", "← t0") in last["lines"]
    assert len(drawn["lines"]) == len(chain) + 1 and all(line["ends"] != [1, FAR + 4] for line in drawn["lines"])


def test_a_variable_that_very_many_read_has_few_lines() -> None:
    program = _program([("relu", ["x"], f"y{i}") for i in range(MANY + 5)])
    drawn = draw(program.desc.blocks[0], {"relu": "a"}, [], folded=True)
    assert len(drawn["lines"]) == MANY
    assert sum(("", "← x") in box["lines"] for box in drawn["boxes"]) == 5


def test_boxes_say_the_shapes_of_parameters() -> None:
    program = _program([("sum", ["x", "w"], "a"), ("relu", ["a"], "b"), ("relu", ["b"], "c"), ("sum", ["c", "x"], "d")])
    block = program.desc.blocks[0]
    owners = {"sum": "p", "relu": "q"}
    whole = draw(block, owners, [], folded=False)["boxes"]
    assert whole[1]["lines"] == [("sum", ""), ("", "X [4]"), ("", "→ float32 [4]")]
    chain = next(box for box in draw(block, owners, [], folded=True)["boxes"] if box["kind"] == "chain")
    assert chain["lines"] == [("sum", "[4]"), ("relu", ""), ("relu", ""), ("", "→ float32 [4]")]
    assert chain["packs"] == ["q", "p"], "the pack of most ops gives the colour"


def test_the_svg_has_what_the_page_has_and_no_markup_of_names() -> None:
    program = _program([("relu", ["<b>&\x01"], "y")])
    text = draw_program(program.desc, {"relu": "oprack-<nn>"})
    root = ET.fromstring(text)
    words = ["".join(found.itertext()) for found in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"oprack-<nn>", "<b>&\ufffd", "relu", "→ float32 [4]"} <= set(words)
