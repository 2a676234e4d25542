"""Winograd's algorithm: the numbers of the convolution, for every size of image and at the edges."""

from __future__ import annotations

import subprocess
from ctypes import CDLL, c_int64, c_void_p
from pathlib import Path

import numpy as np
import oprack
import pytest
from numpy_kernels import on_numpy
from oprack.ir import optimize, select_passes
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types
from oprack_nn.ops.post_ops import RESIDUAL, encode
from oprack_onednn.c import build as build_runner
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernel_library import KERNEL_LIBRARY
from oprack_onednn.kernels import winograd_conv2d
from oprack_onednn.kernels.winograd_conv2d import NativeTransforms, pays
from oprack_onednn.ops.winograd_conv2d import matrices

PASSES = ("onednn_fuse_conv2d", "onednn_winograd")
CLOSE = dict(rtol=1e-4, atol=1e-4)
RELU = encode("relu", [])
LIBRARY.usable()
compiled = pytest.mark.skipif(not NativeTransforms.serves(16, ()), reason="there are no compiled transforms")


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
    monkeypatch.setattr(winograd_conv2d, "_PART", 1)
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


OTHER_WINDOWS = [{"strides": [2, 2]}, {"dilations": [2, 2]}, {"groups": 2, "image": (2, 128, 14, 14)}]
SMALL = [{"image": (2, 32, 14, 14)}, {"outputs": 32}, {"image": (2, 64, 8, 8)}]


def is_replaced(**attrs):
    return "onednn_winograd_conv2d" in op_types(check_passes(case(**attrs), *PASSES, **CLOSE))


@pytest.mark.parametrize("change", OTHER_WINDOWS + SMALL, ids=str)
def test_convolutions_that_stay(monkeypatch, change):
    """Without the compiled transforms, few channels or tiles are not worth it."""
    monkeypatch.setattr(NativeTransforms, "serves", lambda channels, post_ops: False)
    assert not is_replaced(**change)


@compiled
@pytest.mark.parametrize("change", [*OTHER_WINDOWS, {"outputs": 8}, {"image": (2, 24, 14, 14)}], ids=str)
def test_convolutions_that_stay_with_compiled_transforms(change):
    assert not is_replaced(**change)


@compiled
@pytest.mark.parametrize("change", [*SMALL, {"image": (2, 16, 24, 24), "outputs": 32}], ids=str)
def test_compiled_transforms_pay_for_fewer_channels(change):
    assert is_replaced(**change)


@pytest.mark.parametrize(
    "shape, faster",
    [((1, 64, 64, 56, 56), True), ((1, 16, 64, 23, 23), True), ((8, 128, 32, 24, 24), True),
     ((1, 512, 512, 3, 3), False), ((1, 48, 192, 5, 5), False), ((1, 24, 24, 46, 46), False)],
    ids=str,
)  # fmt: skip
def test_the_estimate_is_on_the_side_of_what_was_measured(shape, faster):
    """Ratios to the direct convolution that were measured: 0.33, 0.46, 0.4; 3.2, 1.2, 0.97."""
    assert pays(*shape) == faster


@compiled
@pytest.mark.parametrize("post_ops", [[], [RELU], [RESIDUAL], [RESIDUAL, RELU], [RELU, RESIDUAL]], ids=str)
@pytest.mark.parametrize("channels", [(16, 32), (40, 17), (33, 64)], ids=str)
@pytest.mark.parametrize("size", [(9, 12), (3, 7), (16, 8)], ids=str)
@pytest.mark.primitives("winograd")
def test_compiled_transforms(monkeypatch, size, channels, post_ops):
    """Whole tiles and those at the edges, full vectors and others, by several threads and in parts."""
    monkeypatch.setattr(winograd_conv2d, "_PART", 1 << 14)
    (c, k), (high, wide) = channels, size
    x, w, b, r = normal(2, c, high, wide), normal(k, c, 3, 3) / 24, normal(k), normal(2, k, high + 1, wide + 1)
    _, g, _ = matrices()
    u = np.einsum("ia,jb,kcab->ijck", g, g, w.astype(np.float64)).reshape(36, c, k).astype(np.float32, order="C")
    ctx = on_numpy("onednn_winograd_conv2d", {"paddings": [2, 1, 1, 2], "post_ops": post_ops})
    given = b, r if RESIDUAL in post_ops else None
    y = ctx.run_op(
        "conv2d", {"Input": x.astype(np.float64), "Filter": w.astype(np.float64)}, {"paddings": [2, 1, 1, 2]}
    )
    y += b.reshape(-1, 1, 1)
    for text in post_ops:
        y = y + r if text == RESIDUAL else np.maximum(y, 0)
    for count in (1, 3):
        with KERNEL_LIBRARY.limit_threads(count):
            got = winograd_conv2d.winograd(x, u, *given, ctx=ctx)
            np.testing.assert_allclose(got, y, rtol=0, atol=1e-5)
            found = winograd_conv2d.find_primitive(ctx.attrs, x, u, *given)
            assert "oprack:oprack_winograd_forth" in [desc.impl for desc, _ in found.chain.steps]


@compiled
@pytest.mark.parametrize("isa", ["AVX-512", "AVX2"])
def test_transforms_of_each_kind_of_cpu(tmp_path, isa):
    options = [*build_runner._OPTIONS, f"-I{build_runner.SOURCES[0].parent}"]
    own = [path for path in build_runner.SOURCES if path.name in ("winograd.c", "pool.c", "openmp.c", "exit.c")]
    if isa == "AVX2":
        options.append("-DHAS_AVX512=0")
    elif "avx512f" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this CPU has no AVX-512")
    command = [*build_runner.compiler(), *options, *map(str, own), "-o", str(tmp_path / "lib.so"), "-ldl"]
    subprocess.run(command, check=True, timeout=60)
    library = CDLL(str(tmp_path / "lib.so"))
    back, _, forth = map(np.array, matrices())
    x = normal(1, 6, 6, 21)
    tiles, y = np.empty((36, 1, 21), np.float32), np.empty((1, 4, 4, 21), np.float32)

    def run(name, settings, *arrays):
        memory = (c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        assert not getattr(library, name)((c_int64 * 13)(*settings), memory, c_int64(1))

    run("oprack_winograd_forth", (1, 21, 6, 6, 0, 0, 0, 1, 1, 1, 0, 0, 0), x, tiles)
    want = np.einsum("ia,jb,abc->ijc", forth, forth, x[0])
    np.testing.assert_allclose(tiles.reshape(6, 6, 21), want, rtol=0, atol=1e-5)
    run("oprack_winograd_back", (1, 21, 4, 4, 0, 0, 0, 1, 1, 1, 0, 0, 1), tiles, y)
    np.testing.assert_allclose(y[0], np.maximum(np.einsum("ia,jb,abc->ijc", back, back, want), 0), rtol=0, atol=1e-4)


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
