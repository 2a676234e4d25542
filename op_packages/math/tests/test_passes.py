"""Affine chains and matrix products: the same numbers from fewer ops."""

from __future__ import annotations

import numpy as np
import pytest
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types

RNG = np.random.default_rng(0)
ADD, MUL = "elementwise_add", "elementwise_mul"
CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def normal(*shape, dtype="float32"):
    return RNG.standard_normal(shape).astype(dtype)


def chain(*ops):
    """Ops after each other from x: (type, constant or None, attributes)."""
    last, found = "x", []
    for i, (kind, constant, attrs) in enumerate(ops):
        inputs = {"X": last} if constant is None else {"X": last, "Y": constant}
        found.append((kind, inputs, {"Out": f"t{i}"}, attrs))
        last = f"t{i}"
    return found


def scale(factor, shift, after=True):
    return ("scale", None, {"scale": factor, "bias": shift, "bias_after_scale": after})


X = {"x": normal(2, 3, 4)}


# Scalars --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "ops,left",
    [
        ([(MUL, "s", {}), (ADD, "t", {})], ["scale"]),
        ([(ADD, "s", {}), (MUL, "t", {})], ["scale"]),
        ([(MUL, "s", {}), (MUL, "t", {})], ["scale", "scale"]),  # one factor would be rounded
        ([("elementwise_sub", "s", {}), (ADD, "wide", {})], ["scale", ADD]),
        ([(ADD, "high", {})], [ADD]),  # the result has more dims than x
        ([("elementwise_div", "s", {})], ["elementwise_div"]),
    ],
)
def test_scalars_become_scales_with_equal_bits(ops, left):
    params = {"s": normal(1), "t": normal(1, 1), "wide": normal(4), "high": normal(1, 1, 1, 1)}
    assert op_types(check_passes(PassCase(X, params, chain(*ops)), "scalars_to_scales")) == left


def test_a_scalar_that_no_float_attribute_holds_stays_a_parameter():
    x = {"x": normal(2, 3, dtype="float64")}
    done = check_passes(PassCase(x, {"s": np.array([0.1])}, chain((MUL, "s", {}))), "scalars_to_scales")
    assert op_types(done) == [MUL]
    done = check_passes(PassCase(x, {"s": np.array([0.5])}, chain((MUL, "s", {}))), "scalars_to_scales")
    assert op_types(done) == ["scale"]


def test_integers_are_left_alone():
    x = {"x": np.arange(6).reshape(2, 3)}
    done = check_passes(PassCase(x, {"s": np.array([3])}, chain((MUL, "s", {}), scale(2.5, 1.5), scale(1.5, 0.5))))
    assert op_types(done) == [MUL, "scale", "scale"]


@pytest.mark.parametrize("first", [scale(2.0, 0.0), scale(1.0, 3.0), scale(2.0, 3.0), scale(0.3, 0.7, False)])
@pytest.mark.parametrize("second", [scale(0.7, 0.0), scale(1.0, 5.0), scale(-1.5, 0.1), scale(0.3, 0.7, False)])
def test_scales_after_each_other(first, second):
    case = PassCase(X, {}, chain(first, second))
    assert op_types(check_passes(case, "merge_affine", **CLOSE)) == ["scale"]
    strict = op_types(check_passes(case, "scalars_to_scales"))  # equal bits, so only where nothing is rounded anew
    assert len(strict) == (1 if second[2]["scale"] == 1 and first[2]["bias"] == 0 else 2) or strict == ["scale"]


def test_scales_whose_product_overflows_are_left_alone():
    done = check_passes(PassCase(X, {}, chain(scale(1e30, 0.0), scale(1e30, 0.0))), "merge_affine")
    assert op_types(done) == ["scale", "scale"]


# Constants of any shape -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [ADD, MUL])
@pytest.mark.parametrize(
    "c,d,axis,merged",
    [
        ((4,), (4,), -1, True),
        ((3,), (1,), 1, True),
        ((3, 4), (1, 3, 1), 1, True),
        ((1,), (3, 1), -1, True),
        ((2, 3, 4), (4,), -1, False),  # the first dim of x is open: c may be larger
    ],
)
def test_constants_after_each_other(kind, c, d, axis, merged):
    case = PassCase(X, {"c": normal(*c), "d": normal(*d)}, chain((kind, "c", {"axis": axis}), (kind, "d", {})))
    assert op_types(check_passes(case, "merge_affine", **CLOSE)) == ([kind] if merged else [kind, kind])


def test_different_ops_on_constants_are_left_alone():
    case = PassCase(X, {"c": normal(4), "d": normal(4)}, chain((ADD, "c", {}), (MUL, "d", {})))
    assert check_passes(case, "merge_affine").reports[0].matches == 0


@pytest.mark.parametrize("shape,joined", [((2, 3, 1), True), ((2, 1, 1), True), ((2, 3, 4), False), ((3, 1), False)])
def test_a_gate_that_is_added_to_what_it_gates(shape, joined):
    ops = [(MUL, {"X": "x", "Y": "g"}, {"Out": "gated"}), (ADD, {"X": "x", "Y": "gated"}, {"Out": "y"})]
    case = PassCase(X | {"g": normal(*shape)}, {}, ops)
    assert op_types(check_passes(case, "merge_affine", **CLOSE)) == (["scale", MUL] if joined else [MUL, ADD])


# Products -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "kind,flags", [("matmul", ("transpose_X", "transpose_Y")), ("matmul_v2", ("trans_x", "trans_y"))]
)
@pytest.mark.parametrize("side", ["X", "Y"])
@pytest.mark.parametrize("flag", [False, True])
def test_a_transposed_operand_becomes_a_flag(kind, flags, side, flag):
    inputs = {"X": "x", "Y": "y"} | {side: "t"}
    name = flags["XY".index(side)]
    ops = [
        ("transpose2", {"X": side.lower()}, {"Out": "t"}, {"axis": [0, 1, 3, 2]}),
        (kind, inputs, {"Out": "out"}, {name: flag}),
    ]
    x, y = normal(2, 2, 3, 3), normal(2, 2, 3, 3)
    done = check_passes(PassCase({"x": x, "y": y}, {}, ops), "fold_transpose_into_matmul")
    assert op_types(done) == [kind] and done.program.blocks[0].ops[0].attr(name) is not flag


def test_other_transposes_are_left_alone():
    ops = [
        ("transpose2", {"X": "x"}, {"Out": "t"}, {"axis": [0, 2, 1, 3]}),
        ("matmul_v2", {"X": "t", "Y": "x"}, {"Out": "out"}, {}),
    ]
    case = PassCase({"x": normal(2, 3, 3, 3)}, {}, ops)
    assert check_passes(case, "fold_transpose_into_matmul").reports[0].matches == 0


def test_a_factor_becomes_alpha():
    ops = [
        ("matmul", {"X": "x", "Y": "w"}, {"Out": "p"}, {"alpha": 0.5}),
        ("scale", {"X": "p"}, {"Out": "y"}, {"scale": 3.0}),
    ]
    done = check_passes(PassCase({"x": normal(2, 3)}, {"w": normal(3, 4)}, ops), "fold_scale_into_alpha", **CLOSE)
    assert op_types(done) == ["matmul"] and done.program.blocks[0].ops[0].attr("alpha") == 1.5
