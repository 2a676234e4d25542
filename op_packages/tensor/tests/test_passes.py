"""Transposes, reshapes and squeezes after each other: equal bits from fewer ops; and which ops are identities."""

from __future__ import annotations

import numpy as np
import pytest
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
