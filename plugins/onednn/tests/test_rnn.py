"""rnn in native code gives what NumPy's kernel gives, for every cell, length and direction."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_kernels import numpy_result
from oprack.kernel import KernelContext
from oprack.packs.manager import default_manager
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.kernels.declare import no_limits
from oprack_onednn.kernels.rnn import rnn

GATES = {"LSTM": 4, "GRU": 3, "RNN_RELU": 1, "RNN_TANH": 1}
INPUTS, HIDDEN = 12, 16


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32) * 0.25


def arguments(mode, layers, sides, steps, batch):
    """(Input, PreState, WeightList)."""
    cells, n = layers * sides, GATES[mode] * HIDDEN
    weights = []
    for k in range(cells):
        inputs = INPUTS if k < sides else sides * HIDDEN
        weights += [normal(n, inputs, seed=k), normal(n, HIDDEN, seed=k + 50)]
    weights += [normal(n, seed=k) for k in range(2 * cells)]
    states = [normal(cells, batch, HIDDEN, seed=k) for k in range(2 if mode == "LSTM" else 1)]
    return normal(steps, batch, INPUTS), states, weights


def both(monkeypatch, lengths, steps, batch, **attrs):
    """(what this library's kernel gives, what NumPy's gives); it is an error when the first leaves it to NumPy."""
    given = {"hidden_size": HIDDEN, "input_size": INPUTS, "is_test": True} | attrs
    ctx = KernelContext("rnn", given, packs=default_manager())
    sides = 2 if ctx.attrs["is_bidirec"] else 1
    x, states, weights = arguments(ctx.attrs["mode"], ctx.attrs["num_layers"], sides, steps, batch)
    slots = {"Input": x, "PreState": states, "WeightList": weights, "SequenceLength": lengths}
    want = numpy_result("rnn", slots, ctx)
    names = ("is_bidirec", "hidden_size", "num_layers", "mode", "dropout_prob", "is_test")
    got = rnn(x, states, weights, lengths, **{n: ctx.attrs[n] for n in names})
    assert got is not NotImplemented, "rnn was left to NumPy"
    assert list(got) == list(want) and got["DropoutState"] is None and got["Reserve"] is None
    return got, want


@pytest.mark.parametrize("lengths", [None, [5, 0, 9, 5, 1], [9] * 5, [0, 0, 0, 0, 3]], ids=str)
@pytest.mark.parametrize("layers, is_bidirec", [(1, False), (1, True), (2, True), (3, False)])
@pytest.mark.parametrize("mode", GATES)
def test_rnn(monkeypatch, mode, layers, is_bidirec, lengths):
    lengths = None if lengths is None else np.array(lengths, np.int32)
    check_rnn(monkeypatch, lengths, mode=mode, num_layers=layers, is_bidirec=is_bidirec)


@pytest.mark.parametrize("lengths", [None, [5, 0, 9, 5, 1]], ids=str)
@pytest.mark.parametrize("mode", GATES)
def test_a_thread_for_each_direction(monkeypatch, mode, lengths):
    lengths = None if lengths is None else np.array(lengths, np.int32)
    with no_limits(), THREAD.limited(2):
        check_rnn(monkeypatch, lengths, mode=mode, num_layers=2, is_bidirec=True)


def check_rnn(monkeypatch, lengths, **attrs):
    got, want = both(monkeypatch, lengths, 9, 5, **attrs)
    np.testing.assert_allclose(got["Out"], want["Out"], rtol=1e-5, atol=1e-5)
    for g, w in zip(got["State"], want["State"], strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", GATES)
def test_batches_of_every_size(monkeypatch, mode):
    for batch in (1, 17, 70, 150):
        lengths = np.random.default_rng(batch).integers(0, 8, batch)
        got, want = both(monkeypatch, lengths, 8, batch, mode=mode, is_bidirec=True)
        np.testing.assert_allclose(got["Out"], want["Out"], rtol=1e-5, atol=1e-5)
        for g, w in zip(got["State"], want["State"], strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5)


def test_what_native_code_does_not_serve_is_left_to_numpy(monkeypatch):
    x, states, weights = arguments("GRU", 2, 1, 4, 2)
    attrs = dict(is_bidirec=False, hidden_size=HIDDEN, num_layers=2, mode="GRU", dropout_prob=0.5)
    assert rnn(x, states, weights, **attrs, is_test=False) is NotImplemented
    assert rnn(x, states, weights, np.array([9, 1]), **attrs, is_test=True) is NotImplemented
