"""Rows that are normalized (normalize.c): layer_norm, softmax and log_softmax beside formulas in float64."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_kernels import on_numpy
from oprack.kernel.specialization import KernelSpecialization
from oprack_onednn.chain.native_steps import widest_serves
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernels import layer_norm as layer_norms
from oprack_onednn.kernels import softmax as softmaxes
from oprack_onednn.stretch import callsite

pytestmark = pytest.mark.usefixtures("any_size")
COLUMNS = [2, 3, 15, 16, 17, 31, 33, 47, 48, 63, 64, 65, 79, 80, 113, 128, 200, 1000]
EPSILON = 1e-5


def normal(*shape, seed=0, scale=1.0, shift=0.0):
    return (np.random.default_rng((seed, *shape)).standard_normal(shape) * scale + shift).astype(np.float32)


def constant(array):
    array.flags.writeable = False
    return array


def site_of(module, op_type, given, **attrs):
    call = KernelSpecialization(op_type, on_numpy(op_type, attrs).attrs, {slot: (np.float32,) for slot in given}, np)
    return module._specialize(call)


def layer_norm_of(scaled=True, shifted=True, axis=1):
    given = ["X", *["Scale"] * scaled, *["Bias"] * shifted]
    return site_of(layer_norms, "layer_norm", given, epsilon=EPSILON, begin_norm_axis=axis)


def softmax_of(op_type="softmax", axis=-1):
    return site_of(softmaxes, op_type, ["X"], axis=axis)


def layer_norm_formula(x, scale, bias):
    x = x.astype(np.float64)
    mean = x.mean(axis=1)
    variance = ((x - mean[:, None]) ** 2).mean(axis=1)
    y = (x - mean[:, None]) / np.sqrt(variance + EPSILON)[:, None]
    return y * (1 if scale is None else scale) + (0 if bias is None else bias), mean, variance


def softmax_formula(x, op_type):
    below = x.astype(np.float64) - x.max(axis=-1, keepdims=True)
    logarithms = below - np.log(np.exp(below).sum(axis=-1, keepdims=True))
    return np.exp(logarithms) if op_type == "softmax" else logarithms


@pytest.mark.parametrize("scaled, shifted", [(True, True), (True, False), (False, True), (False, False)])
def test_layer_norm_of_rows_of_any_length(scaled, shifted):
    for rows, columns in [(5, n) for n in COLUMNS] + [(1, 64), (700, 48)]:
        x = normal(rows, columns, scale=3, shift=2)
        scale = constant(normal(columns, seed=1)) if scaled else None
        bias = constant(normal(columns, seed=2)) if shifted else None
        found = layer_norm_of(scaled, shifted)(x, scale, bias)
        for y, expected in zip(found, layer_norm_formula(x, scale, bias), strict=True):
            np.testing.assert_allclose(y, expected, rtol=2e-5, atol=2e-5)


def test_layer_norm_of_numbers_far_from_zero():
    x, one = normal(6, 90, shift=3000), constant(np.ones(90, np.float32))
    y, mean, variance = layer_norm_of(True, False)(x, one)
    expected = layer_norm_formula(x, None, None)
    np.testing.assert_allclose(mean, expected[1], rtol=1e-6)
    np.testing.assert_allclose(variance, expected[2], rtol=1e-3)
    np.testing.assert_allclose(y, expected[0], atol=2e-3)


@pytest.mark.parametrize("op_type", ["softmax", "log_softmax"])
def test_softmax_of_rows_of_any_length(op_type):
    for rows, columns in [(5, n) for n in (1, *COLUMNS)] + [(1, 64), (700, 48)]:
        for scale in (0.1, 5, 60):
            x = normal(rows, columns, scale=scale)
            y = softmax_of(op_type)(x)
            np.testing.assert_allclose(y, softmax_formula(x, op_type), rtol=2e-6, atol=1e-6 if scale < 60 else 1e-4)


def test_powers_have_all_their_digits():
    x = np.zeros((2000, 2), np.float32)
    x[:, 1] = -np.linspace(0, 87, 2000)
    y = softmax_of()(x)
    np.testing.assert_allclose(y, softmax_formula(x, "softmax"), rtol=5e-7)
    far = softmax_of()(np.array([[0, -90, -500, -np.inf]], np.float32))
    np.testing.assert_array_equal(far, [[1, 0, 0, 0]])


@pytest.mark.parametrize("op_type", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(7, 40), (7, 5, 2, 4)], ids=["rows", "images"])
def test_rows_with_nan_or_infinity_are_what_numpy_makes_of_them(op_type, shape):
    """Where a step in C serves, it computes them itself: NumPy is not asked."""
    x = normal(*shape)
    x[1, 3], x[3, -1], x[5], x[6, 2] = np.nan, np.inf, -np.inf, -np.inf
    if x.ndim > 2:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    with np.errstate(all="ignore"):
        below = x - x.max(axis=1, keepdims=True)
        logarithms = below - np.log(np.exp(below).sum(axis=1, keepdims=True))
    expected = np.exp(logarithms) if op_type == "softmax" else logarithms
    assert np.isnan(expected[[1, 3, 5]]).any() and not np.isnan(expected[[0, 2, 4, 6]]).any()
    found = softmax_of(op_type, axis=1)(x)
    if widest_serves():
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    else:
        assert found is NotImplemented


@pytest.mark.parametrize("op_type", ["softmax", "log_softmax"])
def test_a_result_may_take_the_place_of_what_it_is_made_of(op_type):
    x = normal(9, 33)
    expected = softmax_formula(x, op_type)
    softmaxes._run(x, 1, x, softmaxes._ALGORITHMS[op_type])
    np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-6)


def test_any_number_of_threads_gives_the_same_bits():
    x, scale = normal(501, 97), constant(normal(97, seed=1))
    found = []
    for threads in (1, 2, 3, 5):
        with THREAD.limited(threads):
            assert THREAD.ready()
            found.append((layer_norm_of(True, False)(x, scale)[0], softmax_of()(x)))
    for each in found[1:]:
        for y, first in zip(each, found[0], strict=True):
            np.testing.assert_array_equal(y, first)
    assert LIBRARY.usable()


IMAGES = [(2, 20, 5, 6), (1, 20, 9, 3), (3, 7, 4, 4)]
CASES = {
    "layer_norm": (layer_norm_of, [(4, 7, 30), (2, 9, 30), (11, 1, 30)], 30, dict(axis=2)),
    "layer_norm of more": (layer_norm_of, [(4, 5, 6), (9, 5, 6), (1, 5, 6)], 30, dict(axis=1)),
    "softmax": (softmax_of, [(4, 7, 30), (2, 9, 12), (11, 1, 300)], 0, {}),
    "log_softmax": (softmax_of, [(4, 30), (2, 12), (11, 300)], 0, dict(op_type="log_softmax")),
    "softmax of images": (softmax_of, IMAGES, 0, dict(axis=1)),
}


@pytest.mark.parametrize("case", CASES)
def test_other_sizes_need_no_chain_and_have_the_same_numbers(monkeypatch, case):
    if not widest_serves():
        pytest.skip("steps in C for any size need the compiled library, and a CPU with AVX-512")
    make, shapes, columns, options = CASES[case]
    parameters = [constant(normal(columns, seed=1)), constant(normal(columns, seed=2))] if columns else []
    built, build, site = [], callsite._Entry.__init__, make(**options)
    for seed, shape in enumerate([*shapes, shapes[0]]):
        x = normal(*shape, seed=seed)
        if "images" in case:
            x = normal(shape[0], *shape[2:], shape[1], seed=seed).transpose(0, 3, 1, 2)
        monkeypatch.setattr(callsite._Entry, "__init__", lambda self, *a: built.append(a) or build(self, *a))
        found = site(x, *parameters)
        monkeypatch.undo()
        expected = make(**options)(x, *parameters)
        for y, same in zip(*([f] if isinstance(f, np.ndarray) else f for f in (found, expected)), strict=True):
            np.testing.assert_array_equal(y, same)
            assert y.shape == same.shape and y.strides == same.strides
    assert len(built) == 1


def test_rows_of_other_lengths_are_no_other_size_of_a_layer_norm():
    site = layer_norm_of()
    for columns in (30, 31, 30):
        x, scale, bias = normal(4, columns), constant(normal(columns, seed=1)), constant(normal(columns, seed=2))
        np.testing.assert_allclose(site(x, scale, bias)[0], layer_norm_formula(x, scale, bias)[0], rtol=1e-5, atol=1e-5)


def test_a_softmax_in_the_middle_is_no_other_size_of_one_at_the_end():
    site = softmax_of(axis=1)
    for shape in ((4, 7, 1), (4, 7, 3), (4, 7, 16), (2, 5, 1)):
        x = normal(*shape)
        found, powers = site(x), np.exp(x.astype(np.float64))
        if found is NotImplemented:
            assert shape[-1] > 1, "these are rows"
            continue
        np.testing.assert_allclose(found, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)
