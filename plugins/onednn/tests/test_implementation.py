"""Which implementation of a convolution is taken."""

from __future__ import annotations

import numpy as np
import pytest
from oprack_onednn.chain.memory import channels_last_desc
from oprack_onednn.dnnl.objects import Attributes, PrimitiveDesc
from oprack_onednn.kernels import _conv_shape, _implementation
from oprack_onednn.kernels._conv_shape import ConvShape
from oprack_onednn.kernels._implementation import halves_vectors

ZEN4 = "processor: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nflags\t\t: fpu avx2 avx512f\n\nprocessor: 1\n"


def chosen(shape, w, strides=(1, 1), groups=1):
    geo = ConvShape(shape, np.empty(w, np.float32), strides, (w[2] // 2, w[3] // 2), (1, 1), groups, "EXPLICIT")
    return geo.forward(channels_last_desc(shape), channels_last_desc(geo.shape), None, Attributes()).impl


@pytest.mark.parametrize("strides", [(1, 1), (2, 1), (2, 2)], ids=str)
def test_depthwise(strides):
    assert chosen((1, 48, 20, 20), (48, 1, 3, 3), strides, groups=48).startswith("jit_dw")


def test_a_depthwise_filter_of_another_size_goes_straight_to_its_implementation(monkeypatch):
    w = (56, 1, 3, 3)
    first = chosen((1, 56, 20, 20), w, groups=56)
    monkeypatch.setattr(PrimitiveDesc, "next_impl", lambda self: pytest.fail("others were tried"))
    assert chosen((1, 56, 31, 17), w, groups=56) == first
    assert chosen((3, 56, 8, 9), w, (2, 2), groups=56) == first


@pytest.mark.parametrize(
    "w, direct",
    [
        *(((32, 32, 3, 3), True), ((96, 24, 2, 2), True), ((60, 960, 1, 3), True)),
        *(((256, 256, 3, 3), False), ((128, 128, 3, 3), False), ((512, 512, 1, 3), False)),
    ],
    ids=str,
)
def test_a_small_filter(monkeypatch, w, direct):
    monkeypatch.setattr(_implementation, "halves_vectors", lambda: False)
    first = chosen((1, w[1], 20, 20), w)
    monkeypatch.setattr(_implementation, "halves_vectors", lambda: True)
    if first != "brgconv:avx512_core":
        pytest.skip("brgemm's implementation for vectors of 512 bits is not the first one here")
    assert chosen((1, w[1], 20, 20), w) == ("jit:avx512_core" if direct else first)
    assert chosen((1, 32, 20, 20), (32, 32, 1, 1)).startswith("brgconv_1x1")


@pytest.mark.parametrize("w", [(24, 32, 3, 3), (40, 32, 1, 1), (8, 32, 3, 3)], ids=str)
def test_a_last_vector_that_is_half_empty(monkeypatch, w):
    monkeypatch.setattr(_implementation, "halves_vectors", lambda: False)
    first = chosen((1, 32, 20, 20), w)
    monkeypatch.setattr(_implementation, "halves_vectors", lambda: True)
    if "avx512" not in first:
        pytest.skip("this CPU has no vectors of 512 bits")
    assert chosen((1, 32, 20, 20), w) == first.split(":")[0] + ":avx2"
    assert chosen((1, 3, 20, 20), (8, 3, 3, 3)).endswith(":avx2")
    for outputs in (32, 12, 200):
        assert not chosen((1, 32, 20, 20), (outputs, *w[1:])).endswith(":avx2")


def test_a_large_filter_over_a_few_pixels(monkeypatch):
    monkeypatch.setattr(_implementation, "halves_vectors", lambda: True)
    if chosen((1, 512, 8, 8), (512, 512, 1, 1)) != "brgconv_1x1:avx512_core":
        pytest.skip("brgemm's implementation for vectors of 512 bits is not the first one here")
    assert chosen((1, 512, 3, 3), (512, 512, 1, 1)) == "jit_1x1:avx512_core"
    assert chosen((1, 512, 3, 3), (100, 512, 1, 1)).startswith("brgconv_1x1")


@pytest.mark.parametrize("rows, width, together", [(3, 3, 3), (48, 48, 3), (97, 10, 1), (26, 10, 13), (5, 200, 1)])
def test_rows_that_are_seen_as_one(rows, width, together):
    """At least 128 pixels where there are as many, of a number of rows that divides theirs."""
    assert _conv_shape._rows_together(rows, width) == together


@pytest.mark.parametrize(
    "text, halves",
    [(ZEN4, True), (ZEN4.replace("25", "26"), False), (ZEN4.replace("avx512f", ""), False), ("", False), (None, False)],
)
def test_cpus(monkeypatch, text, halves):
    def read_text(path):
        if text is None:
            raise OSError
        return text

    monkeypatch.setattr("pathlib.Path.read_text", read_text)
    halves_vectors.cache_clear()
    assert halves_vectors() is halves
    halves_vectors.cache_clear()
