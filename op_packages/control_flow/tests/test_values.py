"""Ops on tensor arrays, rank tables and branches, and the small ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oprack import CPUPlace, Executor, Scope
from oprack.errors import OprackError, PreconditionNotMetError
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.types import VarType

A = VarType.LOD_TENSOR_ARRAY


def array_program(builder, writes):
    b = builder()
    b.var("array", kind=A)
    for k, (place, value) in enumerate(writes):
        b.constant(f"i{k}", place, VarType.INT64)
        b.constant(f"v{k}", value, shape=(2, 1))
        b.op("write_to_array", X=f"v{k}", I=f"i{k}", Out="array")
    return b


def test_arrays_grow_and_are_overwritten(builder):
    b = array_program(builder, [(0, 5), (2, 7), (0, 6), (1, 1)])
    b.op("lod_array_length", X="array", Out="length")
    b.op("read_from_array", X="array", I="i1", Out="read")
    array, length, read = b.run({}, ["array", "length", "read"])
    assert [t.array[0, 0] for t in array] == [6, 1, 7]
    assert length.array.tolist() == [3] and length.dtype == "int64"
    assert read.array.tolist() == [[7], [7]]


def test_what_was_written_does_not_follow_the_variable(builder):
    b = array_program(builder, [(0, 5)])
    b.op("scale", X="v0", Out="v0", scale=2.0)
    array, v = b.run({}, ["array", "v0"])
    assert array[0].array[0, 0] == 5 and v.array[0, 0] == 10


@pytest.mark.parametrize(
    ("op", "inputs", "outputs"), [("select_input", ["a", "b"], "out"), ("select_output", "a", ["out"])]
)
def test_an_array_that_nothing_was_written_to_is_empty_in_a_selection(builder, op, inputs, outputs):
    b = builder()
    for name in ("a", "b", "out"):
        b.var(name, kind=A)
    b.constant("mask", 0, VarType.INT32)
    b.op(op, X=inputs, Mask="mask", Out=outputs)
    b.op("lod_array_length", X="out", Out="length")
    b.op("write_to_array", X="mask", I="length", Out="out")  # the array is its own: the one selected stays empty
    b.op("lod_array_length", X="a", Out="selected")
    length, out, selected = b.run({}, ["length", "out", "selected"])
    assert (length.array.tolist(), [t.array.tolist() for t in out], selected.array.tolist()) == ([0], [[0]], [0])


def test_a_tensor_that_nothing_was_written_to_is_refused_by_a_selection(builder):
    b = builder()
    b.var("a")
    b.constant("mask", 0, VarType.INT32)
    b.op("select_input", X=["a"], Mask="mask", Out="out")
    with pytest.raises(OprackError, match="variable 'a' holds no value"):
        b.run({}, ["out"])


def test_a_place_that_was_never_written_is_refused(builder):
    b = array_program(builder, [(2, 7)])
    b.constant("zero", 0, VarType.INT64)
    b.op("read_from_array", X="array", I="zero", Out="read")
    with pytest.raises(OprackError, match="place 0 of array 'array' was never written"):
        b.run({}, ["read"])


def test_as_a_gradient_it_is_zero(builder):
    b = array_program(builder, [(2, 7)])
    b.constant("zero", 0, VarType.INT64)
    b.op("read_from_array", X="array", I="zero", X_W="v0", Out="read")
    assert b.run({}, ["read"])[0].array.tolist() == [[0], [0]]


@pytest.mark.parametrize("place", [-1, 1 << 40])
def test_a_wild_place_is_refused(builder, place):
    with pytest.raises(OprackError, match="I is"):
        array_program(builder, [(place, 1)]).run({}, ["array"])


@pytest.mark.parametrize(("axis", "use_stack"), [(0, False), (1, False), (0, True), (1, True), (-1, True)])
def test_tensor_array_to_tensor(builder, axis, use_stack):
    b = array_program(builder, [(0, 5), (1, 7)])
    b.var("array@GRAD", kind=A)
    b.op("tensor_array_to_tensor", X="array", Out="out", OutIndex="sizes", axis=axis, use_stack=use_stack)
    b.op("scale", X="out", Out="out@GRAD", scale=2.0)
    b.op(
        "tensor_array_to_tensor_grad",
        X="array",
        Out_grad="out@GRAD",
        X_grad="array@GRAD",
        axis=axis,
        use_stack=use_stack,
    )
    out, sizes, grads = b.run({}, ["out", "sizes", "array@GRAD"])
    parts = [np.full((2, 1), v, np.float32) for v in (5, 7)]
    assert np.array_equal(out.array, np.stack(parts, axis) if use_stack else np.concatenate(parts, axis))
    assert sizes.array.tolist() == ([1, 1] if use_stack or axis else [2, 2])
    assert all(np.array_equal(g.array, 2 * p) for g, p in zip(grads, parts, strict=True))


def test_an_array_with_a_hole_is_no_tensor(builder):
    b = array_program(builder, [(1, 5)])
    b.op("tensor_array_to_tensor", X="array", Out="out", OutIndex="sizes")
    with pytest.raises(OprackError, match=r"nothing at places \[0\]"):
        b.run({}, ["out"])


# Rank tables ----------------------------------------------------------------------------------------------------------
def ranked(builder, lengths, *fetch):
    """x of sequences of these lengths, cut into time steps and put together again."""
    b = builder()
    b.var("x")
    b.var("table", kind=VarType.LOD_RANK_TABLE)
    b.var("steps", kind=A)
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


@given(st.lists(st.booleans(), min_size=1, max_size=6), st.booleans(), st.data())
@settings(deadline=None, max_examples=40)
def test_split_and_merge(builder, mask, with_lod, data):
    lengths = data.draw(st.lists(st.integers(0, 3), min_size=len(mask), max_size=len(mask))) if with_lod else None
    rows = sum(lengths) if with_lod else len(mask)
    x = LoDTensor(np.arange(rows * 2.0).reshape(rows, 2), lod_from_lengths([lengths]) if with_lod else [])
    b = builder()
    b.var("x", "m")
    b.op("split_lod_tensor", X="x", Mask="m", OutTrue="yes", OutFalse="no", level=0)
    for kind in ("merge_lod_tensor", "merge_lod_tensor_infer"):
        b.op(kind, X="x", Mask="m", InTrue="yes", InFalse="no", Out=kind, level=0)
    feed = {"x": x, "m": np.array(mask)[:, None]}
    yes, merged, inferred = b.run(feed, ["yes", "merge_lod_tensor", "merge_lod_tensor_infer"])
    keep = np.repeat(mask, lengths) if with_lod else np.array(mask)
    assert np.array_equal(yes.array, x.array[keep])
    for again in (merged, inferred):
        assert np.array_equal(again.array, x.array) and again.lod == x.lod


# Branches and the small ones ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mask", [0, 1])
def test_select(builder, mask):
    b = builder()
    b.var("x", "m")
    b.constant("a", 0)
    b.constant("b", 0)
    b.op("select_output", X="x", Mask="m", Out=["a", "b"])
    b.op("select_input", X=["a", "b"], Mask="m", Out="y")
    feed = {"x": np.array([9.0], np.float32), "m": np.array([mask], np.int32)}
    a, c, y = (t.array.item() for t in b.run(feed, ["a", "b", "y"]))
    assert [a, c] == [9 * (1 - mask), 9 * mask] and y == 9


def test_select_refuses_a_branch_that_is_not_there(builder):
    b = builder()
    b.var("x", "m")
    b.op("select_input", X=["x"], Mask="m", Out="y")
    with pytest.raises(OprackError, match="0 <= Mask < 1"):
        b.run({"x": np.zeros(1, np.float32), "m": np.array([1], np.int32)}, ["y"])


def test_print(builder, capsys):
    b = builder()
    b.var("x")
    b.op("print", In="x", Out="y", first_n=2, message="here", summarize=3, print_tensor_layout=False)
    executor = Executor()
    x = LoDTensor(np.arange(5, dtype=np.float32), [[0, 2, 5]])
    for _ in range(3):
        (y,) = executor.run(b.program, {"x": x}, ["y"], return_numpy=False)
    assert np.array_equal(y.array, x.array) and y.lod == x.lod
    lines = ["here", "Variable: x", "lod: [[0, 2, 5]]", "shape: [5]", "dtype: float32", "data: [0.0, 1.0, 2.0]"]
    assert [s.strip() for s in capsys.readouterr().out.splitlines()] == lines * 2


def test_print_of_a_gradient_respects_the_phase(builder, capsys):
    b = builder()
    b.var("x")
    options = {"first_n": -1, "message": "", "summarize": -1, "print_phase": "FORWARD"}
    b.op("print", In="x", Out="y", is_forward=False, **options)
    b.run({"x": np.zeros(1, np.float32)}, ["y"])
    assert capsys.readouterr().out == ""


def test_assert(builder):
    b = builder()
    b.var("ok", "x")
    b.op("assert", Cond="ok", Data=["x"], summarize=2)
    x = np.array([4, 5, 6])
    b.run({"ok": np.array([True]), "x": x}, ["x"])
    with pytest.raises(PreconditionNotMetError, match=r"int64\[3\]: \[4, 5\]"):
        b.run({"ok": np.array([False]), "x": x}, ["x"])


def test_delete_var(builder):
    b = builder()
    b.var("x", persistable=True)
    b.op("assign", X="x", Out="y")
    b.op("delete_var", X=["x"])
    scope = Scope()
    scope.var("x").set(np.ones(2, np.float32))
    (y,) = Executor().run(b.program, {}, ["y"], scope)
    assert y.tolist() == [1, 1] and not scope.find_var("x").is_initialized()


@pytest.mark.parametrize(("kind", "count"), [("AUTO", 3), ("CPU", 2)])
def test_get_places(builder, kind, count):
    b = builder()
    b.var("places", kind=VarType.PLACE_LIST)
    b.op("get_places", Out="places", device_count=count, device_type=kind)
    (places,) = b.run({}, ["places"])
    assert places == [CPUPlace()] * count
