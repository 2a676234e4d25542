"""Layers of math, and Python's operators on variables, against NumPy."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack import layers
from oprack.errors import InvalidArgumentError

RNG = np.random.default_rng(7)
X = RNG.uniform(0.5, 2.0, (3, 4)).astype(np.float32)
Y = RNG.uniform(0.5, 2.0, (3, 4)).astype(np.float32)


@pytest.fixture
def run():
    """run(build, x=array, ...): feeds variables of these names and returns the arrays of what build(...) returns."""

    def call(build, **feed):
        main, startup = oprack.Program(), oprack.Program()
        with oprack.program_guard(main, startup), oprack.unique_name.guard():
            made = build(
                **{name: layers.data(name, [None, *a.shape[1:]] if a.ndim else [], a.dtype) for name, a in feed.items()}
            )
        found = made if isinstance(made, list | tuple) else [made]
        scope, exe = oprack.Scope(), oprack.Executor(seed=1)
        exe.run(startup, scope=scope, fetch_list=[])
        arrays = exe.run(main, feed=feed, fetch_list=list(found), scope=scope)
        for var, array in zip(found, arrays, strict=True):
            assert var.dtype == str(array.dtype) and len(var.shape) == array.ndim, var
            assert all(d in (-1, n) for d, n in zip(var.shape, array.shape, strict=True)), (var, array.shape)
        return arrays if isinstance(made, list | tuple) else arrays[0]

    return call


OPERATORS = {
    "add": lambda x, y: x + y,
    "add number": lambda x, y: x + 2 + 0.5,
    "radd": lambda x, y: 2 + x,
    "sub": lambda x, y: x - y,
    "sub number": lambda x, y: x - 3,
    "rsub": lambda x, y: 3.0 - x,
    "mul": lambda x, y: x * y,
    "rmul": lambda x, y: 4 * x,
    "div": lambda x, y: x / y,
    "div number": lambda x, y: x / 4,
    "rdiv": lambda x, y: 2 / x,
    "pow": lambda x, y: x**y,
    "pow number": lambda x, y: x**3,
    "rpow": lambda x, y: 2.0**x,
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "rmod": lambda x, y: 5.0 % x,
    "neg": lambda x, y: -x,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= 1.0,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == x,
    "ne": lambda x, y: x != y,
    "broadcast": lambda x, y: x * y[0] + y[1:2],
    "astype": lambda x, y: (x * 3).astype("int64"),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(run, name):
    function = OPERATORS[name]
    expected = function(X, Y)
    found = run(function, x=X, y=Y)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.dtype == expected.dtype


def test_matmul_operator(run):
    np.testing.assert_allclose(run(lambda x, y: x @ y, x=X, y=Y.T.copy()), X @ Y.T, rtol=1e-6)


INTEGER_OPERATORS = {
    "exact": (lambda x: x + 16777217, lambda x: x + 16777217),
    "float number": (lambda x: x * 0.5, lambda x: (x * 0.5).astype(np.float32)),
    "true division": (lambda x: x / 2, lambda x: (x / 2).astype(np.float32)),
    "floor division": (lambda x: x // 2, lambda x: x // 2),
    "mod": (lambda x: x % 3, lambda x: x % 3),
    "mixed": (lambda x: x + x.astype("float64"), lambda x: x + x.astype(np.float64)),
    "mixed, reversed": (lambda x: x.astype("float32") - x, lambda x: np.zeros(x.shape, np.float32)),
    "compared": (lambda x: x >= 4, lambda x: x >= 4),
}


@pytest.mark.parametrize("name", INTEGER_OPERATORS)
def test_operators_on_integers(run, name):
    x = np.array([[3, 4, 5]], np.int64)
    build, expected = INTEGER_OPERATORS[name]
    found = run(lambda x: build(x), x=x)
    np.testing.assert_array_equal(found, expected(x))
    assert found.dtype == expected(x).dtype


def test_comparisons_and_detached_variables_stop_gradients():
    with oprack.program_guard(oprack.Program()):
        x = layers.data("x", [2])
        x.stop_gradient = False
        assert (x < 1).stop_gradient and x.detach().stop_gradient and not (x + 1).stop_gradient


UNARY = {
    "abs": np.abs,
    "ceil": np.ceil,
    "cos": np.cos,
    "exp": np.exp,
    "floor": np.floor,
    "log": np.log,
    "reciprocal": np.reciprocal,
    "round": np.round,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sign": np.sign,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "square": np.square,
    "tanh": np.tanh,
}


@pytest.mark.parametrize("name", UNARY)
def test_unary_layers(run, name):
    np.testing.assert_allclose(run(lambda x: getattr(layers, name)(x), x=X), UNARY[name](X), rtol=1e-5)


def test_scale_pow_clip_cumsum(run):
    two = np.array([2.0], np.float32)

    def build(x, two):
        return [
            layers.scale(x, 2.0, bias=1.0),
            layers.scale(x, 2.0, bias=1.0, bias_after_scale=False, act="tanh"),
            layers.scale(x, two),
            layers.pow(x, 3.0),
            layers.pow(x, two),
            layers.clip(x, 1.0, 1.5),
            layers.clip(x, 1.0, two),
            layers.cumsum(x, axis=1),
            layers.clip_by_norm(x, 1.0),
        ]

    norm = np.sqrt((X**2).sum())
    expected = [
        X * 2 + 1,
        np.tanh((X + 1) * 2),
        X * 2,
        X**3,
        X**2,
        X.clip(1, 1.5),
        X.clip(1, 2),
        X.cumsum(1),
        X / norm,
    ]
    for found, value in zip(run(build, x=X, two=two), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-5)


def test_elementwise_axis_and_activation(run):
    b = np.arange(3, dtype=np.float32)
    found = run(lambda x, b: layers.elementwise_add(x, b, axis=0, act="tanh"), x=X, b=b)
    np.testing.assert_allclose(found, np.tanh(X + b[:, None]), rtol=1e-6)
    pairs = {"max": np.maximum, "min": np.minimum, "sub": np.subtract, "pow": np.power}
    for name, function in pairs.items():
        found = run(lambda x, y, name=name: getattr(layers, f"elementwise_{name}")(x, y), x=X, y=Y)
        np.testing.assert_allclose(found, function(X, Y), rtol=1e-5)


def test_reductions(run):
    def build(x):
        return [
            layers.reduce_sum(x),
            layers.reduce_mean(x, dim=1),
            layers.reduce_max(x, dim=[-1], keep_dim=True),
            layers.reduce_min(x, dim=[0, 1]),
            layers.reduce_prod(x, dim=0),
            layers.mean(x),
            layers.argmax(x, axis=1),
            layers.argmin(x),
            layers.sums([x, x, x]),
        ]

    expected = [
        X.sum(),
        X.mean(1),
        X.max(1, keepdims=True),
        X.min(),
        X.prod(0),
        X.mean(),
        X.argmax(1),
        X.argmin(0),
        X * 3,
    ]
    for found, value in zip(run(build, x=X), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-5)


def test_logic(run):
    def build(x, y):
        a, b = x > 1.0, y > 1.0
        return [
            layers.logical_and(a, b),
            layers.logical_or(a, b),
            layers.logical_xor(a, b),
            layers.logical_not(a),
            layers.reduce_any(a, dim=1),
            layers.reduce_all(b),
            layers.isfinite(x),
        ]

    a, b = X > 1, Y > 1
    expected = [a & b, a | b, a ^ b, ~a, a.any(1), b.all(), np.array([True])]
    for found, value in zip(run(build, x=X, y=Y), expected, strict=True):
        np.testing.assert_array_equal(found, value)


def test_results_go_to_a_given_variable(run):
    def build(x, y):
        target = layers.less_than(x, y)
        assert layers.greater_than(x, y, cond=target) is target
        assert layers.logical_not(target, out=target) is target
        count = layers.reduce_sum(x)
        assert layers.increment(count, 2.0) is count
        return [target, count, layers.increment(count, in_place=False)]

    found = run(build, x=X, y=Y)
    np.testing.assert_array_equal(found[0], X <= Y)
    np.testing.assert_allclose(found[1:], [X.sum() + 2, X.sum() + 3], rtol=1e-6)


def test_matrix_products(run):
    a = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    w = RNG.standard_normal((4, 5)).astype(np.float32)

    def build(a, w):
        return [
            layers.matmul(a, a, transpose_y=True, alpha=0.5),
            layers.matmul(a, w),
            layers.mul(a, w, x_num_col_dims=2),
        ]

    expected = [0.5 * a @ a.transpose(0, 2, 1), a @ w, a @ w]
    for found, value in zip(run(build, a=a, w=w), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5)


BAD_CALLS = [
    (lambda x: layers.matmul(x, 3), r"matmul: y is 3 \(int\); expected Variable"),
    (lambda x: layers.scale(x < 1.0), r"scale: x \(variable 'less_than_0.tmp_0'\) is bool; expected"),
    (lambda x: layers.reduce_sum(x, dim=5), r"op reduce_sum"),
    (lambda x: layers.sums([]), r"sums: input is empty"),
    (lambda x: x @ "y", r"op matmul_v2: the other operand of variable 'x' is str"),
    (lambda x: layers.less_than(x, x, cond=x), r"less_than: cond \(variable 'x'\) is float32; expected bool"),
]


@pytest.mark.parametrize(("build", "text"), BAD_CALLS)
def test_bad_calls(build, text):
    with oprack.program_guard(oprack.Program()), oprack.unique_name.guard():
        x = layers.data("x", [None, 3])
        with pytest.raises(InvalidArgumentError, match=text):
            build(x)


def test_shapes_that_do_not_fit_point_at_the_line():
    with oprack.program_guard(oprack.Program()):
        x, y = layers.data("x", [None, 3]), layers.data("y", [None, 4])
        with pytest.raises(InvalidArgumentError, match=r"op elementwise_add: X has shape \[-1, 3\]") as caught:
            x + y
    assert 'test_layers.py", line ' in str(caught.value) and str(caught.value).endswith(": x + y")
