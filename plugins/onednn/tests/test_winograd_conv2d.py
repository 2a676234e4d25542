"""Winograd's algorithm: the numbers of the convolution, for every size of image and at the edges."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from numpy_kernels import on_numpy
from oprack.ir import optimize, select_passes
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types
from oprack_onednn.kernels import _winograd_tiles, winograd_conv2d
from oprack_onednn.ops.winograd_conv2d import matrices
from oprack_onednn.primitive_chain import PrimitiveChain

PASSES = ("onednn_fuse_conv2d", "onednn_winograd")
CLOSE = dict(rtol=1e-4, atol=1e-4)


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def case(image=(2, 64, 14, 13), outputs=80, bias=True, act=True, **attrs):
    attrs = {"paddings": [1, 1]} | attrs
    ops = [("conv2d", {"Input": "x", "Filter": "w"}, {"Output": "y0"}, attrs)]
    if bias:
        ops.append(("elementwise_add", {"X": "y0", "Y": "b"}, {"Out": "y1"}, {"axis": 1}))
    if act:
        ops.append(("relu", {"X": "y1" if bias else "y0"}, {"Out": "y2"}))
    w = normal(outputs, image[1] // attrs.get("groups", 1), 3, 3) / 24
    return PassCase({"x": normal(*image)}, {"w": w, "b": normal(outputs)} if bias else {"w": w}, ops)


def test_the_algorithm_in_one_dim():
    back, weigh, forth = map(np.array, matrices())
    d, g = np.random.default_rng(0).standard_normal((2, 6))
    want = np.convolve(d, g[2::-1], "valid")
    np.testing.assert_allclose(back @ ((weigh @ g[:3]) * (forth @ d)), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bias, act", [(True, True), (False, True), (True, False), (False, False)])
@pytest.mark.primitives("winograd")
def test_what_follows(bias, act):
    optimized = check_passes(case(bias=bias, act=act), *PASSES, **CLOSE)
    assert op_types(optimized) == ["onednn_winograd_conv2d"]


@pytest.mark.parametrize("size", [(12, 12), (13, 11), (11, 14), (30, 10)], ids=str)
@pytest.mark.parametrize(
    "attrs", [{}, {"paddings": [0, 0]}, {"paddings": [2, 0, 1, 3]}, {"padding_algorithm": "SAME"}], ids=str
)
@pytest.mark.primitives("winograd")
def test_sizes_and_padding(size, attrs):
    optimized = check_passes(case((2, 64, *size), **attrs), *PASSES, **CLOSE)
    assert op_types(optimized) == ["onednn_winograd_conv2d"]


@pytest.mark.primitives("winograd")
def test_in_parts(monkeypatch):
    monkeypatch.setattr(_winograd_tiles, "_PART", 1)
    check_passes(case(), *PASSES, **CLOSE)


def read_only(scope):
    for name in scope.local_var_names():
        scope.get_var(name).get().array.flags.writeable = False


def fused(example):
    program, scope = example.build()
    passes = [p for p in select_passes() if p.name in PASSES]
    return program, optimize(program.desc, scope, keep=example.fetches(), passes=passes).program, scope


def test_constant_parameters_are_packed(monkeypatch):
    example = case()
    program, changed, scope = fused(example)
    read_only(scope)
    monkeypatch.setattr(winograd_conv2d, "by_steps", lambda *a: pytest.fail("not served"))
    x = np.ascontiguousarray(example.feeds["x"].transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    executor = oprack.Executor()
    for feed in (example.feeds["x"], x, 2 * x):
        (want,), (got,) = (executor.run(p, {"x": feed}, example.fetches(), scope) for p in (program, changed))
        np.testing.assert_allclose(got, want, **CLOSE)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_on_numpy_as_well(monkeypatch, dtype):
    monkeypatch.setattr(PrimitiveChain, "run", lambda *a: pytest.fail("oneDNN ran"))
    x, w, b = (a.astype(dtype) for a in (normal(2, 5, 9, 11), normal(7, 5, 3, 3), normal(7)))
    _, g, _ = matrices()
    u = np.einsum("ia,jb,kcab->ijck", g, g, w).reshape(36, 5, 7).astype(dtype)
    ctx = on_numpy("onednn_winograd_conv2d", {"paddings": [1, 0, 2, 1], "post_ops": ["tanh"]})
    got = winograd_conv2d.by_steps(x, u, b, None, ctx.attrs, ctx)
    want = np.tanh(ctx.run_op("conv2d", {"Input": x, "Filter": w}, {"paddings": [1, 0, 2, 1]}) + b.reshape(-1, 1, 1))
    assert got.dtype == dtype
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 if dtype == "float32" else 1e-12)


@pytest.mark.primitives("winograd")
def test_rounding_is_like_that_of_a_convolution():
    x, w = np.maximum(normal(1, 256, 12, 12), 0), normal(64, 256, 3, 3) / 48
    _, g, _ = matrices()
    u = np.einsum("ia,jb,kcab->ijck", g, g, w.astype(np.float64), optimize=True).reshape(36, 256, 64)
    ctx = on_numpy("onednn_winograd_conv2d", {"paddings": [1, 1, 1, 1]})
    exact = winograd_conv2d.by_steps(x.astype(np.float64), u, None, None, ctx.attrs, ctx)
    got = winograd_conv2d.winograd(x, u.astype(np.float32), ctx=ctx)
    assert np.sqrt(np.square(got - exact).mean()) < 1e-6 * np.abs(exact).max()


@pytest.mark.parametrize(
    "change",
    [
        {"strides": [2, 2]}, {"dilations": [2, 2]}, {"groups": 2, "image": (2, 128, 14, 14)},
        {"image": (2, 32, 14, 14)}, {"outputs": 32}, {"image": (2, 64, 8, 8)},
    ],
    ids=str,
)  # fmt: skip
def test_convolutions_that_stay(change):
    assert "onednn_winograd_conv2d" not in op_types(check_passes(case(**change), *PASSES, **CLOSE))


def test_an_empty_batch():
    check_passes(case((0, 64, 14, 14)), *PASSES)


@pytest.mark.parametrize("last", [False, True], ids=["row major", "channels last"])
@pytest.mark.parametrize("before, behind", [("relu", "sigmoid"), (None, "relu"), (None, None)])
@pytest.mark.primitives("winograd")
def test_a_residual(monkeypatch, last, before, behind):
    """In channels-last memory it goes to oneDNN."""
    ops = [("conv2d", {"Input": "x", "Filter": "w"}, {"Output": "y0"}, {"paddings": [1, 1]})]
    ops.append(("elementwise_add", {"X": "y0", "Y": "b"}, {"Out": "y1"}, {"axis": 1}))
    x = "y1"
    for op_type, out in ((before, "y2"), ("elementwise_add", "y3"), (behind, "y4")):
        if op_type:
            slots = {"X": x, "Y": "r"} if op_type == "elementwise_add" else {"X": x}
            ops.append((op_type, slots, {"Out": out}))
            x = out
    feeds = {"x": normal(2, 64, 14, 13), "r": normal(2, 64, 14, 13, seed=1)}
    if last:
        feeds = {k: np.ascontiguousarray(v.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2) for k, v in feeds.items()}
    example = PassCase(feeds, {"w": normal(64, 64, 3, 3) / 24, "b": normal(64)}, ops)
    program, changed, scope = fused(example)
    assert [op.type for op in changed.blocks[0].ops] == ["onednn_winograd_conv2d"]
    read_only(scope)
    if last:
        monkeypatch.setattr(winograd_conv2d, "by_steps", lambda *a: pytest.fail("not served"))
    for _ in range(2):
        (want,), (got,) = (oprack.Executor().run(p, feeds, example.fetches(), scope) for p in (program, changed))
        np.testing.assert_allclose(got, want, **CLOSE)


@pytest.mark.parametrize(
    "channels, taken", [pytest.param(64, True, marks=pytest.mark.primitives("winograd")), (320, False)]
)
def test_images_of_any_size(channels, taken):
    example = case((1, channels, 14, 14))
    program, scope = example.build()
    for var in program.desc.blocks[0].vars.values():
        if var.shape is not None and len(var.shape) == 4 and not var.persistable:
            var.shape = (-1, var.shape[1], -1, -1)
    passes = [p for p in select_passes() if p.name in PASSES]
    changed = optimize(program.desc, scope, keep=example.fetches(), passes=passes).program
    assert ("onednn_winograd_conv2d" in [op.type for op in changed.blocks[0].ops]) is taken
    for size in ((14, 14), (3, 5)):
        feeds = {"x": normal(2, channels, *size)}
        (want,), (got,) = (oprack.Executor().run(p, feeds, example.fetches(), scope) for p in (program, changed))
        np.testing.assert_allclose(got, want, **CLOSE)


def test_chains_keep_no_images():
    """There is one for each shape, and images are large."""
    x, u = normal(1, 64, 100, 100), normal(36, 64, 64)
    chain = winograd_conv2d.find_primitive({"paddings": [1, 1, 1, 1], "post_ops": []}, x, u).chain
    arrays = {id(m.array): m.array for _, memory in chain.steps for m in memory.values() if m.array is not None}
    assert sum(a.nbytes for a in arrays.values()) < x.nbytes / 100
