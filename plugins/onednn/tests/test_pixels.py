"""Layers of one pixel as a step in C: its numbers are those of the formula, whatever the number of pixels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oprack_nn.ops.post_ops import RESIDUAL, encode
from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernels.conv2d_chain import Layer, find_primitive

FUNCTIONS = {
    "gelu": lambda x: x * (0.5 + np.vectorize(math.erf)(x / math.sqrt(2)) / 2),
    "relu": lambda x: np.maximum(x, 0),
}
POST_OPS = {"gelu": encode("gelu", [0.0]), "relu": encode("relu", []), RESIDUAL: RESIDUAL}


@pytest.fixture(autouse=True)
def served():
    if not LIBRARY.usable() or RUNNER.library is None or not RUNNER.library.oprack_pixels_serves():
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
    assert [step.impl for step, _ in primitive.chain.steps] == ["oprack:oprack_pixels"]
    return primitive.run(x, *filters, *biases, *([] if residual is None else [residual])), rows.transpose(0, 3, 1, 2)


@pytest.mark.parametrize(
    "image, layers",
    [
        ((2, 48, 9, 8), [(96, ["gelu"]), (48, [RESIDUAL])]),
        ((1, 96, 5, 31), [(192, ["gelu"]), (96, [RESIDUAL])]),  # halves of an odd number of pixels
        ((3, 192, 7, 15), [(384, ["relu"]), (192, [RESIDUAL, "relu"])]),
        ((1, 20, 1, 1), [(16, ["gelu"]), (64, [])]),
        ((1, 7, 3, 50), [(80, ["gelu"]), (112, ["gelu"])]),
        ((1, 256, 12, 13), [(160, []), (224, ["relu"])]),
    ],
    ids=str,
)
@pytest.mark.parametrize("biased", [True, False], ids=["bias", "plain"])
def test_numbers_are_those_of_the_formula(image, layers, biased):
    got, want = run(image, layers, biased)
    assert np.abs(got - want).max() < 1.5e-6 * np.abs(want).max()


def test_threads_have_the_same_numbers(monkeypatch):
    answers = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(LIBRARY, "num_threads", lambda threads=threads: threads)
        THREAD.primitives.clear()
        answers.append(run((1, 96, 23, 27), [(192, ["relu"]), (96, [RESIDUAL])])[0])
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])


def test_gelu_of_what_is_far_from_zero():
    x = np.array([-np.float32(3e38), -1e4, -6, -5.4, 0, 5.4, 6, 1e4, np.float32(3e38), np.nan], np.float32)
    identity = np.zeros((16, 16, 1, 1), np.float32)
    identity[range(16), range(16)] = 1
    identity.flags.writeable = False
    layer = Layer((1, 1), (0, 0, 0, 0), 1, None, (POST_OPS["gelu"],))
    images = np.zeros((1, 10, 1, 16), np.float32).transpose(0, 3, 1, 2)
    images[0, 3, :, 0] = x  # alone in its row, since what is not finite times 0 is NaN
    got = find_primitive((layer, layer._replace(post_ops=())), images, (identity, identity), (), None)
    assert got is not None
    found = got.run(images, identity, identity)[0, 3, :, 0]
    np.testing.assert_allclose(found[:-1], FUNCTIONS["gelu"](np.float64(x[:-1])), rtol=2e-7, atol=1e-6)
    assert np.isnan(found[-1])
