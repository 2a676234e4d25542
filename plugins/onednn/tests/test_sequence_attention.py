"""sequence_attention of this library gives what NumPy's kernel gives, also of weights that are dropped."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numpy_kernels import numpy_result
from oprack.kernel import KernelContext
from oprack.packs.manager import default_manager
from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernels.sequence_attention import sequence_attention, sequence_attention_grad

LIBRARY.usable()
pytestmark = pytest.mark.skipif(RUNNER.run is None, reason=f"the runner is not there: {RUNNER.problem}")

LENGTHS = {
    "some": ([0, 5, 130, 3, 0, 17, 40, 0], [2, 5, 130, 0, 0, 20, 33, 0]),
    "long": ([700, 1], [900, 3]),
}
SETTINGS = {
    "plain": {},
    "causal": {"causal": True},
    "window": {"window": [3, 20]},
    "causal window": {"causal": True, "window": [50, 0]},
    "dropout": {"dropout_p": 0.3, "seed": 7},
    "causal dropout": {"causal": True, "dropout_p": 0.5, "seed": 3},
    "all dropped": {"dropout_p": 1.0},
    "scale": {"scale": 0.7},
}


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


class Context(KernelContext):
    """That of a run of the op alone."""

    def generator(self, seed=0):
        return np.random.default_rng(seed)


def both(function, arrays, offsets, given):
    """(what a kernel of this library gives, what NumPy's gives)."""
    op = function.__name__
    proto = default_manager().op_info("sequence_attention").proto
    attrs = {a.name: a.default for a in proto.attrs.values()} | given
    lods = {slot: [[o]] for slot, o in zip("QK", offsets, strict=True)}
    ctx = Context(op, attrs, lods, packs=default_manager())
    parameters = inspect.signature(function).parameters.values()
    named = {p.name: attrs[p.name] for p in parameters if p.name in attrs}
    got = function(**arrays, **named, ctx=ctx)
    assert got is not NotImplemented, f"{op} was left to NumPy"
    return got, numpy_result(op, arrays, ctx)


def same(got, want):
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert (g is None) == (w is None)
        if w is not None:
            assert g.shape == w.shape and g.dtype == w.dtype
            np.testing.assert_allclose(g, w, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("heads", [(4, 4, 8, 8), (6, 2, 5, 7), (1, 1, 33, 16)], ids=str)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("lengths", LENGTHS)
def test_as_numpy(lengths, setting, heads):
    (a, b), (heads, kv_heads, width, value_width), given = LENGTHS[lengths], heads, SETTINGS[setting]
    offsets = [np.cumsum([0, *n]).tolist() for n in (a, b)]
    arrays = {"Q": normal(sum(a), heads, width), "K": normal(sum(b), kv_heads, width, seed=1)}
    arrays["V"] = normal(sum(b), kv_heads, value_width, seed=2)
    with THREAD.limited(2):
        got, want = both(sequence_attention, arrays, offsets, given)
        same(got, want)
        arrays |= {"Out": want[0], "LogSumExp": want[1], "DropoutSeed": want[2], "Out_grad": normal(*want[0].shape)}
        same(*both(sequence_attention_grad, arrays, offsets, given))


def call_of(function, arrays, offsets, **given):
    """both(...), of sequences with the same offsets in Q and K."""
    return both(function, arrays, (offsets, offsets), given)


def test_biases_by_distance_and_scores_that_are_infinite():
    arrays = {name: normal(9, 2, 4, seed=i) for i, name in enumerate("QKV")} | {"RelativeBias": normal(2, 7)}
    arrays["RelativeBias"][0, 2] = -np.inf  # hides a distance
    arrays["RelativeBias"][1] = -np.inf  # hides all
    for causal in (False, True):
        got, want = call_of(sequence_attention, arrays, [0, 3, 3, 9], causal=causal)
        same(got, want)
        assert not got[0][:, 1].any() and np.isposinf(got[1][:, 1]).all()


def test_nan_stays_in_its_sequence():
    arrays = {name: normal(40, 2, 8, seed=i) for i, name in enumerate("QKV")}
    arrays["K"][3, 1, 0] = np.nan
    got, want = call_of(sequence_attention, arrays, [0, 20, 40])
    same(got[:1], want[:1])
    assert np.isnan(got[0][:20, 1]).all() and np.isfinite(got[0][20:]).all()


def test_parts_of_one_array():
    whole = normal(30, 3, 4, 8)
    arrays = {name: whole[:, i] for i, name in enumerate("QKV")} | {"K": whole[:, 1, ::-1]}
    same(*call_of(sequence_attention, arrays, [0, 11, 30]))


def test_what_does_not_fit_is_left_to_numpy():
    arrays = {name: normal(6, 2, 4, seed=i) for i, name in enumerate("QKV")}
    attrs = {"scale": 0.0, "causal": False, "window": [-1, -1], "dropout_p": 0.0, "is_test": True, "seed": 0}
    others = [("Q", arrays["Q"].astype("float64")), ("V", arrays["V"][:5]), ("K", arrays["K"][:, :, :3])]
    for name, other in others:
        ctx = Context("sequence_attention", attrs, {"Q": [[[0, 6]]], "K": [[[0, 6]]]}, packs=default_manager())
        assert sequence_attention(**arrays | {name: other}, **attrs, ctx=ctx) is NotImplemented
    for lod in ([0, 7], [0, 4, 2, 6], [1, 6], []):
        ctx = Context("sequence_attention", attrs, {"Q": [[lod]], "K": [[lod]]}, packs=default_manager())
        assert sequence_attention(**arrays, **attrs, ctx=ctx) is NotImplemented


def test_the_same_numbers_on_any_number_of_threads():
    arrays = {name: normal(300, 8, 32, seed=i) for i, name in enumerate("QKV")}
    found = []
    for threads in (1, 2, 3):
        with THREAD.limited(threads):
            found.append(call_of(sequence_attention, arrays, [0, 100, 120, 300])[0][0])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
