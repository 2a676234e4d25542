"""Convolutions as a step in C: its numbers are those of the formula, whatever the size and the number of threads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oprack_nn.ops.post_ops import RESIDUAL, encode
from oprack_onednn.chain.native_steps import widest_serves
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernels import conv2d, pointwise_conv2d
from oprack_onednn.kernels._convolution import Layer
from oprack_onednn.kernels.conv2d_chain import find_primitive
from oprack_onednn.kernels.fused_matmul import FusedPrimitive
from oprack_onednn.stretch.callsite import _Entry

FUNCTIONS = {
    "gelu": lambda x: x * (0.5 + np.vectorize(math.erf)(x / math.sqrt(2)) / 2),
    "relu": lambda x: np.maximum(x, 0),
}
POST_OPS = {"gelu": encode("gelu", [0.0]), "relu": encode("relu", []), RESIDUAL: RESIDUAL}


@pytest.fixture(autouse=True)
def served():
    if not THREAD.ready() or not widest_serves():
        pytest.skip("the step needs the compiled library, and a CPU with AVX-512")
    THREAD.primitives.clear()


def constant(*shape):
    """Parameters as a predictor has them, whose sums are about as large as what they are made of."""
    array = np.random.default_rng(shape).standard_normal(shape, np.float32)
    array /= np.float32(math.sqrt(math.prod(shape[1:])))
    array.flags.writeable = False
    return array


def run(image, layers, biased=True):
    """(what the step gives, what the formula gives) for layers of (channels, post-ops) on images [N, C, H, W]."""
    x = np.random.default_rng(7).standard_normal((image[0], *image[2:], image[1]), np.float32).transpose(0, 3, 1, 2)
    filters, biases, described, rows = [], [], [], np.float64(x.transpose(0, 2, 3, 1))
    residual = None
    for i, (channels, post_ops) in enumerate(layers):
        filters.append(constant(channels, rows.shape[-1], 1, 1))
        bias = constant(channels)
        biases += [bias] if biased else []
        texts = tuple(POST_OPS[name] for name in post_ops)
        described.append(Layer((1, 1), (0, 0, 0, 0), 1, i if biased else None, texts))
        rows = rows @ np.float64(filters[-1][:, :, 0, 0].T) + (bias if biased else 0)
        for name in post_ops:
            if name == RESIDUAL:
                residual = np.random.default_rng(8).standard_normal(rows.shape, np.float32).transpose(0, 3, 1, 2)
            rows = rows + residual.transpose(0, 2, 3, 1) if name == RESIDUAL else FUNCTIONS[name](rows)
    primitive = find_primitive(tuple(described), x, tuple(filters), tuple(biases), residual)
    assert [step.impl for step, _ in primitive.chain.steps] == ["oprack:oprack_convolution"]
    return primitive.run(x, *filters, *biases, *([] if residual is None else [residual])), rows.transpose(0, 3, 1, 2)


@pytest.mark.parametrize(
    "image, layers",
    [
        ((2, 48, 9, 8), [(96, ["gelu"]), (48, [RESIDUAL])]),
        ((1, 96, 5, 31), [(192, ["gelu"]), (96, [RESIDUAL])]),  # halves of an odd number of pixels
        ((3, 192, 7, 15), [(384, ["relu"]), (192, [RESIDUAL, "relu"])]),
        ((1, 20, 1, 1), [(32, ["gelu"]), (64, [])]),
        ((1, 7, 3, 50), [(80, ["gelu"]), (112, ["gelu"])]),
        ((1, 256, 12, 13), [(160, []), (224, ["relu"])]),
    ],
    ids=str,
)
@pytest.mark.parametrize("biased", [True, False], ids=["bias", "plain"])
def test_numbers_are_those_of_the_formula(image, layers, biased):
    got, want = run(image, layers, biased)
    assert np.abs(got - want).max() < 1.5e-6 * np.abs(want).max()


HARD_SWISH = encode("hard_swish", [6.0, 6.0, 3.0])
SIGMOID = encode("sigmoid", [])


def convolved(x, w, strides, paddings, groups):
    """The formula in float64: x [N, C, H, W] by w [K, C / groups, kh, kw]."""
    top, bottom, left, right = paddings
    x = np.pad(np.float64(x), ((0, 0), (0, 0), (top, bottom), (left, right)))
    k, c, kh, kw = w.shape
    high, wide = ((size - taps) // step + 1 for size, taps, step in zip(x.shape[2:], (kh, kw), strides, strict=True))
    seen = np.lib.stride_tricks.sliding_window_view(x, (kh, kw), (2, 3))[:, :, :: strides[0], :: strides[1]]
    assert seen.shape[2:4] == (high, wide)
    parts = seen.reshape(len(x), groups, c, *seen.shape[2:])
    filters = np.float64(w).reshape(groups, k // groups, c, kh, kw)
    return np.einsum("ngchwyx,gkcyx->ngkhw", parts, filters).reshape(len(x), k, high, wide)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    "image, outputs, taps, strides, paddings",
    [
        ((1, 16, 8, 16), 24, (3, 3), (1, 1), (1, 1, 1, 1)),  # fewer blocks of rows than threads, and of columns
        ((2, 3, 13, 18), 32, (7, 7), (2, 2), (3, 3, 3, 3)),
        ((1, 33, 9, 11), 80, (3, 3), (2, 1), (0, 1, 1, 0)),
        ((1, 20, 30, 41), 70, (1, 5), (1, 1), (0, 0, 2, 2)),
        ((3, 40, 7, 7), 112, (3, 3), (1, 1), (2, 2, 2, 2)),
        ((1, 64, 5, 40), 96, (3, 3), (1, 1), (0, 0, 0, 0)),  # which no copy is made for
        ((1, 24, 6, 7), 48, (1, 1), (2, 2), (0, 0, 0, 0)),
    ],
    ids=str,
)
def test_windows_of_one_group(monkeypatch, threads, image, outputs, taps, strides, paddings):
    monkeypatch.setattr(LIBRARY, "num_threads", lambda: threads)
    rng = np.random.default_rng(outputs)
    x = rng.standard_normal((image[0], *image[2:], image[1]), np.float32).transpose(0, 3, 1, 2)
    w, bias = constant(outputs, image[1], *taps), constant(outputs)
    want = convolved(x, w, strides, paddings, 1) + bias[:, None, None]
    want = want * np.clip(want / 6 + 0.5, 0, 1)
    primitive = find_primitive((Layer(strides, paddings, 1, 0, (HARD_SWISH,)),), x, (w,), (bias,), None)
    assert [step.impl for step, _ in primitive.chain.steps] == ["oprack:oprack_convolution"]
    assert np.abs(primitive.run(x, w, bias) - want).max() < 1.5e-6 * np.abs(want).max()


@pytest.mark.parametrize("channels", [8, 16, 24, 48, 83])
@pytest.mark.parametrize(
    "size, taps, strides, paddings",
    [
        ((5, 6), (3, 3), (1, 1), (1, 1, 1, 1)),
        ((9, 60), (3, 3), (1, 1), (1, 1, 1, 1)),  # too wide for a copy
        ((11, 61), (3, 3), (2, 2), (1, 1, 1, 1)),
        ((12, 70), (5, 5), (1, 1), (2, 2, 2, 2)),
        ((14, 71), (5, 5), (2, 2), (2, 2, 2, 2)),
        ((9, 50), (7, 7), (1, 1), (3, 3, 3, 3)),
        ((8, 9), (7, 7), (1, 1), (3, 3, 3, 3)),
        ((40, 33), (3, 3), (1, 1), (1, 1, 1, 1)),
        ((4, 75), (1, 7), (1, 3), (0, 0, 3, 2)),
        ((3, 34), (5, 3), (1, 1), (4, 4, 2, 2)),  # rows of zeros alone
        ((6, 40), (3, 3), (1, 1), (0, 0, 0, 0)),
    ],
    ids=str,
)
def test_windows_of_channels(channels, size, taps, strides, paddings):
    rng = np.random.default_rng(channels)
    x = rng.standard_normal((2, *size, channels), np.float32).transpose(0, 3, 1, 2)
    w, bias = constant(channels, 1, *taps), constant(channels)
    after, last = constant(40, channels, 1, 1), Layer((1, 1), (0, 0, 0, 0), 1, None, (RESIDUAL, SIGMOID))
    first = Layer(strides, paddings, channels, 0, (HARD_SWISH,))
    want = convolved(x, w, strides, paddings, channels) + bias[:, None, None]
    want = want * np.clip(want / 6 + 0.5, 0, 1)
    alone = find_primitive((first,), x, (w,), (bias,), None)
    assert [step.impl for step, _ in alone.chain.steps] == ["oprack:oprack_convolution"]
    assert np.abs(alone.run(x, w, bias) - want).max() < 1.5e-6 * np.abs(want).max()
    want = np.einsum("nchw,kc->nkhw", want, np.float64(after[:, :, 0, 0]))
    added = rng.standard_normal((*want.shape[:1], *want.shape[2:], 40), np.float32).transpose(0, 3, 1, 2)
    want = 1 / (1 + np.exp(-(want + added)))
    both = find_primitive((first, last), x, (w, after), (bias,), added)
    assert [step.impl for step, _ in both.chain.steps] == ["oprack:oprack_convolution"]
    assert np.abs(both.run(x, w, after, bias, added) - want).max() < 1e-6


def test_what_is_not_finite_stays_where_it_is():
    x = np.zeros((1, 4, 30, 16), np.float32)
    x[0, 1, 3, 2], x[0, 2, 20, 5] = np.inf, np.nan
    images, w = x.transpose(0, 3, 1, 2), constant(16, 1, 3, 3)
    layer = Layer((1, 1), (1, 1, 1, 1), 16, None, (HARD_SWISH,))
    got = find_primitive((layer,), images, (w,), (), None).run(images, w)
    with np.errstate(invalid="ignore"):
        want = convolved(images, w, (1, 1), (1, 1, 1, 1), 16)
        want = want * np.clip(want / 6 + 0.5, 0, 1)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))


@pytest.mark.parametrize("following", ["relu", "gelu"])
def test_relu_gives_0_for_nan_as_the_op_does(following):
    """In registers as well as behind another function."""
    x, w = np.full((1, 1, 20, 32), np.nan, np.float32).transpose(0, 3, 1, 2), constant(32, 32, 1, 1)
    texts = tuple(POST_OPS[name] for name in dict.fromkeys((following, "relu")))
    layer = Layer((1, 1), (0, 0, 0, 0), 1, None, texts)
    assert not find_primitive((layer,), x, (w,), (), None).run(x, w).any()


@pytest.mark.parametrize("rows, inputs, outputs", [(1, 40, 24), (7, 240, 17), (45, 120, 240), (300, 64, 100)])
@pytest.mark.parametrize("post_ops", [(), ("relu",), (RESIDUAL, "gelu"), ("gelu", RESIDUAL)])
def test_products_with_a_weight_of_few_rows(rows, inputs, outputs, post_ops):
    rng = np.random.default_rng(rows)
    x, added = rng.standard_normal((rows, inputs), np.float32), rng.standard_normal((rows, outputs), np.float32)
    w, bias = constant(outputs, inputs).T.copy(), constant(outputs)
    w.flags.writeable = False
    residual = (added,) if RESIDUAL in post_ops else ()
    form = (rows, 0, outputs) if residual else None
    texts = tuple(POST_OPS[name] for name in post_ops)
    key = (rows, outputs), rows, inputs, w.shape, (outputs, 1), True, True, form, texts, False
    primitive = FusedPrimitive(*key)
    assert [step.impl for step, _ in primitive.chain.steps] == ["oprack:oprack_convolution"]
    want = np.float64(x) @ w + bias
    for name in post_ops:
        want = want + added if name == RESIDUAL else FUNCTIONS[name](want)
    np.testing.assert_allclose(primitive.run(x, w, bias, *residual), want, rtol=1e-5, atol=3e-6)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n, size", [(1, (1, 1)), (1, (40, 40)), (3, (5, 7)), (2, (1, 300))])
@pytest.mark.parametrize("channels, outputs", [(40, 40), (32, 96), (130, 50), (192, 192)])
def test_pixels_with_a_scale_of_each_image(monkeypatch, threads, n, size, channels, outputs):
    monkeypatch.setattr(LIBRARY, "num_threads", lambda: threads)
    rng = np.random.default_rng(channels)
    x = rng.standard_normal((n, *size, channels), np.float32).transpose(0, 3, 1, 2)
    scale = rng.random((n, channels, 1, 1), np.float32)
    added = rng.standard_normal((n, *size, outputs), np.float32).transpose(0, 3, 1, 2)
    w, bias = constant(outputs, channels, 1, 1), constant(outputs)
    primitive = pointwise_conv2d._build(x, w, bias, scale, None, added, (POST_OPS["relu"], RESIDUAL), False, False)
    assert [step.impl for step, _ in primitive.chain.steps] == ["oprack:oprack_convolution"]
    want = np.einsum("nchw,kc->nkhw", np.float64(x) * scale, w[:, :, 0, 0]) + bias.reshape(-1, 1, 1)
    got = primitive.run(x, w, bias, scale, added)
    np.testing.assert_allclose(got, np.maximum(want, 0) + added, rtol=1e-5, atol=5e-6)


@pytest.mark.parametrize(
    "image, layers",
    [
        ((1, 96, 23, 27), [(192, ["relu"]), (96, [RESIDUAL])]),
        ((1, 700, 7, 7), [(80, ["gelu"]), (48, [RESIDUAL, "relu"])]),  # rows of an image that several threads share
        ((1, 700, 7, 7), [(80, ["gelu"])]),
    ],
)
def test_threads_have_the_same_numbers(monkeypatch, image, layers):
    answers = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(LIBRARY, "num_threads", lambda threads=threads: threads)
        THREAD.primitives.clear()
        answers.append(run(image, layers)[0])
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])


def test_gelu_of_what_is_far_from_zero():
    x = np.array([-np.float32(3e38), -1e4, -6, -5.4, 0, 5.4, 6, 1e4, np.float32(3e38), np.nan], np.float32)
    identity = np.zeros((32, 32, 1, 1), np.float32)
    identity[range(32), range(32)] = 1
    identity.flags.writeable = False
    layer = Layer((1, 1), (0, 0, 0, 0), 1, None, (POST_OPS["gelu"],))
    images = np.zeros((1, 10, 1, 32), np.float32).transpose(0, 3, 1, 2)
    images[0, 3, :, 0] = x  # alone in its row, since what is not finite times 0 is NaN
    got = find_primitive((layer, layer._replace(post_ops=())), images, (identity, identity), (), None)
    assert got is not None
    found = got.run(images, identity, identity)[0, 3, :, 0]
    np.testing.assert_allclose(found[:-1], FUNCTIONS["gelu"](np.float64(x[:-1])), rtol=2e-7, atol=1e-6)
    assert np.isnan(found[-1])


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n, size", [(1, (7, 9)), (3, (33, 20)), (2, (1, 40)), (1, (420, 400))])
@pytest.mark.parametrize("channels", [2, 3, 4, 5])
def test_pictures_are_read_as_they_are(monkeypatch, threads, n, size, channels):
    """Row-major images give the numbers that channels-last ones do, in rows at a time as well, and in other sizes."""
    monkeypatch.setattr(LIBRARY, "num_threads", lambda: threads)
    filters = constant(8, channels, 3, 3), constant(8, 1, 3, 3), constant(40, 8, 1, 1), constant(40, 1, 3, 3)
    layers = (
        Layer((2, 2), (1, 2, 0, 1), 1, None, (POST_OPS["relu"],)),
        Layer((1, 1), (1, 1, 1, 1), 8, None, ()),
        Layer((1, 1), (0, 0, 0, 0), 1, None, ()),
        Layer((1, 1), (1, 1, 1, 1), 40, None, ()),
    )
    x = np.random.default_rng(n).standard_normal((n, *size, channels), np.float32).transpose(0, 3, 1, 2)
    rows = np.ascontiguousarray(x)
    made = [find_primitive(layers, a, filters, (), None) for a in (x, rows)]
    assert [len(p.chain.steps) for p in made] == [1, 1 if channels < 5 else 2], "many channels are moved before"
    want, got = (p.run(a, *filters) for p, a in zip(made, (x, rows), strict=True))
    np.testing.assert_array_equal(got, want)
    assert np.abs(want).max() > 0
    other = np.ascontiguousarray(rows[:, :, :, 1:])
    assert made[1].resized(rows[:, :, :, 1:]) is None and (made[1].resized(other) is None) == (channels == 5)


@pytest.mark.parametrize("padding", ["EXPLICIT", "VALID", "SAME"])
@pytest.mark.parametrize("pictures", [False, True])
def test_a_single_convolution_of_another_size_is_the_one_made_anew(padding, pictures):
    rng, w = np.random.default_rng(5), constant(12, 3, 3, 3)

    def images(*size):
        x = rng.standard_normal((2, *size, 3), np.float32).transpose(0, 3, 1, 2)
        return np.ascontiguousarray(x) if pictures else x

    def made(x):
        THREAD.primitives.clear()
        return conv2d.find_primitive(x, w, None, (2, 2), (1, 0), (1, 1), 1, padding)

    x, before = images(9, 14), images(8, 20)
    entry = _Entry(made(before), (before, w), (0,)).resized((x, w))
    assert (entry is None) == (padding == "SAME"), "the size says how many zeros are around it"
    if entry is not None:
        y, out = entry.take()
        entry.run(x.ctypes.data, out)
        np.testing.assert_array_equal(y, made(x).run(x, w))
