"""Kernels of this library against NumPy's on larger tensors, in every memory layout that may reach them."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numpy_kernels import call, numpy_result
from oprack.op import REQUIRED
from oprack.packs.manager import default_manager
from oprack_onednn.chain.memory import is_channels_last
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.kernels import (
    activation,
    batch_norm,
    concat,
    conv2d,
    conv2d_grad,
    conv2d_transpose,
    elementwise,
    interp,
    layer_norm,
    matmul,
    pool2d,
    softmax,
)


class Context:
    """What a kernel asks of its KernelContext."""

    def __init__(self, op_type, attrs, offsets=()):
        self.op_type, self.attrs, self.offsets = op_type, attrs, list(offsets)

    def lod(self, slot, i=0):
        return [self.offsets] if self.offsets else []

    def wants(self, slot, i=0):
        return True


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def channels_last(array):
    return np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


def with_gaps(array):
    wide = np.zeros((*array.shape[:-1], array.shape[-1] + 3), array.dtype)
    wide[..., 2:-1] = array
    return wide[..., 2:-1]


LAYOUTS = {"row major": lambda a: a, "channels last": channels_last, "gaps": with_gaps}


def constant(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def both(monkeypatch, function, op, *args, offsets=(), **given):
    """(what the kernel of this library gives, what NumPy's gives); it is an error when the first leaves it to NumPy."""
    proto = default_manager().op_info(op).proto
    attrs = {a.name: a.default for a in proto.attrs.values() if a.default is not REQUIRED} | given
    ctx = Context(op, attrs, offsets)
    parameters = inspect.signature(function).parameters.values()
    named = {p.name: attrs[p.name] for p in parameters if p.kind is p.KEYWORD_ONLY and p.name in attrs}
    names = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    want = numpy_result(op, dict(zip(names, args, strict=False)), ctx)
    got = call(function, *args, ctx=ctx, **named)
    assert got is not NotImplemented, f"{op} was left to NumPy"
    # plans of programs are made for one of them, and later run the other
    assert type(got) is type(want) and (not isinstance(got, tuple | dict) or len(got) == len(want))
    return got, want


def agree(got, want, rtol=1e-5, atol=1e-5):
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol * max(1.0, float(np.abs(want).max())))


CONVOLUTIONS = [
    # x, filter, attributes
    ((2, 3, 33, 47), (16, 3, 3, 3), dict(strides=[2, 2], paddings=[1, 1])),
    ((1, 24, 20, 20), (48, 24, 1, 1), {}),
    ((1, 24, 20, 20), (48, 24, 1, 1), dict(strides=[2, 2])),
    ((2, 32, 19, 21), (32, 1, 5, 5), dict(groups=32, paddings=[2, 2])),
    ((2, 32, 19, 21), (64, 1, 3, 3), dict(groups=32, paddings=[1, 1], strides=[2, 1])),
    ((1, 12, 15, 15), (18, 4, 3, 3), dict(groups=3, paddings=[0, 2, 1, 0])),
    ((1, 8, 17, 18), (8, 8, 3, 3), dict(dilations=[2, 3], paddings=[2, 2])),
    ((2, 5, 16, 15), (7, 5, 4, 3), dict(padding_algorithm="SAME", strides=[3, 2])),
    ((2, 5, 16, 15), (7, 5, 4, 3), dict(padding_algorithm="VALID", paddings=[1, 1])),
    ((1, 3, 40, 1), (6, 3, 3, 1), dict(paddings=[1, 0])),
    ((1, 4, 5, 5), (4, 4, 2, 2), dict(strides=[4, 4])),
    ((3, 96, 1, 1), (24, 96, 1, 1), {}),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_conv2d(monkeypatch, case, fixed, layout):
    x, w, attrs = case
    w = constant(normal(*w)) if fixed else normal(*w)
    got, want = both(monkeypatch, conv2d.conv2d, "conv2d", LAYOUTS[layout](normal(*x)), w, **attrs)
    agree(got, want)
    assert is_channels_last(got)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CONVOLUTIONS[:-1], ids=str)
def test_conv2d_grad(monkeypatch, case, layout):
    x, w, attrs = case
    x, w = LAYOUTS[layout](normal(*x)), normal(*w)
    ctx = Context("conv2d", {a.name: a.default for a in default_manager().op_info("conv2d").proto.attrs.values()})
    ctx.attrs |= attrs
    y = numpy_result("conv2d", {"Input": x, "Filter": w}, ctx)
    got, want = both(monkeypatch, conv2d_grad.conv2d_grad, "conv2d_grad", x, w, normal(*y.shape, seed=3), **attrs)
    for slot in ("Input_grad", "Filter_grad"):
        agree(got[slot], want[slot], rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize(
    "case",
    [
        ((2, 24, 11, 13), (24, 8, 2, 2), dict(strides=[2, 2])),
        ((1, 6, 9, 9), (6, 5, 3, 3), dict(strides=[2, 2], paddings=[1, 1], output_padding=[1, 1])),
        ((1, 6, 9, 9), (6, 5, 4, 4), dict(strides=[2, 2], paddings=[1, 1], output_size=[19, 18])),
        ((2, 8, 7, 7), (8, 3, 3, 3), dict(groups=2, dilations=[2, 2])),
        ((2, 8, 7, 7), (8, 1, 3, 3), dict(groups=8, strides=[2, 2])),
    ],
    ids=str,
)
def test_conv2d_transpose(monkeypatch, case, fixed):
    x, w, attrs = case
    w = constant(normal(*w)) if fixed else normal(*w)
    args = (channels_last(normal(*x)), w)
    agree(*both(monkeypatch, conv2d_transpose.conv2d_transpose, "conv2d_transpose", *args, **attrs))


def test_conv2d_in_nhwc(monkeypatch):
    x, w = normal(2, 12, 14, 6), normal(8, 6, 3, 3)
    agree(*both(monkeypatch, conv2d.conv2d, "conv2d", x, w, data_format="NHWC", paddings=[1, 1]))


POOLS = [
    dict(pooling_type="max", ksize=[3, 3], strides=[2, 2], paddings=[1, 1]),
    dict(pooling_type="avg", ksize=[3, 3], strides=[2, 2], paddings=[1, 1], exclusive=True),
    dict(pooling_type="avg", ksize=[3, 3], strides=[1, 1], paddings=[1, 1], exclusive=False),
    dict(pooling_type="max", ksize=[2, 2], strides=[2, 2], ceil_mode=True),
    dict(pooling_type="avg", ksize=[2, 2], strides=[2, 2], ceil_mode=True, exclusive=True),
    dict(pooling_type="avg", ksize=[1, 1], adaptive=True),
    dict(pooling_type="avg", ksize=[7, 3], adaptive=True),
    dict(pooling_type="avg", ksize=[1, 1], global_pooling=True),
    dict(pooling_type="max", ksize=[1, 1], global_pooling=True),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("attrs", POOLS, ids=lambda a: "-".join(map(str, a.values())))
def test_pool2d(monkeypatch, attrs, layout):
    agree(*both(monkeypatch, pool2d.pool, "pool2d", LAYOUTS[layout](normal(2, 19, 21, 27)), **attrs))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("attrs", POOLS, ids=lambda a: "-".join(map(str, a.values())))
def test_pool2d_grad(monkeypatch, attrs, layout):
    x = LAYOUTS[layout](normal(2, 19, 21, 27))
    y, _ = both(monkeypatch, pool2d.pool, "pool2d", x, **attrs)
    agree(*both(monkeypatch, pool2d.pool_grad, "pool2d_grad", x, normal(*y.shape, seed=4), **attrs))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batch_norm_in_training(monkeypatch, layout):
    x = LAYOUTS[layout](normal(3, 20, 17, 19))
    scale, bias, mean = (normal(20, seed=i) for i in range(3))
    args = (x, scale, bias, mean, np.abs(normal(20, seed=9)) + 0.1)
    got, want = both(monkeypatch, batch_norm.batch_norm, "batch_norm", *args, momentum=0.8)
    for g, w in zip(got, want, strict=True):
        agree(g, w)
    saved = (want[3], want[4])
    grads = (x, scale, mean, args[4], *saved, normal(*x.shape, seed=5))
    got, want = both(monkeypatch, batch_norm.batch_norm_grad, "batch_norm_grad", *grads)
    for slot in ("X_grad", "Scale_grad", "Bias_grad"):
        agree(got[slot], want[slot], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batch_norm(monkeypatch, layout):
    x = LAYOUTS[layout](normal(2, 20, 17, 19))
    scale, bias, mean = (normal(20, seed=i) for i in range(3))
    args = (x, scale, bias, mean, np.abs(normal(20, seed=9)) + 0.1)
    got, want = both(monkeypatch, batch_norm.batch_norm, "batch_norm", *args, is_test=True)
    for g, w in zip(got, want, strict=True):
        agree(g, w)


@pytest.mark.parametrize("axis, shape", [(-1, (40, 300)), (1, (4, 30, 200)), (2, (3, 4, 5, 300))])
def test_softmax_and_layer_norm(monkeypatch, axis, shape, any_size):
    x = normal(*shape) * 5
    agree(*both(monkeypatch, softmax.softmax, "softmax", x, axis=-1))
    agree(*both(monkeypatch, softmax.log_softmax, "log_softmax", x, axis=-1))
    begin = axis % len(shape)
    size = int(np.prod(shape[begin:]))
    args = (x, normal(size, seed=1), normal(size, seed=2))
    got, want = both(monkeypatch, layer_norm.layer_norm, "layer_norm", *args, begin_norm_axis=begin, epsilon=1e-5)
    for g, w in zip(got, want, strict=True):
        agree(g, w)


ACTIVATIONS = [
    ("relu", {}),
    ("relu6", {}),
    ("leaky_relu", dict(alpha=0.1)),
    ("sigmoid", {}),
    ("tanh", {}),
    ("gelu", {}),
    ("gelu", dict(approximate=True)),
    ("swish", dict(beta=1.0)),
    ("hard_swish", {}),
    ("hard_sigmoid", dict(slope=1 / 6, offset=0.5)),
]


@pytest.mark.parametrize("layout", ["row major", "channels last"])
@pytest.mark.parametrize("op, attrs", ACTIVATIONS)
def test_activations(monkeypatch, op, attrs, layout):
    x = LAYOUTS[layout](normal(3, 8, 30, 40) * 4)
    got, want = both(monkeypatch, getattr(activation, op), op, x, **attrs)
    agree(got, want)
    assert got.strides == x.strides


BROADCASTS = [(2, 12, 30, 40), (12, 1, 1), (1, 12, 1, 1), (1,), (2, 12, 1, 1), (1, 1, 30, 40), (2, 1, 30, 40), (40,)]


@pytest.mark.parametrize("layout", ["row major", "channels last"])
@pytest.mark.parametrize("second", ["row major", "channels last"])
@pytest.mark.parametrize("shape", BROADCASTS, ids=str)
@pytest.mark.primitives("binary")
def test_elementwise(monkeypatch, shape, layout, second):
    x, y = LAYOUTS[layout](normal(2, 12, 30, 40)), normal(*shape) + 3
    if len(shape) == 4:
        y = LAYOUTS[second](y)
    served_ = {"elementwise_add": elementwise.elementwise_add, "elementwise_sub": elementwise.elementwise_sub}
    served_ |= {"elementwise_mul": elementwise.elementwise_mul, "elementwise_div": elementwise.elementwise_div}
    for op, function in served_.items():
        ctx = Context(op, {"axis": -1})
        got = function(x, y, axis=-1)
        agree(got, numpy_result(op, {"X": x, "Y": y}, ctx))


def test_elementwise_by_axis_and_in_place(monkeypatch):
    x, y = normal(4, 6, 50, 60), normal(6)
    want = x + y.reshape(6, 1, 1)
    got, _ = both(monkeypatch, elementwise.elementwise_add, "elementwise_add", x, y, axis=1)
    agree(got, want)
    assert elementwise.elementwise_add(x, y, axis=1, out=x) is x
    agree(x, want)


PRODUCTS = [
    ((50, 60), (60, 70), {}),
    ((60, 50), (60, 70), dict(trans_x=True)),
    ((50, 60), (70, 60), dict(trans_y=True)),
    ((4, 50, 60), (60, 70), {}),
    ((4, 3, 50, 60), (4, 3, 60, 70), {}),
    ((4, 3, 50, 60), (4, 3, 70, 60), dict(trans_y=True)),
    ((4, 1, 50, 60), (3, 60, 70), {}),
    ((600,), (600, 700), {}),
    ((700, 600), (600,), {}),
    ((1, 6625), (6625, 80), {}),
]


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("case", PRODUCTS, ids=str)
def test_matmul_v2(any_size, monkeypatch, case, fixed):
    x, y, attrs = case
    y = constant(normal(*y)) if fixed else normal(*y)
    agree(*both(monkeypatch, matmul.matmul_v2, "matmul_v2", normal(*x), y, **attrs))


GRADIENTS = [
    ((50, 60), (60, 70), {}),
    ((60, 50), (60, 70), dict(trans_x=True)),
    ((50, 60), (70, 60), dict(trans_y=True)),
    ((60, 50), (70, 60), dict(trans_x=True, trans_y=True)),
    ((4, 50, 60), (60, 70), {}),
    ((4, 50, 60), (70, 60), dict(trans_y=True)),
    ((4, 3, 50, 60), (4, 3, 70, 60), dict(trans_y=True)),
]


@pytest.mark.parametrize("case", GRADIENTS, ids=str)
def test_matmul_v2_grad(any_size, monkeypatch, case):
    x, y, attrs = case
    x, y = normal(*x), normal(*y)
    ctx = Context("matmul_v2", {"trans_x": False, "trans_y": False} | attrs)
    out = numpy_result("matmul_v2", {"X": x, "Y": y}, ctx)
    got, want = both(monkeypatch, matmul.matmul_v2_grad, "matmul_v2_grad", x, y, normal(*out.shape), **attrs)
    for g, w in zip(got, want, strict=True):
        agree(g, w)


def test_mul_grad(any_size, monkeypatch):
    args = (normal(6, 5, 40), normal(5, 8, 30), normal(6, 5, 30))
    got, want = both(monkeypatch, matmul.mul_grad, "mul_grad", *args, x_num_col_dims=2, y_num_col_dims=2)
    for g, w in zip(got, want, strict=True):
        agree(g, w)


def test_matmul_of_views(any_size, monkeypatch):
    """Heads of an attention: batch dims in another order than the memory's."""
    q, k = (normal(2, 30, 4, 16, seed=i).transpose(0, 2, 1, 3) for i in range(2))
    agree(*both(monkeypatch, matmul.matmul_v2, "matmul_v2", q, k, trans_y=True))
    agree(*both(monkeypatch, matmul.matmul, "matmul", q, k, transpose_Y=True, alpha=0.25))


def test_mul_and_bmm(any_size, monkeypatch):
    args = (normal(6, 5, 40), normal(5, 8, 30))
    agree(*both(monkeypatch, matmul.mul, "mul", *args, x_num_col_dims=2, y_num_col_dims=2))
    agree(*both(monkeypatch, matmul.bmm, "bmm", normal(6, 30, 40), normal(6, 40, 50)))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", ["nearest_interp_v2", "bilinear_interp_v2"])
def test_interp(monkeypatch, op, layout):
    x = LAYOUTS[layout](normal(2, 24, 23, 25))
    attrs = dict(scale=[2.0, 4.0], align_corners=False, align_mode=0, interp_method=op.split("_")[0])
    agree(*both(monkeypatch, interp.interp, op, x, **attrs))


def test_interp_of_more_than_the_caches_hold(monkeypatch):
    # one thread then stores past the caches, which the process does not survive unless memory is aligned
    attrs = dict(scale=[2.0], align_corners=False, align_mode=0, interp_method="nearest")
    with THREAD.limited(1):
        agree(*both(monkeypatch, interp.interp, "nearest_interp_v2", normal(1, 96, 92, 128), **attrs))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_concat(monkeypatch, axis):
    shapes = [[2, 10, 30, 40] for _ in range(3)]
    shapes[1][axis] = 3
    parts = [channels_last(normal(*s, seed=i)) for i, s in enumerate(shapes)]
    parts[2] = np.ascontiguousarray(parts[2])
    got, want = both(monkeypatch, concat.concat, "concat", parts, axis=axis)
    np.testing.assert_array_equal(got, want)
    assert is_channels_last(got)


def test_a_product_of_images_in_channels_last_memory(monkeypatch):
    x = LAYOUTS["channels last"](normal(64, 16, 5, 5))
    agree(*both(monkeypatch, matmul.mul, "mul", x, normal(400, 120), x_num_col_dims=1, y_num_col_dims=1))
