"""Call sites: what stays the same is set once, and everything that may change is noticed."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from numpy_kernels import on_numpy
from oprack.kernel.specialization import KernelSpecialization
from oprack_nn.kernels.with_post_ops import convolution as by_steps
from oprack_onednn.chain.memory import is_channels_last
from oprack_onednn.chain.native_steps import widest_serves
from oprack_onednn.chain.primitive_chain import BoundChain
from oprack_onednn.chain.thread import THREAD, PerThread
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernels import conv2d, conv2d_chain, fused_matmul, pointwise_conv2d, pool2d, squeeze_excite
from oprack_onednn.stretch import callsite

CLOSE = dict(rtol=2e-5, atol=2e-5)


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def constant(*shape, seed=0):
    array = normal(*shape, seed=seed)
    array.flags.writeable = False
    return array


def call_of(op_type, given=("Input", "Filter"), **attrs):
    return KernelSpecialization(op_type, on_numpy(op_type, attrs).attrs, {slot: (np.float32,) for slot in given}, np)


def convolution(**attrs):
    """A prepared convolution, and the kernel that it stands for."""
    call = call_of("conv2d_post_ops", paddings=[1, 1], **attrs)
    return conv2d._specialize_fused(call), lambda *arrays: by_steps(
        *arrays, *[None] * (4 - len(arrays)), call.attrs, on_numpy(call.op_type)
    )


@pytest.fixture
def bindings(monkeypatch):
    """How often a chain was bound."""
    made = []

    class Counted(BoundChain):
        def __init__(self, *args):
            made.append(args)
            super().__init__(*args)

    monkeypatch.setattr(callsite, "BoundChain", Counted)
    return made


def test_a_chain_is_bound_once_for_each_shape(bindings):
    site, plain = convolution(post_ops=["relu"])
    w, b = constant(8, 5, 3, 3), constant(8)
    for shape in [(2, 5, 7, 6), (1, 5, 9, 9)]:
        for seed in range(3):
            x = normal(*shape, seed=seed)
            np.testing.assert_allclose(site(x, w, b), plain(x, w, b), **CLOSE)
    x = normal(2, 7, 6, 5).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(site(x, w, b), plain(x, w, b), **CLOSE)
    assert len(bindings) == 3


@pytest.mark.primitives("conv2d")
def test_results_do_not_share_memory():
    site, plain = convolution()
    w, xs = constant(8, 5, 3, 3), [normal(1, 5, 60, 60, seed=i) for i in range(4)]
    results = [site(x, w) for x in xs]
    for x, y in zip(xs, results, strict=True):
        np.testing.assert_allclose(y, plain(x, w), **CLOSE)


def test_other_parameters_are_noticed(bindings):
    site, plain = convolution()
    x, b = normal(2, 5, 7, 6), constant(8)
    for seed in (0, 1, 0):
        w = constant(8, 5, 3, 3, seed=seed)
        np.testing.assert_allclose(site(x, w, b), plain(x, w, b), **CLOSE)
    assert len(bindings) == 3


def test_parameters_that_may_change_are_not_kept(bindings):
    site, plain = convolution()
    x, w = normal(2, 5, 7, 6), normal(8, 5, 3, 3)
    for _ in range(2):
        np.testing.assert_allclose(site(x, w), plain(x, w), **CLOSE)
        w += 1
    assert not bindings


@pytest.mark.primitives("conv2d")
def test_a_residual_in_any_layout():
    call = call_of("conv2d_post_ops", ("Input", "Filter", "Residual"), post_ops=["residual", "relu"])
    site, w = conv2d._specialize_fused(call), constant(8, 5, 1, 1)
    for seed, turn in ((0, False), (1, True), (2, False)):
        x, r = normal(2, 5, 7, 6, seed=seed), normal(2, 8, 7, 6, seed=seed)
        r = np.ascontiguousarray(r.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2) if turn else r
        want = by_steps(x, w, None, r, call.attrs, on_numpy(call.op_type))
        np.testing.assert_allclose(site(x, w, None, r), want, **CLOSE)


def test_another_thread_and_another_number_of_threads(bindings):
    THREAD.revision = -1  # other tests may have left another number behind
    site, plain = convolution()
    x, w = normal(2, 5, 40, 40), constant(8, 5, 3, 3)
    want, got = plain(x, w), [site(x, w)]
    thread = threading.Thread(target=lambda: got.append(site(x, w)))
    thread.start()
    thread.join()
    with THREAD.limited(LIBRARY.num_threads() + 1):
        got += [site(x, w), site(x, w)]
    got.append(site(x, w))
    for y in got:
        np.testing.assert_allclose(y, want, **CLOSE)
    assert len(got) == 5 and len(bindings) == 3


def test_what_a_thread_bound_goes_when_it_ends():
    site, _ = convolution()
    x, w, bound = normal(2, 5, 7, 6), constant(8, 5, 3, 3), []
    (entries,) = (c.cell_contents for c in site.__closure__ if isinstance(c.cell_contents, PerThread))
    site(x, w)

    def run():
        site(x, w)
        bound.extend(map(weakref.ref, (b.run.__self__ for b in entries.values())))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    gc.collect()
    assert [b() is not None for b in bound] == [True, False] and len(entries) == 1


@pytest.mark.parametrize(
    "sizes, bound",
    [
        ((5, 6, 5, 6), 2),  # two are kept in any case
        ((5, 6, 7, 5, 8, 5, 9, 5), 5),  # 5 is always among the last two
        ((5, 6, 7, 8, 9, 5), 6),  # 5 and 6 were dropped for 9
        ((5, 6, 7, 5, 6, 7, 5, 6, 7), 3),  # one more than two in rotation
    ],
    ids=str,
)
def test_only_so_many_shapes_are_kept(monkeypatch, bindings, sizes, bound):
    monkeypatch.setattr(callsite, "PerThread", lambda *most: PerThread(2))
    site, plain = convolution()
    w = constant(8, 5, 3, 3)
    for size in sizes:
        x = normal(1, 5, size, size)
        np.testing.assert_allclose(site(x, w), plain(x, w), **CLOSE)
    assert len(bindings) == bound


def test_shapes_that_onednn_does_not_serve():
    site, _ = convolution()
    assert site(normal(0, 5, 6, 6), constant(8, 5, 3, 3)) is NotImplemented


def test_a_library_that_stops_to_serve(monkeypatch):
    site, _ = convolution()
    x, w = normal(2, 5, 7, 6), constant(8, 5, 3, 3)
    site(x, w)
    monkeypatch.setattr(LIBRARY, "ready", False)
    monkeypatch.setattr(LIBRARY, "problem", "as a test wants it")
    monkeypatch.setattr(LIBRARY, "threads_revision", LIBRARY.threads_revision + 1)
    monkeypatch.setattr(BoundChain, "run_addresses", lambda *a: pytest.fail("oneDNN ran"))
    assert site(x, w) is NotImplemented


@pytest.mark.parametrize("op_type", ["conv2d", "depthwise_conv2d"])
def test_a_convolution_alone(op_type, bindings):
    groups = 6 if op_type == "depthwise_conv2d" else 1
    site = conv2d._specialize(call_of(op_type, groups=groups))
    x, w = normal(2, 6, 7, 6), constant(12, 6 // groups, 3, 3)
    y, want = site(x, w), on_numpy(op_type).run_op("conv2d", {"Input": x, "Filter": w}, {"groups": groups})
    np.testing.assert_allclose(y, want, **CLOSE)
    assert is_channels_last(y) and len(bindings) == 1
    assert conv2d._specialize(call_of(op_type, data_format="NHWC")) is None


def test_pooling(any_size, bindings):
    attrs = dict(pooling_type="avg", ksize=[2, 2], strides=[2, 2])
    site, x = pool2d._specialize(call_of("pool2d", ("X",), **attrs)), normal(2, 6, 8, 8)
    np.testing.assert_allclose(site(x), x.reshape(2, 6, 4, 2, 4, 2).mean(axis=(3, 5)), **CLOSE)
    assert len(bindings) == 1
    assert pool2d._specialize(call_of("pool2d", ("X",), data_format="NHWC")) is None


def test_squeeze_and_excitation(bindings):
    slots = ("X", "Reduce", "Expand", "ExpandBias")
    call = call_of("onednn_squeeze_excite", slots, reduce_post_ops=["relu"], expand_post_ops=["sigmoid"])
    arrays = (constant(12, 48, 1, 1), None, constant(48, 12, 1, 1), constant(48))
    site, x = squeeze_excite._specialize(call), normal(3, 48, 6, 5)
    want = squeeze_excite.by_steps(x, *arrays, call.attrs, on_numpy(call.op_type))
    np.testing.assert_allclose(site(x, *arrays), want, **CLOSE)
    assert len(bindings) == 1


@pytest.mark.parametrize("slots", [("InputScale",), ("OutputScale", "Residual"), ("InputScale", "OutputScale")])
def test_pointwise_convolutions(slots, bindings):
    post_ops = ["residual", "relu"] if "Residual" in slots else ["relu"]
    call = call_of("onednn_pointwise_conv2d", ("Input", "Filter", "Bias", *slots), post_ops=post_ops)

    def last(*shape):
        return normal(shape[0], *shape[2:], shape[1]).transpose(0, 3, 1, 2)

    x, w, b = last(2, 8, 6, 5), constant(12, 8, 1, 1), constant(12)
    known = {"InputScale": normal(2, 8, 1, 1), "OutputScale": normal(2, 12, 1, 1), "Residual": last(2, 12, 6, 5)}
    others = [known[s] if s in slots else None for s in known]
    want = pointwise_conv2d.by_steps(x, w, b, *others, call.attrs, on_numpy(call.op_type))
    while others[-1] is None:
        others.pop()
    np.testing.assert_allclose(pointwise_conv2d._specialize(call)(x, w, b, *others), want, **CLOSE)
    assert len(bindings) == 1


@pytest.mark.primitives("squeeze")
def test_a_bound_chain_outlives_the_chains_of_its_thread():
    """What the chain computes with, such as ones and zeros of its own, lives as long."""
    slots = ("X", "Reduce", "Expand")
    call = call_of("onednn_squeeze_excite", slots, reduce_post_ops=["relu"], expand_post_ops=["sigmoid"])
    arrays = (constant(12, 480, 1, 1), None, constant(480, 12, 1, 1))
    site, x = squeeze_excite._specialize(call), normal(3, 480, 6, 5)
    want = squeeze_excite.by_steps(x, *arrays, None, call.attrs, on_numpy(call.op_type))
    site(x, *arrays)
    THREAD.primitives.clear()
    gc.collect()
    others = [np.full(48, np.nan, np.float32) for _ in range(200)]
    np.testing.assert_allclose(site(x, *arrays), want, **CLOSE)
    assert len(others) == 200


def last(*shape, seed=0):
    """Images in channels-last memory."""
    n, c, h, w = shape
    return normal(n, h, w, c, seed=seed).transpose(0, 3, 1, 2)


def chain_of(*layers, residual=False):
    """(the call, filters and biases) of convolutions (outputs, inputs, window, stride, groups) in a row."""
    attrs = {"strides": [s for _, _, _, s, _ in layers for _ in range(2)], "groups": [g for *_, g in layers]}
    attrs |= {"paddings": [k // 2 for _, _, k, _, _ in layers for _ in range(4)], "biased": [True] * len(layers)}
    added = ["residual"] if residual else []
    attrs |= {"post_ops": ["relu"] * len(layers) + added, "post_op_counts": [1] * (len(layers) - 1) + [1 + len(added)]}
    given = ("Input", "Filter", "Bias", *(("Residual",) if residual else ()))
    filters = [constant(k, c // g, w, w) for k, c, w, _, g in layers]
    return call_of("onednn_conv2d_chain", given, **attrs), filters, [constant(k) for k, *_ in layers]


def chain_sites(residual):
    call, *parameters = chain_of((48, 24, 1, 1, 1), (48, 48, 5, 2, 48), (96, 48, 1, 1, 1), residual=residual)
    return lambda: conv2d_chain._specialize(call), parameters


def pixel_sites(residual):
    given = ("Input", "Filter", "Bias", "InputScale", *(("Residual",) if residual else ()))
    call = call_of("onednn_pointwise_conv2d", given, post_ops=["relu", *(["residual"] if residual else [])])
    return lambda: pointwise_conv2d._specialize(call), [constant(96, 24, 1, 1), constant(96)]


def squeeze_sites(residual):
    call = call_of("onednn_squeeze_excite", ("X", "Reduce", "Expand"), reduce_post_ops=["relu"], expand_post_ops=[])
    parameters = [constant(8, 24, 1, 1), None, constant(24, 8, 1, 1)]
    return lambda: squeeze_excite._specialize(call), parameters


def product_sites(residual):
    given = ("X", "Y", "Bias", *(("Residual",) if residual else ()))
    call = call_of("matmul_post_ops", given, x_num_col_dims=2, post_ops=["relu", *(["residual"] if residual else [])])
    return lambda: fused_matmul._specialize_fused(call), [constant(24, 96), constant(96)]


@pytest.mark.parametrize("residual", [False, True])
def test_products_of_other_sizes_need_no_chain(monkeypatch, any_size, residual):
    if not widest_serves():
        pytest.skip("steps in C for any size need the compiled library, and a CPU with AVX-512")
    make, parameters = product_sites(residual)
    built, build, site = [], callsite._Entry.__init__, product_sites(residual)[0]()
    for n, rows in ((4, 30), (2, 7), (1, 300), (5, 64)):
        x, more = normal(n, rows, 24), [normal(n, rows, 96, seed=1)] if residual else []
        monkeypatch.setattr(callsite._Entry, "__init__", lambda self, *a: built.append(a) or build(self, *a))
        y = site(x, *parameters, *more)
        monkeypatch.undo()
        assert y.flags.c_contiguous and y.shape == (n, rows, 96)
        np.testing.assert_array_equal(y, make()(x, *parameters, *more))
    assert len(built) == 1
    # of one order alone are rows what they seem to be
    x, more = normal(24, 3, 30).transpose(1, 2, 0), [normal(3, 30, 96, seed=1)] if residual else []
    np.testing.assert_allclose(site(x, *parameters, *more), make()(x.copy(), *parameters, *more), **CLOSE)


def test_a_swapped_product_is_no_other_one_of_another_size(any_size):
    call = call_of("matmul_post_ops", ("X", "Y"), x_num_col_dims=1, trans_x=True)
    site, y = fused_matmul._specialize_fused(call), constant(24, 96)
    for rows in (24, 30, 24):
        x = normal(24, rows)
        np.testing.assert_allclose(site(x, y), x.T @ y, **CLOSE)
    x = normal(30, 24).T.copy()
    np.testing.assert_allclose(site(x, y), x.T @ y, **CLOSE)


SITES = [(chain_sites, False), (chain_sites, True), (pixel_sites, False), (pixel_sites, True), (squeeze_sites, False)]


@pytest.mark.parametrize("sites, residual", SITES)
def test_other_sizes_need_no_chain_and_have_the_same_numbers(monkeypatch, any_size, sites, residual):
    if not widest_serves():
        pytest.skip("steps in C for any size need the compiled library, and a CPU with AVX-512")
    make, parameters = sites(residual)
    built, build = [], callsite._Entry.__init__
    monkeypatch.setattr(callsite._Entry, "__init__", lambda self, *a: built.append(a) or build(self, *a))
    site, counts = make(), []
    # fewer pixels than products of halves need, and more; several images; a size that comes back
    sizes = [(1, 24, 20, 20), (1, 24, 11, 30), (3, 24, 16, 9), (1, 24, 5, 7), (1, 24, 3, 6), (1, 24, 64, 50)]
    for seed, shape in enumerate([*sizes, sizes[1]]):
        x, more = last(*shape, seed=seed), []
        if sites is pixel_sites:
            more = [normal(*shape[:2], 1, 1)]
        y = site(x, *parameters, *more) if not residual else None
        if residual:
            outputs, stride = 96, 2 if sites is chain_sites else 1
            size = [-(-n // stride) for n in shape[2:]]
            more = [*more, *([None] if sites is pixel_sites else []), last(shape[0], outputs, *size, seed=seed)]
            y = site(x, *parameters, *more)
        counts.append(len(built))
        np.testing.assert_array_equal(y, make()(x, *parameters, *more))
        built[counts[-1] :] = []
    assert counts[2] == counts[1] == counts[0] and counts[-1] <= 3, counts
    x = normal(2, 24, 12, 12)  # rows of one channel: another chain
    if not residual:
        more = [normal(2, 24, 1, 1)] if sites is pixel_sites else []
        np.testing.assert_array_equal(site(x, *parameters, *more), make()(x, *parameters, *more))
