"""Kernels that derive strides of their own: shapes, batches, windows and layouts drawn at random agree with NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from native_calls import call, image, native_runs, normal
from oprack_onednn.kernels import conv2d_chain, conv2d_transpose_pair, pointwise_conv2d, squeeze_excite, winograd_conv2d
from oprack_onednn.stretch import callsite

SEEDS = range(24)
LAYOUTS = ("channels last", "row-major", "part of a larger one", "turned")


class Draw:
    """What a seed says."""

    def __init__(self, seed):
        self.rng, self.layout = np.random.default_rng(seed), LAYOUTS[seed % len(LAYOUTS)]

    def one(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def array(self, *shape):
        return normal(*shape, seed=self.one(0, 99))

    def image(self, n, c, h, w):
        """Images in the layout of the seed."""
        if self.layout == "channels last":
            return image(n, c, h, w, seed=self.one(0, 99))
        if self.layout == "row-major":
            return self.array(n, c, h, w)
        if self.layout == "turned":
            return self.array(n, c, w, h).swapaxes(2, 3)
        return image(n + 1, c + 3, h + 2, w + 1, seed=self.one(0, 99))[1:, 2:-1, 1:-1, :-1]

    def shape(self, least=1, most=20):
        return self.one(1, 4), self.one(1, 17), self.one(least, most), self.one(least, most)


def chain(d):
    """Convolutions of which the last rows of an image may not be wanted."""
    n, c, h, w = d.shape(6)
    inputs = {"Input": d.image(n, c, h, w), "Filter": [], "Bias": []}
    attrs = {"strides": [], "paddings": [], "groups": [], "biased": [], "post_op_counts": [], "post_ops": []}
    for _ in range(d.one(2, 3)):
        kernel, stride = [min(d.one(1, 3), s) for s in (h, w)], [d.one(1, 3), d.one(1, 2)]
        pads = [d.one(0, kernel[i // 2] - 1) for i in range(4)]
        h, w = ((s + sum(pads[2 * i : 2 * i + 2]) - kernel[i]) // stride[i] + 1 for i, s in enumerate((h, w)))
        k, biased = d.one(1, 12), bool(d.one(0, 1))
        inputs["Filter"].append(d.array(k, c, *kernel))
        inputs["Bias"] += [d.array(k)] * biased
        c = k
        for name, value in (("strides", stride), ("paddings", pads), ("groups", [1]), ("biased", [biased])):
            attrs[name] += value
        attrs["post_op_counts"].append(1)
        attrs["post_ops"].append("relu")
    return call("onednn_conv2d_chain", inputs, **attrs)


def upsampled(d):
    n, _, h, w = d.shape(1, 6)
    factors = [d.one(1, 4) for _ in range(d.one(1, 3))]
    whole = int(np.lcm.reduce(factors))
    sizes = [(h * whole // f, w * whole // f) for f in factors]
    k, window, count = d.one(1, 9), (1, 3)[d.one(0, 1)], len(factors)
    channels = [d.one(1, 9) for _ in factors]
    inputs = {"X": [d.image(n, c, *s) for c, s in zip(channels, sizes, strict=True)], "Bias": d.array(k)}
    inputs["Filter"] = [d.array(k, c, window, window) for c in channels]
    scaled = [bool(d.one(0, 1)) for _ in factors]
    inputs["Scale"] = [d.array(n, c, 1, 1) for c, s in zip(channels, scaled, strict=True) if s]
    scales = [sum(scaled[:i]) if s else -1 for i, s in enumerate(scaled)]
    none = [-1] * count
    return call("onednn_upsampled_conv2d", inputs, factors=factors, projects=none, shifts=none, scales=scales)


def in_tiles(d):
    n, c, h, w = d.shape(2, 23)
    k = d.one(1, 20)
    inputs = {"Input": d.image(n, c, h, w), "Filter": d.array(36, c, k), "Bias": d.array(k)}
    pads = [1, d.one(0, 1), 1, d.one(0, 1)]
    if d.one(0, 1):
        inputs["Residual"] = d.image(n, k, h + pads[0] + pads[1] - 2, w + pads[2] + pads[3] - 2)
    return call("onednn_winograd_conv2d", inputs, paddings=pads, post_ops=["residual"] * ("Residual" in inputs))


def transposed(d):
    n, c, h, w = d.shape()
    kernel, tiles = [d.one(1, 4), d.one(1, 4)], d.one(0, 1)
    strides = kernel if tiles else [d.one(1, 3), d.one(1, 3)]
    pads = [0, 0] if tiles else [d.one(0, k - 1) // 2 for k in kernel]
    inputs = {"Input": d.image(n, c, h, w), "Filter": d.array(c, d.one(1, 9), *kernel)}
    return call("conv2d_transpose", inputs, strides=strides, paddings=pads)


def pair(d):
    n, c, h, w = d.shape(1, 9)
    k, outputs = d.one(1, 8), d.one(1, 5)
    inputs = {"Input": d.image(n, c, h, w), "Filter": d.array(c, k, d.one(1, 3), d.one(1, 3)), "Bias": d.array(k)}
    inputs |= {"NextFilter": d.array(k, outputs, d.one(1, 3), d.one(1, 3)), "NextBias": d.array(outputs)}
    return call("onednn_conv2d_transpose_pair", inputs, post_ops=["relu"])


def pooled(d):
    kernel = [d.one(1, 3), d.one(1, 3)]
    kind = ("max", "avg")[d.one(0, 1)]
    pads, strides = [d.one(0, k - 1) for k in kernel], [d.one(1, 3), d.one(1, 3)]
    attrs = dict(ksize=kernel, strides=strides, paddings=pads, exclusive=True, ceil_mode=bool(d.one(0, 1)))
    return call("pool2d", {"X": d.image(*d.shape(4))}, pooling_type=kind, **attrs)


def resized(d):
    n, c, h, w = d.shape()
    attrs = dict(interp_method="nearest", align_corners=False, out_h=h * d.one(2, 4), out_w=w * d.one(1, 4))
    return call("nearest_interp_v2", {"X": d.image(n, c, h, w)}, **attrs)


def squeezed(d):
    n, c, h, w = d.shape()
    inputs = {"X": d.image(n, c, h, w), "Reduce": d.array(6, c, 1, 1), "Expand": d.array(c, 6, 1, 1)}
    return call("onednn_squeeze_excite", inputs, reduce_post_ops=["relu"], expand_post_ops=["sigmoid"])


def of_points(d):
    n, c, h, w = d.shape()
    inputs = {"Input": image(n, c, h, w), "Filter": d.array(7, c, 1, 1), "InputScale": d.array(n, c, 1, 1)}
    return call("onednn_pointwise_conv2d", inputs | {"Residual": image(n, 7, h, w)}, post_ops=["residual"])


def convolved(d, op_type="conv2d"):
    n, c, h, w = d.shape(6)
    groups, dilations = (c, 1)[d.one(0, 1)], [d.one(1, 2), d.one(1, 2)]
    k, kernel = groups * d.one(1, 3), [d.one(1, 3), d.one(1, 3)]
    strides, pads = [d.one(1, 3), d.one(1, 3)], [d.one(0, 2), d.one(0, 2)]
    attrs = dict(strides=strides, paddings=pads, dilations=dilations, groups=groups)
    inputs = {"Input": d.image(n, c, h, w), "Filter": d.array(k, c // groups, *kernel)}
    forward = call("conv2d", inputs, **attrs)
    if op_type == "conv2d":
        return forward
    shape = forward.by_numpy()["Output"].shape
    return call("conv2d_grad", inputs | {"Output@GRAD": d.image(*shape)}, **attrs)


def gradient(d):
    return convolved(d, "conv2d_grad")


def added(d):
    n, c, h, w = d.shape()
    y = d.array(*((n, c), (c,), (n, c, 1, 1), (h, w), (1, c, h, w))[d.one(0, 4)])
    return call(
        "elementwise_add",
        {"X": d.image(n, c, h, w), "Y": y},
        axis=-1 if y.ndim == 4 or y.shape == (h, w) else 2 - y.ndim,
    )


MAKERS = [
    *(chain, upsampled, in_tiles, transposed, pair, pooled, resized, squeezed, of_points, convolved, gradient, added),
]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_numbers_are_those_of_numpy(make, any_size, monkeypatch):
    for module in (callsite, conv2d_chain, conv2d_transpose_pair, pointwise_conv2d, squeeze_excite, winograd_conv2d):
        monkeypatch.setattr(module, "is_constant", lambda array: array.flags.c_contiguous and not array.flags.writeable)
    native = 0
    for seed in SEEDS:
        drawn = make(Draw(seed))
        want = drawn.by_numpy()
        runs = [drawn.direct]
        prepared = drawn.prepared()
        if prepared is not None:
            runs += [lambda prepared=prepared, drawn=drawn: prepared(drawn)] * 2
        with native_runs() as counted:
            for run in runs:
                for slot, got in run().items():
                    near = 1e-4 * max(1.0, float(np.abs(want[slot]).max(initial=0)))
                    np.testing.assert_allclose(got, want[slot], rtol=1e-4, atol=near, err_msg=f"seed {seed}: {slot}")
        native += bool(counted)
    assert native > len(SEEDS) // 2


@pytest.mark.parametrize("cache", [1, 1 << 12, 1 << 30])
@pytest.mark.parametrize("seed", range(12))
def test_chains_in_parts(monkeypatch, any_size, seed, cache):
    monkeypatch.setattr(conv2d_chain, "_CACHE", cache)
    monkeypatch.setattr(conv2d_chain, "_OVERLAP", 1e9)
    drawn = chain(Draw(100 + seed))
    with native_runs() as counted:
        got = drawn.direct()["Output"]
    np.testing.assert_allclose(got, drawn.by_numpy()["Output"], rtol=1e-4, atol=1e-3)
    assert counted
