"""The compiled crf_decoding takes the same path as NumPy's kernel, the first of equally good ones."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_kernels import numpy_result
from oprack.kernel import KernelContext
from oprack_onednn.kernels.crf_decoding import crf_decoding


def context(lengths=None):
    """A context of the op for sequences of these lengths, or for padded ones."""
    lods = {} if lengths is None else {"Emission": [[[0, *np.cumsum(lengths).tolist()]]]}
    return KernelContext("crf_decoding", lods=lods)


def scores(*shape, ties=False):
    rng = np.random.default_rng(shape)
    values = rng.integers(-2, 3, shape) if ties else rng.standard_normal(shape)
    return values.astype(np.float32)


def both(monkeypatch, ctx, emission, transition, **more):
    """(path of this library's kernel, NumPy's); it is an error when the first leaves it to NumPy."""
    want = numpy_result("crf_decoding", {"Emission": emission, "Transition": transition, **more}, ctx)
    got = crf_decoding(emission, transition, **more, ctx=ctx)
    assert got is not NotImplemented, "crf_decoding was left to NumPy"
    assert got.dtype == want.dtype and got.shape == want.shape
    return got, want


LENGTHS = [
    *([1], [2], [31], [33], [34], [70], [0, 6, 0], [3, 0, 9], [1, 1, 1], [4, 40, 5, 0], [3, 9, 1, 40, 2, 64]),
    *([0, *range(1, 45)], [5] * 70 + [9, 70] * 5, [7] * 130 + [3, 40, 0]),
]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("tags", [5, 16, 57])
@pytest.mark.parametrize("lengths", LENGTHS, ids=lambda lengths: f"{len(lengths)}-{sum(lengths)}")
def test_paths(monkeypatch, lengths, tags, ties):
    emission, transition = scores(sum(lengths), tags, ties=ties), scores(tags + 2, tags, ties=ties)
    got, want = both(monkeypatch, context(lengths), emission, transition)
    np.testing.assert_array_equal(got, want)
    other_order = map(np.asfortranarray, (emission, transition))
    np.testing.assert_array_equal(both(monkeypatch, context(lengths), *other_order)[0], want)


@pytest.mark.parametrize("lengths", [[9], [4, 40, 5, 0], list(range(30))], ids=str)
def test_forbidden_transitions(monkeypatch, lengths):
    """Scores of minus infinity, where some path is always left."""
    emission, transition = scores(sum(lengths), 11), scores(13, 11)
    forbidden = np.random.default_rng(0).random(transition.shape) < 0.5
    forbidden[:, 0] = False
    transition[forbidden] = -np.inf
    np.testing.assert_array_equal(*both(monkeypatch, context(lengths), emission, transition))


def test_more_labels_than_a_byte_counts(monkeypatch):
    np.testing.assert_array_equal(*both(monkeypatch, context([4, 3]), scores(7, 300), scores(302, 300)))


def test_transitions_may_change_between_runs(monkeypatch):
    emission, transition = scores(40, 7), scores(9, 7)
    for sign in (1, -1):
        transition *= sign
        np.testing.assert_array_equal(*both(monkeypatch, context([15, 25]), emission, transition))


@pytest.mark.parametrize("lengths", [[4, 6, 0, 1, 6, 2], [6, 0]], ids=str)
@pytest.mark.parametrize("label", [False, True])
def test_padded_sequences(monkeypatch, lengths, label):
    emission, transition = scores(len(lengths), 6, 8), scores(10, 8)
    length = np.array(lengths, np.int64)
    more = {"Label": np.random.default_rng(0).integers(0, 2, (len(lengths), 6))} if label else {"Label": None}
    got, want = both(monkeypatch, context(), emission, transition, **more, Length=length)
    np.testing.assert_array_equal(got, want)


def test_agreement_with_labels(monkeypatch):
    lengths, transition = [9, 0, 12, 3], scores(8, 6)
    emission = scores(sum(lengths), 6)
    path, _ = both(monkeypatch, context(lengths), emission, transition)
    path[::3] += 1
    got, want = both(monkeypatch, context(lengths), emission, transition, Label=path)
    np.testing.assert_array_equal(got, want)
    assert got[::3].sum() == 0 and got.sum() == 24 - 8


def test_what_numpy_does():
    """Nothing at all."""
    lengths = [0, 0]
    ctx, emission, transition = context(lengths), scores(0, 5), scores(7, 5)
    want = numpy_result("crf_decoding", {"Emission": emission, "Transition": transition}, ctx)
    assert crf_decoding(emission, transition, ctx=ctx) is NotImplemented and want.shape == (sum(lengths), 1)
