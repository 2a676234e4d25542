"""Slices move before products: rows that nobody reads are not computed, and what is read stays the same."""

from __future__ import annotations

import numpy as np
import pytest
from oprack.testing import PassCase, check_passes

RNG = np.random.default_rng(0)
CLOSE = {"rtol": 1e-12, "atol": 1e-12}
B, T, C = 2, 5, 8


def normal(*shape):
    return RNG.standard_normal(shape)


PARAMS = {"w": normal(C, C), "b": normal(C), "s": normal(C), "place": normal(1, T, C), "row": normal(T, 1)}
PRODUCT = ("matmul_v2", {"X": "x", "Y": "w"}, {"Out": "h"})


def take(x, axis=1, start=0, end=1, decrease=True):
    attrs = {"axes": [axis], "starts": [start], "ends": [end]} | ({"decrease_axis": [axis]} if decrease else {})
    return ("slice", {"Input": x}, {"Out": "out"}, attrs)


def check(ops, matches=1, feeds=None, params=PARAMS, fetch=("out",)):
    """The slice is moved so often; returns [(op type, shape of its first output)]."""
    used = {n for op in ops for names in op[1].values() for n in ([names] if isinstance(names, str) else names)}
    case = PassCase(feeds or {"x": normal(B, T, C)}, {n: v for n, v in params.items() if n in used}, ops, list(fetch))
    done = check_passes(case, "hoist_slices", **CLOSE)
    assert done.reports[0].matches == matches
    block = done.program.blocks[0]
    return [(op.type, tuple(block.vars[op.outputs[_first(op)][0]].shape)) for op in block.ops]


def _first(op):
    return next(s for s in ("Out", "Y") if op.outputs.get(s))


@pytest.mark.parametrize("start, end, decrease", [(0, 1, True), (-1, 1 << 31 - 1, True), (1, 3, False)])
def test_rows_of_a_product(start, end, decrease):
    ops = [PRODUCT, ("elementwise_add", {"X": "h", "Y": "b"}, {"Out": "y"}), take("y", 1, start, end, decrease)]
    kinds = [kind for kind, _ in check(ops)]
    assert kinds == ["slice", "matmul_v2", "elementwise_add", *["squeeze2"] * decrease]


def test_what_others_read_is_computed_whole():
    ops = [PRODUCT, take("h")]
    assert [kind for kind, _ in check(ops, 0, fetch=("out", "h"))] == ["matmul_v2", "slice"]
    ops = [PRODUCT, ("relu", {"X": "h"}, {"Out": "r"}), take("h")]
    assert [kind for kind, _ in check(ops, 0, fetch=("out", "r"))] == ["matmul_v2", "relu", "slice"]


def test_a_slice_that_saves_no_product_stays():
    ops = [("relu", {"X": "x"}, {"Out": "h"}), take("h")]
    assert [kind for kind, _ in check(ops, 0)] == ["relu", "slice"]


def test_columns_of_a_product_stay():
    assert [kind for kind, _ in check([PRODUCT, take("h", 2)], 0)] == ["matmul_v2", "slice"]


@pytest.mark.parametrize(
    "op, slots, attrs",
    [
        ("elementwise_add", {"Y": "place"}, {}),
        ("elementwise_mul", {"Y": "row"}, {}),
        ("elementwise_sub", {"Y": "b"}, {"axis": 2}),
        ("layer_norm", {"Scale": "s", "Bias": "b"}, {"begin_norm_axis": 2}),
        ("softmax", {}, {"axis": -1}),
        ("scale", {}, {"scale": 2.0, "bias": 1.0}),
        ("transpose2", {}, {"axis": [0, 1, 2]}),
        ("reshape2", {}, {"shape": [-1, T, 2, 4]}),
        ("mul", {"Y": "w"}, {"x_num_col_dims": 2}),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
@pytest.mark.parametrize("start, end", [(0, 1), (1, 3)])
def test_ops_that_pass_a_slice_on(op, slots, attrs, start, end):
    outputs = {"layer_norm": {"Y": "y", "Mean": "m", "Variance": "v"}}.get(op, {"Out": "y"})
    outputs |= {"XShape": "xs"} if op.endswith("e2") else {}
    ops = [PRODUCT, (op, {"X": "h"} | slots, outputs, attrs), take("y", 1, start, end, False)]
    found = check(ops)
    assert found[-1][0] == op and found[-1][1][1] == end - start
    assert "slice" in (kind for kind, _ in found[:2])


@pytest.mark.parametrize(
    "op, slots, attrs",
    [
        ("softmax", {}, {"axis": 1}),
        ("layer_norm", {"Scale": "s5", "Bias": "b5"}, {"begin_norm_axis": 1}),
        ("reshape2", {}, {"shape": [0, C, T]}),
        ("cumsum", {}, {"axis": 1}),
    ],
)
def test_ops_that_need_the_whole(op, slots, attrs):
    params = PARAMS | {"s5": normal(T * C), "b5": normal(T * C)}
    outputs = {"layer_norm": {"Y": "y", "Mean": "m", "Variance": "v"}}.get(op, {"Out": "y"})
    outputs |= {"XShape": "xs"} if op.endswith("e2") else {}
    check([PRODUCT, (op, {"X": "h"} | slots, outputs, attrs), take("y", 1, 0, 1)], 0, params=params)


def test_dims_that_only_a_run_knows():
    """The first dim is open: where both operands have it, one of them might be broadcast."""
    feeds = {"x": normal(B, C), "z": normal(1, C)}
    add = ("elementwise_add", {"X": "h", "Y": "z"}, {"Out": "y"})
    check([PRODUCT, add, take("y", 0, 0, 1, False)], feeds=feeds)
    check([PRODUCT, add, take("y", 0, 0, 2, False)], 0, feeds=feeds)


def test_the_first_token_of_a_transformer():
    """All that is left whole of the last layer are keys and values."""

    def heads(name):
        return [
            ("matmul_v2", {"X": "x", "Y": "w"}, {"Out": name}),
            ("reshape2", {"X": name}, {"Out": f"{name}r", "XShape": f"{name}rs"}, {"shape": [0, 0, 2, C // 2]}),
            ("transpose2", {"X": f"{name}r"}, {"Out": f"{name}h", "XShape": f"{name}hs"}, {"axis": [0, 2, 1, 3]}),
        ]

    norm = {"Scale": "s", "Bias": "b"}
    ops = [
        *(op for name in "qkv" for op in heads(name)),
        ("matmul_v2", {"X": "qh", "Y": "kh"}, {"Out": "scores"}, {"trans_y": True}),
        ("softmax", {"X": "scores"}, {"Out": "p"}, {"axis": -1}),
        ("matmul_v2", {"X": "p", "Y": "vh"}, {"Out": "c"}),
        ("transpose2", {"X": "c"}, {"Out": "ct", "XShape": "cts"}, {"axis": [0, 2, 1, 3]}),
        ("reshape2", {"X": "ct"}, {"Out": "ctx", "XShape": "ctxs"}, {"shape": [0, 0, C]}),
        ("matmul_v2", {"X": "ctx", "Y": "w"}, {"Out": "o"}),
        ("elementwise_add", {"X": "x", "Y": "o"}, {"Out": "r1"}),
        ("layer_norm", {"X": "r1", **norm}, {"Y": "n1", "Mean": "m1", "Variance": "v1"}, {"begin_norm_axis": 2}),
        ("matmul_v2", {"X": "n1", "Y": "w"}, {"Out": "f"}),
        ("gelu", {"X": "f"}, {"Out": "g"}),
        ("elementwise_add", {"X": "n1", "Y": "g"}, {"Out": "r2"}),
        ("layer_norm", {"X": "r2", **norm}, {"Y": "n2", "Mean": "m2", "Variance": "v2"}, {"begin_norm_axis": 2}),
        take("n2"),
    ]
    found = check(ops, 2)
    products = sorted(shape for kind, shape in found if kind == "matmul_v2")
    whole = [shape for shape in products if T in shape]
    assert whole == [(-1, 2, 1, T), (-1, T, C), (-1, T, C)]
