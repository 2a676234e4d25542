"""Transposes, reshapes and squeezes after each other: equal bits from fewer ops; and which ops are identities."""

from __future__ import annotations

import numpy as np
import pytest
from oprack.ir import find_pass, optimize
from oprack.tensor import LoDTensor
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types

X = {"x": np.arange(48, dtype="float32").reshape(2, 3, 8)}


def chain(*ops):
    """Ops after each other from x: (type, attributes); a relu at the end, so that all may go."""
    last, found = "x", []
    for i, (kind, attrs) in enumerate(ops):
        outputs = {"Out": f"t{i}"}
        if kind.endswith("2") or kind == "flatten_contiguous_range":
            outputs["XShape"] = f"s{i}"
        found.append((kind, {"X": last}, outputs, attrs))
        last = f"t{i}"
    return [*found, ("relu", {"X": last}, {"Out": "y"}, {})]


def left(*ops, passes=("merge_shape_ops",), feeds=X):
    return op_types(check_passes(PassCase(feeds, {}, chain(*ops)), *passes))[:-1]


def transpose(*axis, kind="transpose2"):
    return (kind, {"axis": list(axis)})


def reshape(*shape, kind="reshape2"):
    return (kind, {"shape": list(shape)})


FLATTEN = ("flatten_contiguous_range", {"start_axis": 1, "stop_axis": 2})


def test_transposes():
    assert left(transpose(1, 0, 2), transpose(1, 0, 2)) == []
    assert left(transpose(1, 2, 0, kind="transpose"), transpose(1, 0, 2)) == ["transpose2"]
    assert left(transpose(1, 2, 0), transpose(1, 2, 0), transpose(1, 2, 0)) == []


@pytest.mark.parametrize(
    "ops,expected",
    [
        ([reshape(2, 24), reshape(-1, 4)], ["reshape2"]),
        ([reshape(2, 24), reshape(0, 4, 6)], ["reshape2", "reshape2"]),  # the 0 means the first one's dim
        (
            [("flatten_contiguous_range", {"start_axis": 1, "stop_axis": 2}), reshape(-1, 4, kind="reshape")],
            ["reshape2"],
        ),
        ([("unsqueeze2", {"axes": [1]}), reshape(6, 8)], ["reshape2"]),
        ([("unsqueeze2", {"axes": [1]}), ("squeeze2", {"axes": [1]})], []),
        ([("unsqueeze2", {"axes": [0]}), ("squeeze2", {"axes": [-4]})], ["unsqueeze2", "squeeze2"]),
        ([("unsqueeze2", {"axes": [0, 2]}), ("squeeze2", {"axes": [2]})], ["unsqueeze2", "squeeze2"]),
        ([reshape(2, 24), transpose(1, 0)], ["reshape2", "transpose2"]),
    ],
)
def test_reshapes(ops, expected):
    assert left(*ops) == expected


def test_sequences_keep_their_ops():
    feeds = {"x": LoDTensor(np.zeros((2, 3), "float32"), [[0, 1, 2]])}
    assert left(transpose(1, 0), transpose(1, 0), feeds=feeds) == ["transpose2", "transpose2"]


def test_a_shape_that_is_read_stays():
    case = PassCase(X, {}, chain(reshape(2, 24), reshape(6, 8)), ["y", "t0"])
    assert check_passes(case, "merge_shape_ops").reports[0].matches == 0


@pytest.mark.parametrize(
    "op,identity",
    [
        (("assign", {}), True),
        (("cast", {"in_dtype": 5, "out_dtype": 5}), True),
        (("cast", {"in_dtype": 5, "out_dtype": 6}), False),
        (transpose(0, 1, 2), True),
        (transpose(0, 2, 1), False),
        (reshape(0, -1, 8), True),
        (reshape(0, 0, 8), True),
        (reshape(2, 3, 8), False),  # the program does not say that the first dim is 2
        (reshape(0, 4, 6), False),
        (reshape(0, -1), False),
        (("scale", {"scale": 1.0, "bias": 0.0}), True),
        (("scale", {"scale": 1.0, "bias": 0.5}), False),
        (("scale", {"scale": 0.5, "bias": 0.0}), False),
        (("concat", {"axis": 1}), True),
    ],
)
def test_identities(op, identity):
    assert left(op, passes=["remove_identities"]) == ([] if identity else [op[0]])


def test_concat_of_two_is_none():
    ops = [("concat", {"X": ["x", "x"]}, {"Out": "c"}, {"axis": 1}), ("relu", {"X": "c"}, {"Out": "y"}, {})]
    assert check_passes(PassCase(X, {}, ops), "remove_identities").reports[0].matches == 0


# Shapes that come from tensors ----------------------------------------------------------------------------------------
def number(name, value):
    return ("fill_constant", {}, {"Out": name}, {"shape": [1], "dtype": 2, "value": float(value)})


DIM = [
    ("shape", {"Input": "x"}, {"Out": "dims"}),
    ("slice", {"Input": "dims"}, {"Out": "n"}, {"axes": [0], "starts": [1], "ends": [2], "decrease_axis": [0]}),
]


def reshaped(*sizes, slot="ShapeTensor"):
    """A reshape of x whose shape is given by tensors; "n" is x's second dim."""
    ops = [number(f"c{i}", size) for i, size in enumerate(sizes) if size != "n"]
    names = [size if size == "n" else f"c{i}" for i, size in enumerate(sizes)]
    shape = [-1 if size == "n" else size for size in sizes]
    slots = {"X": "x", slot: names}
    return [*DIM, *ops, ("reshape2", slots, {"Out": "y", "XShape": "s"}, {"shape": shape})]


@pytest.mark.parametrize(
    "rows, sizes, attr",
    [
        (2, (0, "n", 2, 4), [0, 0, 2, 4]),
        (0, (0, "n", 2, 4), [0, 0, 2, 4]),
        (1, ("n", 4, 2), [-1, 4, 2]),
        (2, (0, 0, 8), [0, 0, 8]),
    ],
    ids=str,
)
def test_a_shape_of_which_one_number_is_unknown_becomes_an_attribute(rows, sizes, attr):
    feeds = {"x": np.arange(rows * 24, dtype="float32").reshape(rows, 3, 8)}
    done = check_passes(PassCase(feeds, {}, reshaped(*sizes), ["y"]), "fold_constants", "known_shape_to_attr")
    ops = done.program.blocks[0].ops
    assert [op.type for op in ops if op.type in ("shape", "reshape2")] == ["reshape2"]
    assert ops[-1].attrs["shape"] == attr and not ops[-1].inputs.get("ShapeTensor")


@pytest.mark.parametrize("rows", [0, 2])
def test_nothing_follows_from_dims_that_may_be_empty(rows):
    """With no rows, -1 would become 0 where the tensor says 3."""
    feeds = {"x": np.arange(rows * 24, dtype="float32").reshape(rows, 3, 8)}
    done = check_passes(PassCase(feeds, {}, reshaped(0, 4, "n", 2), ["y"]), "fold_constants", "known_shape_to_attr")
    assert done.program.blocks[0].ops[-1].inputs["ShapeTensor"]


@pytest.mark.parametrize("rows", [0, 2])
def test_a_reshape_that_inserts_ones_is_an_unsqueeze(rows):
    feeds = {"x": np.arange(rows * 24, dtype="float32").reshape(rows, 3, 8)}
    done = check_passes(PassCase(feeds, {}, reshaped(0, 1, "n", 8, 1), ["y"]), "fold_constants", "known_shape_to_attr")
    last = done.program.blocks[0].ops[-1]
    assert last.type == "unsqueeze2" and last.attrs["axes"] == [1, 4] and "ShapeTensor" not in last.inputs


def test_a_size_that_is_not_one_number_stays_for_the_op_to_refuse():
    ops = [("reshape2", {"X": "x", "ShapeTensor": ["two", "c4"]}, {"Out": "y", "XShape": "s"}, {"shape": [-1, 4]})]
    case = PassCase(X | {"two": np.int32([3, 3])}, {"c4": np.int32([4])}, ops, ["y"])
    program, scope = case.build()
    assert optimize(program.desc, scope, keep=["y"], passes=[find_pass("known_shape_to_attr")]).reports[0].matches == 0


def test_a_constant_shape_becomes_an_attribute():
    ops = [("reshape2", {"X": "x", "Shape": "c"}, {"Out": "y", "XShape": "s"}, {"shape": [1]})]
    case = PassCase(X, {"c": np.int32([6, -1])}, ops, ["y"])
    done = check_passes(case, "known_shape_to_attr")
    assert done.program.blocks[0].ops[0].attrs["shape"] == [6, -1]


def test_two_unknown_numbers_stay():
    case = PassCase(X, {}, reshaped(0, "n", "n", 8)[:-1], ["n"])
    case.ops += [("reshape2", {"X": "x", "ShapeTensor": ["n", "n", "c3"]}, {"Out": "y", "XShape": "s"}, {})]
    case.feeds, case.fetch = {"x": np.zeros((3, 3, 8), "float32")}, ["y"]
    done = check_passes(case, "fold_constants", "known_shape_to_attr")
    assert done.program.blocks[0].ops[-1].inputs["ShapeTensor"][:2] == ["n", "n"]


# Constants of a size that a tensor gives -----------------------------------------------------------------------------
def filled(*sizes, **attrs):
    """A constant added to another one, so that it is read; "n" is x's second dim."""
    ops = [number(f"c{i}", size) for i, size in enumerate(sizes) if size != "n"]
    names = [size if size == "n" else f"c{i}" for i, size in enumerate(sizes)]
    shape = [-1 if size == "n" else size for size in sizes]
    fill = ("fill_constant", {"ShapeTensorList": names}, {"Out": "y"}, {"shape": shape, "dtype": 5, **attrs})
    return [*DIM, *ops, fill]


@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("sizes,place", [(("n", 4), 0), ((2, "n", 3), 1), ((0, "n"), 1)], ids=str)
def test_a_constant_takes_its_size_from_a_tensor(rows, sizes, place):
    feeds = {"x": np.zeros((3, rows), "float32")}
    case = PassCase(feeds, {}, filled(*sizes, value=0.5, str_value="0.5"), ["y"])
    done = check_passes(case, "fold_constants", "known_size_to_fill")
    (op,) = done.program.blocks[0].ops
    assert op.type == "fill_constant_batch_size_like" and op.inputs["Input"] == ["x"]
    assert (op.attrs["input_dim_idx"], op.attrs["output_dim_idx"], op.attrs["value"]) == (1, place, 0.5)


@pytest.mark.parametrize(
    "feed,ops",
    [
        (np.zeros((3, 2), "float32"), filled("n", 4, force_cpu=True)),
        (np.zeros((3, 2), "float32"), filled("n", "n")),
        (LoDTensor(np.zeros((3, 2), "float32"), [[0, 1, 3]]), filled("n", 4)),
    ],
    ids=["host memory", "two sizes", "sequences"],
)
def test_other_constants_stay(feed, ops):
    done = check_passes(PassCase({"x": feed}, {}, ops, ["y"]), "fold_constants", "known_size_to_fill")
    assert done.program.blocks[0].ops[-1].type == "fill_constant"
