"""Native code for training gives what NumPy gives: updates, batch_norm of odd numbers of channels, LSTMs, filters."""

from __future__ import annotations

import inspect

import numpy as np
import oprack
import pytest
from native_calls import has_avx512
from numpy_kernels import call, numpy_result
from oprack.packs.manager import default_manager
from oprack.tensor import SelectedRows, ShapeOnly
from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernels import rnn_training, update
from oprack_onednn.kernels.batch_norm import (
    batch_norm,
    batch_norm_grad,
    native_backward,
    native_forward,
    serves_natively,
)
from oprack_onednn.kernels.conv2d import conv2d
from oprack_onednn.kernels.conv2d_grad import conv2d_grad
from oprack_onednn.kernels.declare import no_limits
from oprack_onednn.kernels.gru_lstm import gru, gru_grad
from oprack_onednn.kernels.rnn import rnn
from oprack_onednn.kernels.table_grad import sgd_rows, table_grad

LIBRARY.usable()
pytestmark = pytest.mark.skipif(RUNNER.run is None, reason=f"the runner is not there: {RUNNER.problem}")


class Context:
    """What a kernel asks of its KernelContext."""

    def __init__(self, op_type, attrs, lod=()):
        self.op_type, self.attrs, self._lod = op_type, attrs, lod

    def lod(self, slot, i=0):
        return self._lod

    def is_read(self, *slots):
        return True

    def wants(self, slot, i=0):
        return True

    def generator(self, seed):
        return np.random.default_rng(seed)


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def both(function, arrays, lod=(), **given):
    """(what a kernel of this library gives, what NumPy's gives); it is an error when the first leaves it to NumPy."""
    op = function.__name__
    attrs = {a.name: a.default for a in default_manager().op_info(op).proto.attrs.values()} | given
    ctx = Context(op, attrs, lod)
    want = numpy_result(op, {n: a.copy() if isinstance(a, np.ndarray) else a for n, a in arrays.items()}, ctx)
    parameters = inspect.signature(function).parameters.values()
    named = {p.name: attrs[p.name] for p in parameters if p.kind is p.KEYWORD_ONLY and p.name in attrs}
    first, *others = (p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)
    got = call(function, arrays[first], **{n: arrays[n] for n in others if n in arrays}, **named, ctx=ctx)
    assert got is not NotImplemented, f"{op} was left to NumPy"
    return got, want


def listed(results):
    values = results.values() if isinstance(results, dict) else results if isinstance(results, tuple) else [results]
    found = []
    for v in values:
        found += listed(tuple(v)) if isinstance(v, list) else [v]
    return found


def same(got, want, **tolerance):
    got, want = listed(got), listed(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        if w is None:
            assert g is None
        elif tolerance:
            assert g.shape == w.shape and g.dtype == w.dtype
            np.testing.assert_allclose(g, w, **tolerance)
        else:
            np.testing.assert_array_equal(g, w)


SIZES = [(1,), (3, 5), (300, 400), (512, 520)]
RATE = np.array([0.1], np.float32)


@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("rule", ["sgd", "momentum", "nesterov", "decay", "adam"])
def test_update_gives_the_bits_of_numpy(rule, shape):
    arrays = {"Param": normal(*shape), "Grad": normal(*shape, seed=1), "LearningRate": RATE}
    attrs = {}
    if rule == "adam":
        powers = {"Beta1Pow": np.array([0.81], np.float32), "Beta2Pow": np.array([0.998], np.float32)}
        arrays |= {"Moment1": normal(*shape, seed=2), "Moment2": normal(*shape, seed=3) ** 2} | powers
    elif rule != "sgd":
        arrays["Velocity"] = normal(*shape, seed=2)
        attrs = {"mu": 0.9, "use_nesterov": rule == "nesterov", "rescale_grad": 0.5}
        if rule == "decay":
            attrs |= {"regularization_method": "l2_decay", "regularization_coeff": 0.01}
    op = {"sgd": update.sgd, "adam": update.adam}.get(rule, update.momentum)
    with THREAD.limited(2):
        got, want = both(op, arrays, **attrs)
    same(got, want)


def test_update_takes_the_memory_of_the_parameter_where_it_may():
    p, g, v = (normal(7, 9, seed=k) for k in range(3))
    attrs = dict(mu=0.9, use_nesterov=False, regularization_method="", regularization_coeff=0.0, rescale_grad=1.0)
    new, velocity, _ = update.momentum(p, g, v, RATE, out=p, **attrs)
    assert new is p
    np.testing.assert_array_equal(velocity, v * np.float32(0.9) + g)
    np.testing.assert_array_equal(p, normal(7, 9) - velocity * RATE)
    assert update.momentum(p.T, g.T, v.T, RATE, **attrs) is NotImplemented
    assert update.momentum(p, g.astype("float64"), v, RATE, **attrs) is NotImplemented
    assert update.momentum(p, g[:-1], v, RATE, **attrs) is NotImplemented


def image(*shape, seed=0):
    n, c, h, w = shape
    return normal(n, h, w, c, seed=seed).transpose(0, 3, 1, 2)


@pytest.mark.parametrize("channels", [1, 3, 6, 24, 50])
def test_batch_norm_of_odd_numbers_of_channels(any_size, channels):
    x, dy = image(4, channels, 23, 17) * 3 + 5, image(4, channels, 23, 17, seed=1)
    rows = {name: normal(channels, seed=k) for k, name in enumerate(("Scale", "Bias", "Mean", "Variance"))}
    assert serves_natively((x, dy), list(rows.values()))
    assert not serves_natively((x, dy), [normal(channels + 1)])
    with THREAD.limited(2):
        got, want = both(batch_norm, {"X": x} | rows)
        same(got, want, rtol=1e-4, atol=1e-4)
        saved = {"SavedMean": want[3], "SavedVariance": want[4], "Y_grad": dy}
        got, want = both(batch_norm_grad, {"X": x} | rows | saved)
    same(got, want, rtol=1e-4, atol=2e-4)


def test_batch_norm_of_a_large_mean_by_its_formula():
    x, scale, shift = image(64, 20, 64, 64) + np.float32(1e3), normal(20), normal(20, seed=1)
    found = []
    for threads in (1, 2, 3):
        with THREAD.limited(threads):
            assert serves_natively((x,), (scale, shift)) and THREAD.max_threads == threads
            y, mean, variance, inverse = native_forward(x, scale, shift, 1e-5)
            found.append((y, mean, variance, inverse, *native_backward(x, y, scale, mean, inverse)))
    for others in found[1:]:
        same(others, found[0])
    want = x.mean((0, 2, 3), np.float64), x.var((0, 2, 3), np.float64)
    np.testing.assert_allclose(mean, want[0], rtol=0, atol=1e-4)
    np.testing.assert_allclose(variance, want[1], rtol=1e-4)
    # the gradients of y . y / 2: its sum by channel, and that of y times what the scale is multiplied with
    dscale, dshift = found[0][-2:]
    y = y.astype(np.float64)
    np.testing.assert_allclose(dshift, y.sum((0, 2, 3)), rtol=1e-5)
    plain = (x - want[0].reshape(1, -1, 1, 1)) * inverse.reshape(1, -1, 1, 1)
    np.testing.assert_allclose(dscale, (y * plain).sum((0, 2, 3)), rtol=1e-3)


@pytest.mark.parametrize(
    "layers, sides, steps, batch, inputs, size",
    # the last ones: more blocks of columns than one, and more rows than are multiplied together
    [(1, 1, 1, 3, 5, 7), (2, 2, 4, 1, 5, 7), (3, 1, 3, 3, 5, 7), (1, 2, 40, 5, 70, 36), (1, 2, 11, 17, 5, 70)],
)
@pytest.mark.parametrize("mode", ["LSTM", "GRU", "RNN_TANH", "RNN_RELU"])
@pytest.mark.parametrize("full", [True, False], ids=["full", "ragged"])
@pytest.mark.parametrize("threads", [1, 3])
def test_training_an_rnn(layers, sides, steps, batch, inputs, size, mode, full, threads):
    count, gates = layers * sides, {"LSTM": 4, "GRU": 3}.get(mode, 1)
    weights, small = [], np.float32(0.6 * size**-0.5)
    for k in range(count):
        shapes = (gates * size, inputs if k < sides else sides * size), (gates * size, size)
        weights += [small * normal(*shape, seed=k + 9 * i) for i, shape in enumerate(shapes)]
    weights += [normal(gates * size, seed=k + 20) for k in range(2 * count)]
    states = [normal(count, batch, size, seed=k) for k in range(2 if mode == "LSTM" else 1)]
    # as a transpose gives it, of sequences first
    arrays = {"Input": normal(batch, steps, inputs).transpose(1, 0, 2), "PreState": states, "WeightList": weights}
    attrs = dict(hidden_size=size, input_size=inputs, num_layers=layers, is_bidirec=sides == 2, mode=mode)
    attrs |= dict(dropout_prob=0.0, is_test=False)
    lengths = np.arange(steps + 1, steps + 1 - batch, -1) % (steps + 1)  # none, all, and fewer and fewer
    if not full and lengths.any():
        arrays["SequenceLength"] = lengths
    with no_limits(), THREAD.limited(threads):
        got, want = both(rnn, arrays, **attrs)
    if "SequenceLength" in arrays:  # behind a sequence's end nobody reads what was kept
        outside = np.arange(steps)[:, None] >= lengths
        want["Reserve"][:, outside] = got["Reserve"][:, outside] = 0
    same([got[k] for k in want], list(want.values()), rtol=1e-5, atol=2e-6)
    arrays |= {"Reserve": want["Reserve"], "DropoutState": want["DropoutState"]}
    arrays["Out_grad"] = normal(batch, steps, sides * size, seed=4).transpose(1, 0, 2)
    arrays["State_grad"] = [normal(count, batch, size, seed=5), None][: len(states)]
    with no_limits(), THREAD.limited(threads):
        got, want = both(rnn_training.rnn_grad, arrays, **attrs)
    same([got[k] for k in want], list(want.values()), rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(
    "lengths, size", [([0, 3, 0, 5, 1, 0], 7), ([1], 1), ([4] * 9, 16), ([30, 2, 17, 17, 0, 9, 8, 1], 70)], ids=str
)
@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("origin_mode", [False, True])
@pytest.mark.parametrize("functions", [("sigmoid", "tanh"), ("sigmoid", "relu"), ("sigmoid", "identity")], ids=str)
@pytest.mark.parametrize("threads", [1, 3])
def test_training_a_gru(lengths, size, is_reverse, origin_mode, functions, threads):
    offsets, small = [0, *np.cumsum(lengths).tolist()], np.float32(0.4 * size**-0.5)
    count = offsets[-1]
    weights = {"Weight": small * normal(size, 3 * size, seed=1), "Bias": normal(1, 3 * size, seed=2)}
    first = {"H0": normal(len(lengths), size, seed=3)} if origin_mode or is_reverse else {}
    attrs = dict(is_reverse=is_reverse, origin_mode=origin_mode, gate_activation=functions[0], activation=functions[1])
    with no_limits(), THREAD.limited(threads):
        got, want = both(gru, {"Input": normal(count, 3 * size)} | weights | first, [offsets], **attrs)
    same(got, want, rtol=1e-5, atol=1e-5)
    arrays = {"Weight": weights["Weight"], **first, "Hidden_grad": normal(count, size, seed=4)}
    arrays |= dict(zip(("BatchGate", "BatchResetHiddenPrev", "BatchHidden"), want, strict=False))
    with no_limits(), THREAD.limited(threads):
        got, want = both(gru_grad, arrays, [offsets], **attrs)
    same([got[k] for k in want], list(want.values()), rtol=1e-4, atol=1e-4)


def test_gates_of_any_number():
    """The native functions of numbers near 0 and far from it, and of what is no number."""
    size = 12
    gates = np.array([0.0, 1e-7, -1e-3, 0.3, -0.7, 2.5, -9.0, 30.0, -95.0, 1e30, -np.inf, np.nan], np.float32)
    x, states = np.zeros((1, 1, 1), np.float32), [np.zeros((1, 1, size), np.float32)] * 2
    weights = [np.zeros((4 * size, 1), np.float32), np.zeros((4 * size, size), np.float32)]
    weights += [np.tile(gates, 4), np.zeros(4 * size, np.float32)]
    attrs = dict(hidden_size=size, input_size=1, num_layers=1, is_bidirec=False, mode="LSTM", dropout_prob=0.0)
    got, want = both(rnn, {"Input": x, "PreState": states, "WeightList": weights}, **attrs, is_test=False)
    np.testing.assert_allclose(got["Reserve"], want["Reserve"], rtol=1e-6, atol=1e-30)


@pytest.fixture
def roomy():
    """Primitives of this test are kept, however full the caches of this process are."""
    oprack.set_cache_limit(1 << 40)
    yield
    oprack.set_cache_limit(None)


@pytest.mark.parametrize("shape", [(64, 48, 3, 3), (32, 64, 5, 5), (128, 144, 1, 1), (64, 64, 2, 7)], ids=str)
def test_filters_out_of_blocks(any_size, roomy, shape):
    outputs, inputs, *window = shape
    x, dy = image(2, inputs, 11, 9), image(2, outputs, 12 - window[0], 10 - window[1], seed=1)
    arrays = {"Input": x, "Filter": normal(*shape, seed=2), "Output_grad": dy}
    with THREAD.limited(2):
        got, want = both(conv2d_grad, arrays, strides=[1, 1], paddings=[0, 0])
        found = THREAD.primitives[next(k for k in reversed(THREAD.primitives) if k[0] == "conv2d_grad")]
    # oneDNN's blocks have the width of its vectors, and layout.c knows those of 16 numbers
    assert bool(found.blocked) == has_avx512(), "the copy out of blocks is not used"
    for g, w in zip(listed(got), listed(want), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-3)


WINDOWS = [  # size, window, stride, padding, dilation
    (1, 3, 1, 1, 1), (2, 3, 2, 1, 1), (1, 5, 1, 2, 1), (2, 7, 2, 3, 1), (3, 3, 1, 4, 2), (2, 3, 1, 3, 3),
    (3, 4, 3, 2, 1),
]  # fmt: skip


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("size, window, stride, padding, dilation", WINDOWS)
def test_taps_that_see_nothing_but_padding(any_size, size, window, stride, padding, dilation, groups):
    x, w = image(3, 32, size, size + 1), normal(32, 32 // groups, window, 3)
    attrs = dict(strides=[stride, 1], paddings=[padding, 1], dilations=[dilation, 1], groups=groups)
    got, want = both(conv2d, {"Input": x, "Filter": w}, **attrs)
    same(got, want, rtol=1e-4, atol=1e-4)
    dy = image(*want.shape, seed=1)
    got, want = both(conv2d_grad, {"Input": x, "Filter": w, "Output_grad": dy}, **attrs)
    same(got, want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("height, width, padding", [(7, 5, -1), (1000, 300, 2)])
def test_gradient_of_a_table(height, width, padding):
    ids = np.random.default_rng(0).integers(0, height, (20, 3))
    arrays = {"Ids": ids, "Out_grad": normal(20, 3, width)}
    w = ShapeOnly(normal(height, width))
    with THREAD.limited(2):
        got = table_grad(w, *arrays.values(), is_sparse=False, padding_idx=padding)
    want = np.zeros((height, width))
    np.add.at(want, ids, arrays["Out_grad"])
    want[padding : padding + 1] = 0
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert table_grad(w, ids - height, arrays["Out_grad"], is_sparse=False, padding_idx=padding) is NotImplemented
    assert table_grad(w, ids, arrays["Out_grad"], is_sparse=True, padding_idx=padding) is NotImplemented


@pytest.mark.parametrize("count, height", [(1, 1), (40, 9), (500, 100_000)])
def test_sgd_in_some_rows(count, height):
    rows = np.random.default_rng(1).integers(0, height, count)
    p, grad = normal(height, 6), SelectedRows(rows, normal(count, 6, seed=1), height)
    new, _ = sgd_rows(p, RATE, grad, out=None)
    want = normal(height, 6).astype("float64")
    np.subtract.at(want, rows, grad.value * np.float64(RATE))
    np.testing.assert_array_equal(p, normal(height, 6))
    np.testing.assert_allclose(new, want, rtol=1e-5, atol=1e-5)
    assert sgd_rows(p, RATE, grad, out=p)[0] is p
    np.testing.assert_array_equal(p, new)
    wrong = SelectedRows(rows + height, grad.value, height, check=False)
    assert sgd_rows(p, RATE, wrong, out=None) is NotImplemented


def test_arrays_that_are_not_aligned_are_left_to_numpy():
    def askew(a):
        raw = np.empty(a.nbytes + 1, np.uint8)[1:]
        raw[:] = np.frombuffer(a.tobytes(), np.uint8)
        return raw.view(a.dtype).reshape(a.shape)

    p, g = normal(30, 40), normal(30, 40, seed=1)
    assert update.sgd(p, RATE, askew(g)) is NotImplemented
    ids = np.arange(30).reshape(30, 1)
    assert table_grad(ShapeOnly(p), askew(ids), g, is_sparse=False, padding_idx=-1) is NotImplemented
    assert sgd_rows(askew(p), RATE, SelectedRows(ids.reshape(-1), g, 30)) is NotImplemented
    x, row = image(2, 6, 9, 9), normal(6)
    assert serves_natively((x,), (row,)) and not serves_natively((x,), (askew(row),))
