"""gelu, swish and layer_norm written as simpler ops are found in every order in which people write them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types

CLOSE = {"rtol": 1e-6, "atol": 1e-6}
X = np.random.default_rng(0).standard_normal((3, 4, 6))


class Program:
    """Ops one by one: each method returns the name of what it made."""

    def __init__(self, swapped=False):
        self.ops, self.params, self.swapped = [], {}, swapped

    def op(self, op_type, *operands, **attrs):
        names = []
        for operand in operands:
            if not isinstance(operand, str):
                name = f"c{len(self.params)}"
                self.params[name] = np.asarray(operand, "float64")
                operand = name
            names.append(operand)
        if self.swapped and op_type in ("elementwise_add", "elementwise_mul"):
            names.reverse()
        out = f"t{len(self.ops)}"
        self.ops.append((op_type, dict(zip("XY", names, strict=False)), {"Out": out}, attrs))
        return out

    def times(self, x, value, way):
        """x times a number."""
        if way == "scale":
            return self.op("scale", x, scale=float(value))
        return self.op("elementwise_mul", x, [value]) if way == "mul" else self.op("elementwise_div", x, [1 / value])

    def plus(self, x, value, way):
        return self.op("scale", x, bias=float(value)) if way == "scale" else self.op("elementwise_add", x, [value])

    def check(self, *names, feeds=None):
        optimized = check_passes(PassCase(feeds or {"x": X}, self.params, self.ops), *names, **CLOSE)
        return op_types(optimized), optimized.program.blocks[0].ops


def half_of_sum(p, inner, order, way):
    """x / 2 (1 + inner)"""
    more = p.plus(inner, 1.0, "scale" if way == "scale" else "add")
    if order == 0:
        return p.op("elementwise_mul", p.times("x", 0.5, way), more)
    if order == 1:
        return p.op("elementwise_mul", "x", p.times(more, 0.5, way))
    return p.times(p.op("elementwise_mul", "x", more), 0.5, way)


WAYS = list(itertools.product(range(3), ("scale", "mul", "div"), (False, True)))


@pytest.mark.parametrize("order, way, swapped", WAYS)
def test_gelu_with_erf(order, way, swapped):
    p = Program(swapped)
    half_of_sum(p, p.op("erf", p.times("x", math.sqrt(0.5), way)), order, way)
    kinds, ops = p.check("fuse_activations")
    assert kinds == ["gelu"] and not ops[0].attrs.get("approximate")


@pytest.mark.parametrize("way", ["scale", "mul", "div"])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("gate", [("relu6", {"threshold": 6.0}), ("clip", {"min": 0.0, "max": 5.0})])
def test_hard_swish_with_a_clip(way, swapped, gate):
    p = Program(swapped)
    shifted = p.plus("x", 3.0, "scale" if way == "scale" else "add")
    p.times(p.op("elementwise_mul", "x", p.op(gate[0], shifted, **gate[1])), 1 / 6, way)
    kinds, (op,) = p.check("fuse_activations")
    assert kinds == ["hard_swish"] and op.attrs["offset"] == 3.0
    assert op.attrs["threshold"] == gate[1].get("threshold", gate[1].get("max"))


def test_a_clip_from_below_zero_is_no_hard_swish():
    p = Program()
    clipped = p.op("clip", p.plus("x", 3.0, "scale"), min=-1.0, max=6.0)
    p.times(p.op("elementwise_mul", "x", clipped), 1 / 6, "mul")
    assert "hard_swish" not in p.check("fuse_activations")[0]


@pytest.mark.parametrize("order, way, swapped", WAYS)
@pytest.mark.parametrize("cube", ["pow", "elementwise_pow", "square", "mul"])
def test_gelu_with_tanh(order, way, swapped, cube):
    p = Program(swapped)
    if cube == "pow":
        third = p.op("pow", "x", factor=3.0)
    elif cube == "elementwise_pow":
        third = p.op("elementwise_pow", "x", [3.0])
    else:
        third = p.op(
            "elementwise_mul", p.op("square", "x") if cube == "square" else p.op("elementwise_mul", "x", "x"), "x"
        )
    inner = p.op("elementwise_add", "x", p.times(third, 0.044715, way))
    half_of_sum(p, p.op("tanh", p.times(inner, math.sqrt(2 / math.pi), way)), order, way)
    kinds, ops = p.check("fuse_activations")
    assert kinds == ["gelu"] and ops[0].attrs["approximate"]


@pytest.mark.parametrize("factor, one, half", [(0.7, 1.0, 0.5), (math.sqrt(0.5), 1.1, 0.5), (math.sqrt(0.5), 1.0, 0.4)])
def test_other_numbers_are_no_gelu(factor, one, half):
    p = Program()
    inner = p.plus(p.op("erf", p.times("x", factor, "mul")), one, "add")
    p.times(p.op("elementwise_mul", "x", inner), half, "mul")
    assert "gelu" not in p.check("fuse_activations")[0]


@pytest.mark.parametrize("beta", [None, 1.5])
@pytest.mark.parametrize("swapped", [False, True])
def test_swish(beta, swapped):
    p = Program(swapped)
    p.op("elementwise_mul", "x", p.op("sigmoid", p.times("x", beta, "scale") if beta else "x"))
    kinds, ops = p.check("fuse_activations")
    assert kinds == ["swish"] and ops[0].attrs["beta"] == (beta or 1.0)


def norm(p, root, square, epsilon, *, twice=False, dims=(-1,), after=None):
    def centred():
        mean = p.op("reduce_mean", "x", dim=list(dims), keep_dim=True)
        return p.op("elementwise_sub", "x", mean)

    d = centred()
    below = centred() if twice else d
    squares = {
        "square": lambda: p.op("square", below),
        "pow": lambda: p.op("pow", below, factor=2.0),
        "elementwise_pow": lambda: p.op("elementwise_pow", below, [2.0]),
        "mul": lambda: p.op("elementwise_mul", below, below),
    }
    variance = p.op("reduce_mean", squares[square](), dim=list(after or dims), keep_dim=True)
    shifted = p.plus(variance, 1e-5, epsilon)
    if root == "sqrt":
        return p.op("elementwise_div", d, p.op("sqrt", shifted))
    return p.op("elementwise_mul", d, p.op("rsqrt", shifted))


@pytest.mark.parametrize("root", ["sqrt", "rsqrt"])
@pytest.mark.parametrize("square", ["square", "pow", "elementwise_pow", "mul"])
@pytest.mark.parametrize("epsilon", ["scale", "add"])
@pytest.mark.parametrize("twice", [False, True])
def test_layer_norm(root, square, epsilon, twice):
    p = Program()
    norm(p, root, square, epsilon, twice=twice)
    kinds, ops = p.check("fuse_layer_norm")
    assert kinds == ["layer_norm"] and ops[0].attrs["begin_norm_axis"] == 2
    assert ops[0].attrs["epsilon"] == pytest.approx(1e-5)


@pytest.mark.parametrize("dims, shape", [((2,), (6,)), ((-1,), (1, 1, 6)), ((1, 2), (4, 6)), ((-2, -1), (1, 4, 6))])
@pytest.mark.parametrize("swapped", [False, True])
def test_layer_norm_with_parameters(dims, shape, swapped):
    p, rng = Program(swapped), np.random.default_rng(1)
    y = norm(p, "sqrt", "square", "add", dims=dims)
    y = p.op("elementwise_mul", y, rng.standard_normal(shape))
    p.op("elementwise_add", y, rng.standard_normal(shape))
    kinds, ops = p.check("fuse_layer_norm")
    assert kinds == ["layer_norm"] and ops[0].inputs["Scale"] and ops[0].inputs["Bias"]
    assert ops[0].attrs["begin_norm_axis"] == 3 - len(dims)


def test_parameters_of_other_shapes_stay_outside():
    p = Program()
    y = norm(p, "sqrt", "square", "add", dims=(1, 2))
    p.op("elementwise_mul", y, np.arange(6.0))
    assert p.check("fuse_layer_norm")[0] == ["layer_norm", "elementwise_mul"]
    p = Program()
    y = p.op("elementwise_add", norm(p, "sqrt", "square", "add"), np.arange(6.0))
    p.op("elementwise_mul", y, np.arange(6.0))
    assert p.check("fuse_layer_norm")[0] == ["layer_norm", "elementwise_mul"]


@pytest.mark.parametrize("change", [{"dims": (1,)}, {"dims": (-1,), "after": (-2, -1)}])
def test_other_means_are_no_layer_norm(change):
    p = Program()
    norm(p, "sqrt", "square", "add", **change)
    assert "layer_norm" not in p.check("fuse_layer_norm")[0]


def test_the_square_root_of_another_number_stays():
    p = Program()
    d = p.op("elementwise_sub", "x", p.op("reduce_mean", "x", dim=[-1], keep_dim=True))
    variance = p.op("reduce_mean", p.op("pow", d, factor=4.0), dim=[-1], keep_dim=True)
    p.op("elementwise_div", d, p.op("sqrt", p.plus(variance, 1e-5, "add")))
    assert "layer_norm" not in p.check("fuse_layer_norm")[0]
