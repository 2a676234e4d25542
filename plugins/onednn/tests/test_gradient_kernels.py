"""Gradients of activations, sums, softmax and layer_norm, and sums over the last dims, against NumPy's kernels."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from native_calls import has_avx512
from numpy_kernels import call, numpy_result
from oprack.packs.manager import default_manager
from oprack_onednn.kernels import activation, conv3d, elementwise, layer_norm, reduce, softmax
from oprack_onednn.kernels._dense import multiply


class Context:
    """What a kernel asks of its KernelContext."""

    def __init__(self, op_type, attrs, unwanted=()):
        self.op_type, self.attrs, self.unwanted = op_type, attrs, unwanted

    def wants(self, slot, i=0):
        return slot not in self.unwanted


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def channels_last(array):
    return np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


def both(monkeypatch, function, arrays, *, unwanted=(), left=False, **given):
    """(what the kernel of this library gives, NumPy's). left: whether it leaves the work to NumPy."""
    op = function.__name__
    attrs = {a.name: a.default for a in default_manager().op_info(op).proto.attrs.values()} | given
    ctx = Context(op, attrs, unwanted)
    parameters = inspect.signature(function).parameters.values()
    named = {p.name: attrs[p.name] for p in parameters if p.kind is p.KEYWORD_ONLY and p.name in attrs}
    want = numpy_result(op, arrays, ctx)
    first, *others = (p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)
    got = call(function, arrays[first], **{n: arrays[n] for n in others if n in arrays}, **named, ctx=ctx)
    assert (got is NotImplemented) == left
    return got, want


def agree(got, want, rtol=1e-5, atol=1e-5):
    assert type(got) is type(want) and got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol * max(1.0, float(np.abs(want).max(initial=0))))


ACTIVATIONS = [
    ("gelu_grad", "X", {}),
    ("gelu_grad", "X", {"approximate": True}),
    ("leaky_relu_grad", "X", {"alpha": 0.1}),
    ("sigmoid_grad", "Out", {}),
    ("tanh_grad", "Out", {}),
    ("swish_grad", "X", {"beta": 1.5}),
    ("silu_grad", "X", {}),
    ("hard_swish_grad", "X", {}),
    ("hard_swish_grad", "X", {"threshold": 4.0, "scale": 4.0, "offset": 2.0}),
]


@pytest.mark.parametrize("layout", [lambda a: a, channels_last], ids=["row major", "channels last"])
@pytest.mark.parametrize("op, known, attrs", ACTIVATIONS, ids=str)
def test_activations(monkeypatch, op, known, attrs, layout):
    x = 3 * normal(2, 16, 20, 30)
    values = {"X": x, "Out": 1 / (1 + np.exp(-x)) if op == "sigmoid_grad" else np.tanh(x)}
    if op == "silu_grad":
        values["Out"] = x / (1 + np.exp(-x))
    arrays = {known: layout(values[known]), "Out_grad": layout(normal(*x.shape, seed=1))}
    if op == "silu_grad":
        arrays["Out"] = layout(values["Out"])
    got, want = both(monkeypatch, getattr(activation, op), arrays, **attrs)
    agree(got, want)
    assert got.strides == arrays[known].strides


def test_activations_of_other_strides_or_scales_are_left_to_numpy(monkeypatch):
    x = normal(2, 16, 20, 30)
    arrays = {"X": x, "Out_grad": channels_last(x)}
    both(monkeypatch, activation.gelu_grad, arrays, left=True)
    both(monkeypatch, activation.hard_swish_grad, {"X": x, "Out_grad": x}, left=True, threshold=6.0, scale=5.0)
    empty = normal(0, 4)
    both(monkeypatch, activation.gelu_grad, {"X": empty, "Out_grad": empty}, left=True)


# below and above the size from which on threads share a loop; rows that end between two cache lines, or have one number
SIZES = [(300, 67), (3, 40, 517), (70000, 1)]


def same(got, want):
    for a, b in zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]:
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("shape", SIZES)
def test_loops_have_the_bits_of_numpy(monkeypatch, shape):
    x, g = normal(*shape), normal(*shape, seed=1)
    x[0, 0], x[-1, -1], g[-1, 0] = np.nan, np.inf, -np.inf
    row = normal(shape[-1], seed=2)
    with np.errstate(invalid="ignore"):
        same(*both(monkeypatch, activation.relu_grad, {"Out": x, "Out_grad": g}))
        same(*both(monkeypatch, elementwise.elementwise_add, {"X": x, "Y": g}, axis=-1))
        same(*both(monkeypatch, elementwise.elementwise_add, {"X": x, "Y": row}, axis=-1))
        for y, unwanted in ((x, ()), (x, ("X@GRAD",)), *([(row, ())] if len(row) > 1 else [])):
            arrays = {"Out_grad": g, "X": x, "Y": y}
            same(*both(monkeypatch, elementwise.elementwise_add_grad, arrays, axis=-1, unwanted=unwanted))
        total = elementwise.sum_of_all([x, g, x])
        np.testing.assert_array_equal(total, (x + g) + x)
    assert elementwise.sum_of_all([x, row]) is NotImplemented
    arrays = {"Out_grad": g, "X": x, "Y": x}
    both(monkeypatch, elementwise.elementwise_add_grad, arrays, unwanted=("Y@GRAD",), left=True)


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("m, k, n", [(300, 64, 70), (1, 90, 30), (40, 1, 30), (50, 90, 1), (1, 1, 1)])
def test_products_of_turned_matrices(turned, m, k, n):
    x, y = (normal(b, a).T if t else normal(a, b) for t, (a, b) in zip(turned, [(m, k), (k, n)], strict=True))
    got = multiply(x, y, 0.5, (1, m, n))
    np.testing.assert_allclose(got[0], 0.5 * (x.astype("f8") @ y.astype("f8")), rtol=1e-4, atol=1e-4)
    wide = np.concatenate([x, x], axis=1)[:, :k]  # rows with gaps
    np.testing.assert_allclose(multiply(wide, y, 1.0, (m, n)), 2 * got[0], rtol=1e-5, atol=1e-5)
    assert multiply(np.broadcast_to(x[:1], (m + 1, k)), y, 1.0, (m + 1, n)) is None  # rows at no distance
    assert multiply(x.astype("f8"), y, 1.0, (m, n)) is None


@pytest.mark.parametrize("axis, shape", [(-1, (40, 300)), (1, (4, 30, 200)), (2, (3, 4, 5, 300))])
@pytest.mark.parametrize("op", ["softmax_grad", "log_softmax_grad"])
def test_softmax(monkeypatch, op, axis, shape):
    x = normal(*shape)
    y = np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)
    arrays = {"Out": np.log(y) if op == "log_softmax_grad" else y, "Out_grad": normal(*shape, seed=1)}
    last = axis % len(shape) == len(shape) - 1  # over others oneDNN is slow
    native = last and has_avx512()  # for other processors it has none
    got, want = both(monkeypatch, getattr(softmax, op), arrays, axis=axis, left=not native)
    if native:
        agree(got, want)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("op", ["softmax_grad", "log_softmax_grad"])
def test_softmax_of_what_is_no_number_is_left_to_numpy(monkeypatch, op, value):
    arrays = {"Out": np.full((40, 300), 1 / 300, "f4"), "Out_grad": normal(40, 300)}
    arrays["Out_grad"][3, 7] = value
    with np.errstate(invalid="ignore"):
        both(monkeypatch, getattr(softmax, op), arrays, axis=-1, left=True)


def norm_arrays(shape, axis, scaled=True):
    x = normal(*shape)
    rows = x.reshape(int(np.prod(shape[:axis])), -1)
    arrays = {"X": x, "Mean": rows.mean(axis=1), "Variance": rows.var(axis=1), "Y_grad": normal(*shape, seed=1)}
    return arrays | ({"Scale": normal(rows.shape[1], seed=2)} if scaled else {})


@pytest.mark.parametrize("shape, axis", [((40, 300), 1), ((4, 30, 64), 2), ((6, 5, 7, 8), 1)])
def test_layer_norm(monkeypatch, shape, axis):
    got, want = both(monkeypatch, layer_norm.layer_norm_grad, norm_arrays(shape, axis), begin_norm_axis=axis)
    assert set(got) == set(want) == {"X_grad", "Scale_grad", "Bias_grad"}
    for name in got:
        agree(got[name], want[name], atol=2e-5)


def test_layer_norm_without_parameters(monkeypatch):
    gone = ("Scale@GRAD", "Bias@GRAD")
    arrays = norm_arrays((40, 300), 1, scaled=False)
    got, want = both(monkeypatch, layer_norm.layer_norm_grad, arrays, begin_norm_axis=1, unwanted=gone)
    assert set(got) == set(want) == {"X_grad"}
    agree(got["X_grad"], want["X_grad"])
    both(monkeypatch, layer_norm.layer_norm_grad, arrays, begin_norm_axis=1, unwanted=gone[:1], left=True)


def test_layer_norm_gives_what_is_wanted(monkeypatch):
    arrays = norm_arrays((40, 300), 1)
    got, want = both(monkeypatch, layer_norm.layer_norm_grad, arrays, begin_norm_axis=1, unwanted=("X@GRAD",))
    assert set(got) == set(want) == {"Scale_grad", "Bias_grad"}


@pytest.mark.parametrize("op", ["reduce_sum", "reduce_mean"])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    "shape, dims", [((400, 60), [-1]), ((8, 30, 9, 10), [3, 2]), ((8, 30, 9, 10), [-1]), ((7, 9, 270), [1, 2])]
)
def test_reductions(monkeypatch, op, keep, shape, dims):
    arrays = {"X": normal(*shape)}
    agree(*both(monkeypatch, getattr(reduce, op), arrays, dim=dims, keep_dim=keep))


@pytest.mark.parametrize(
    "shape, dims",
    [((400, 60), [0]), ((8, 30, 9, 10), [1, 3]), ((2, 1 << 15), [1]), ((0, 5), [1]), ((5, 1), [1]), ((90, 80), [])],
)
def test_reductions_that_are_left_to_numpy(monkeypatch, shape, dims):
    both(monkeypatch, reduce.reduce_sum, {"X": normal(*shape)}, dim=dims, left=True)


VOLUMES = [
    ((2, 3, 6, 9, 8), (8, 3, 3, 3, 3), {"paddings": [1, 1, 1]}),
    ((1, 16, 9, 11, 13), (24, 4, 3, 2, 1), {"groups": 4, "strides": [2, 1, 2], "paddings": [1, 0, 0, 1, 1, 0]}),
    ((1, 8, 6, 7, 8), (8, 8, 3, 3, 3), {"padding_algorithm": "SAME", "strides": [1, 2, 1]}),
    ((1, 8, 7, 7, 8), (8, 1, 3, 3, 2), {"groups": 8, "dilations": [1, 2, 1], "padding_algorithm": "VALID"}),
]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("x, w, attrs", VOLUMES, ids=str)
def test_conv3d(monkeypatch, x, w, attrs, last):
    x, w = normal(*x), normal(*w)
    if last:
        x, attrs = np.ascontiguousarray(x.transpose(0, 2, 3, 4, 1)), attrs | {"data_format": "NDHWC"}
    got, want = both(monkeypatch, conv3d.conv3d, {"Input": x, "Filter": w}, **attrs)
    agree(got, want, rtol=1e-4)
    arrays = {"Input": x, "Filter": w, "Output_grad": normal(*want.shape, seed=1)}
    got, want = both(monkeypatch, conv3d.conv3d_grad, arrays, **attrs)
    assert set(got) == set(want)
    for name in got:
        agree(got[name], want[name], rtol=1e-4)
