"""Products in bfloat16: factors are rounded, sums are float32, and only who asks for it gets them."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack import inference
from oprack.inference import create_predictor
from oprack.io import save_inference_model
from oprack.io.inference_model import freeze_parameters
from oprack.ir import optimize, select_passes
from oprack.testing import PassCase
from oprack.testing.passes import op_types
from oprack_nn.ops.precision import NAME, OUTPUT
from oprack_onednn.dnnl.library import LIBRARY

LIBRARY.usable()
narrow = pytest.mark.skipif(not LIBRARY.has_bfloat16(), reason="this CPU has no bfloat16")
ALL = {"bfloat16": None}


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def rounded(x):
    """To the nearest of the numbers whose lower 16 bits are 0, ties to even."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def conv(x, w, pad):
    """Sums of products in float64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,kcij->nkhw", windows, w.astype(np.float64), optimize=True)


def run(case, precisions, **runner):
    """(what the optimised program gives, its ops)"""
    program, scope = case.build(None)
    fetches = case.fetches()
    chosen = select_passes(precisions=precisions)
    optimized = optimize(program.desc, scope, keep=fetches, passes=chosen)
    freeze_parameters(scope)
    executor = oprack.Executor()
    for _ in range(2):  # recorded, and by the plan
        out = executor.run(optimized.program, case.feeds, fetches, scope)
    return out[0], optimized


def marks(optimized):
    return [op.attrs.get(NAME) for op in optimized.program.blocks[0].ops]


def one_conv(k=32, c=32, size=3, image=(2, 32, 20, 24)):
    attrs = {"paddings": [size // 2] * 2}
    ops = [
        ("conv2d", {"Input": "x", "Filter": "w"}, {"Output": "y"}, attrs),
        ("elementwise_add", {"X": "y", "Y": "b"}, {"Out": "z"}, {"axis": 1}),
        ("relu", {"X": "z"}, {"Out": "out"}, {}),
    ]
    return PassCase({"x": normal(*image)}, {"w": normal(k, c, size, size), "b": normal(k)}, ops)


@narrow
@pytest.mark.parametrize("size", [1, 3])
def test_a_convolution_rounds_its_factors_alone(size):
    case = one_conv(size=size)
    got, optimized = run(case, ALL)
    assert marks(optimized) == ["bfloat16"]
    x, w, b = case.feeds["x"], case.params["w"], case.params["b"]
    want = np.maximum(conv(rounded(x), rounded(w), size // 2) + b[:, None, None], 0)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * np.abs(want).max())
    exact = np.maximum(conv(x, w, size // 2) + b[:, None, None], 0)
    assert 1e-4 < np.abs(got - exact).max() / np.abs(exact).max() < 2e-2


@narrow
def test_a_product_rounds_its_factors_alone():
    ops = [("matmul_v2", {"X": "x", "Y": "w"}, {"Out": "y"}, {}), ("tanh", {"X": "y"}, {"Out": "out"}, {})]
    case = PassCase({"x": normal(5, 7, 96)}, {"w": normal(96, 80, seed=1) / 10}, ops)
    got, optimized = run(case, ALL)
    assert (op_types(optimized), marks(optimized)) == (["matmul_post_ops"], ["bfloat16"])
    want = np.tanh(rounded(case.feeds["x"]).astype(np.float64) @ rounded(case.params["w"]))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@narrow
@pytest.mark.parametrize("batch", [1, 3])
def test_convolutions_in_a_row_round_what_lies_between(batch):
    """A depthwise one among them, which stays float32, reads and writes what was not rounded."""
    ops, x = [], "x"
    params = {"w0": normal(48, 32, 1, 1) / 6, "w1": normal(48, 1, 3, 3) / 3, "w2": normal(64, 48, 1, 1) / 7}
    params["w3"] = normal(32, 64, 1, 1) / 8
    for i, (kind, pad, groups) in enumerate(
        [("conv2d", 0, 1), ("depthwise_conv2d", 1, 48), ("conv2d", 0, 1), ("conv2d", 0, 1)]
    ):
        attrs = {"paddings": [pad, pad], "groups": groups}
        ops += [(kind, {"Input": x, "Filter": f"w{i}"}, {"Output": f"y{i}"}, attrs)]
        ops += [("relu", {"X": f"y{i}"}, {"Out": f"z{i}"}, {})]
        x = f"z{i}"
    case = PassCase({"x": normal(batch, 32, 28, 28)}, params, ops)
    got, optimized = run(case, ALL)
    assert "onednn_conv2d_chain" in op_types(optimized) and set(marks(optimized)) == {"bfloat16"}
    a = np.maximum(conv(rounded(case.feeds["x"]), rounded(params["w0"]), 0), 0)
    w = params["w1"].astype(np.float64)
    padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    a = np.maximum(np.einsum("nchwij,cij->nchw", windows, w[:, 0]), 0)
    a = np.maximum(conv(rounded(a), rounded(params["w2"]), 0), 0)
    want = np.maximum(conv(rounded(a), rounded(params["w3"]), 0), 0)
    # a sum that lies between two numbers of bfloat16 may be rounded to either
    np.testing.assert_allclose(got, want, rtol=1e-2, atol=2e-3 * np.abs(want).max())
    assert np.abs(got - want).mean() < 1e-4 * np.abs(want).mean()


def residual_block(channels=64, batch=2, size=14):
    """y = relu(w0 x); out = relu(w3 relu(w2 relu(w1 y)) + shortcut y) + bias, then what reads it."""
    ops, c = [], channels
    params = {"w0": normal(c, 16, 1, 1) / 4, "w1": normal(c // 2, c, 1, 1) / 8, "w2": normal(c // 2, c // 2, 3, 3) / 16}
    params |= {"w3": normal(c, c // 2, 1, 1) / 6, "w4": normal(c, c, 1, 1) / 8, "w5": normal(8, c, 1, 1) / 8}

    def conv2d(x, w, y, pad=0, relu=True):
        name = f"{y}_sum" if relu else y
        ops.append(("conv2d", {"Input": x, "Filter": w}, {"Output": name}, {"paddings": [pad, pad]}))
        if relu:
            ops.append(("relu", {"X": name}, {"Out": y}, {}))

    conv2d("x", "w0", "y")
    conv2d("y", "w4", "shortcut", relu=False)
    conv2d("y", "w1", "a")
    conv2d("a", "w2", "b", 1)
    conv2d("b", "w3", "c", relu=False)
    ops += [("elementwise_add", {"X": "c", "Y": "shortcut"}, {"Out": "sum"}, {"axis": -1})]
    ops += [("relu", {"X": "sum"}, {"Out": "z"}, {})]
    conv2d("z", "w5", "out", relu=False)
    return PassCase({"x": normal(batch, 16, size, size)}, params, ops, ["out"])


@narrow
@pytest.mark.parametrize(("channels", "batch"), [(64, 2), (128, 1), (20, 3)])
def test_results_that_convolutions_alone_read_are_bfloat16(channels, batch):
    """As many as 64 channels would be Winograd's in float32."""
    case = residual_block(channels, batch)
    got, optimized = run(case, ALL)
    types = op_types(optimized)
    assert set(types) <= {"conv2d_post_ops", "onednn_conv2d_chain"} and set(marks(optimized)) == {"bfloat16"}
    by_output = {op.outputs["Output"][0]: op.attrs.get(OUTPUT) for op in optimized.program.blocks[0].ops}
    assert by_output.pop("out") != "bfloat16" and set(by_output.values()) == {"bfloat16"}
    p, x = case.params, rounded(case.feeds["x"])
    w = {name: rounded(value) for name, value in p.items()}
    y = rounded(np.maximum(conv(x, w["w0"], 0), 0))
    shortcut = rounded(conv(y, w["w4"], 0))
    b = rounded(np.maximum(conv(rounded(np.maximum(conv(y, w["w1"], 0), 0)), w["w2"], 1), 0))
    want = conv(rounded(np.maximum(conv(b, w["w3"], 0) + shortcut, 0)), w["w5"], 0)
    # a sum that lies between two numbers of bfloat16 may be rounded to either
    np.testing.assert_allclose(got, want, rtol=1e-2, atol=4e-3 * np.abs(want).max())
    assert np.abs(got - want).mean() < 3e-4 * np.abs(want).max()


@narrow
def test_kernels_without_the_library_take_and_give_bfloat16():
    case = residual_block(24)
    program, scope = case.build(None)
    optimized = optimize(program.desc, scope, keep=["out"], passes=select_passes(precisions=ALL))
    assert any(op.attrs.get(OUTPUT) == "bfloat16" for op in optimized.program.blocks[0].ops)
    numpy = oprack.Executor(excluded_libraries=["onednn"])
    (want,) = numpy.run(program, case.feeds, ["out"], scope)
    for prepared in (True, False):
        executor = oprack.Executor(excluded_libraries=["onednn"], prepared=prepared)
        (got,) = executor.run(optimized.program, case.feeds, ["out"], scope)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=2e-2, atol=1e-2 * np.abs(want).max())


@narrow
def test_who_reads_float32_gets_float32():
    case = residual_block(24)
    case.ops += [("tanh", {"X": "z"}, {"Out": "t"}, {})]
    case.fetch = ["out", "t"]
    program, scope = case.build(None)
    optimized = optimize(program.desc, scope, keep=case.fetch, passes=select_passes(precisions=ALL))
    assert {
        op.outputs["Output"][0]: op.attrs.get(OUTPUT) for op in optimized.program.blocks[0].ops if op.type != "tanh"
    }["z"] != "bfloat16"


def upsampled(scaled):
    """conv(2 x up beside z), where x may be scaled image by image."""
    feeds = {"x": normal(2, 40, 6, 5), "z": normal(2, 8, 12, 10), "s": np.abs(normal(2, 40, 1, 1))}
    ops = [("elementwise_mul", {"X": "x", "Y": "s"}, {"Out": "r"}, {"axis": -1})] if scaled else []
    ops += [("nearest_interp_v2", {"X": "r" if scaled else "x"}, {"Out": "u"}, {"scale": [2.0, 2.0]})]
    ops[-1][3].update(align_corners=False, interp_method="nearest")
    ops += [("concat", {"X": ["u", "z"]}, {"Out": "c"}, {"axis": 1})]
    ops += [("conv2d", {"Input": "c", "Filter": "w"}, {"Output": "y"}, {"paddings": [1, 1]})]
    ops += [("relu", {"X": "y"}, {"Out": "out"}, {})]
    case = PassCase(feeds, {"w": normal(24, 48, 3, 3) / 20}, ops, ["out"])
    x = feeds["x"] * feeds["s"] if scaled else feeds["x"]
    whole = np.concatenate([x.repeat(2, axis=2).repeat(2, axis=3), feeds["z"]], axis=1)
    return case, np.maximum(conv(whole, case.params["w"], 1), 0), "onednn_upsampled_conv2d"


def pair(channels):
    """Two transposed convolutions, each pixel to a tile of 2x2."""
    feeds, params = (
        {"x": normal(2, 24, 7, 6)},
        {"w": normal(24, channels, 2, 2) / 5, "v": normal(channels, 1, 2, 2) / 5},
    )
    ops = [
        ("conv2d_transpose", {"Input": "x", "Filter": "w"}, {"Output": "y"}, {"strides": [2, 2]}),
        ("relu", {"X": "y"}, {"Out": "z"}, {}),
        ("conv2d_transpose", {"Input": "z", "Filter": "v"}, {"Output": "out"}, {"strides": [2, 2]}),
    ]

    def tiles(x, w):
        y = np.einsum("nchw,ckij->nkhiwj", x.astype(np.float64), w)
        return y.reshape(*y.shape[:2], y.shape[2] * 2, -1)

    want = tiles(np.maximum(tiles(feeds["x"], params["w"]), 0), params["v"])
    return PassCase(feeds, params, ops, ["out"]), want, "onednn_conv2d_transpose_pair"


@narrow
@pytest.mark.parametrize("made", [upsampled(False), upsampled(True), pair(24), pair(20)], ids=lambda made: made[2])
def test_heads_of_detection_round_their_factors(made):
    case, want, op_type = made
    got, optimized = run(case, ALL)
    assert [op.attrs.get(NAME) for op in optimized.program.blocks[0].ops if op.type == op_type] == ["bfloat16"]
    off = np.abs(got - want).max() / np.abs(want).max()
    assert 1e-4 < off < 1e-2
    plain, floats = run(case, {})
    assert op_type in op_types(floats)
    np.testing.assert_allclose(plain, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


@narrow
def test_nan_and_infinities_stay():
    case = one_conv(size=1)
    case.feeds["x"][0, :, 3, 4], case.feeds["x"][1, 0, 5, 6] = np.nan, np.inf
    got, _ = run(case, ALL)
    assert np.isfinite(got[0, :, :3]).all() and not np.isfinite(got[1, :, 5, 6]).all()


@narrow
def test_users_choose_the_ops():
    ops = [
        *one_conv().ops,
        ("flatten_contiguous_range", {"X": "out"}, {"Out": "f", "XShape": "s"}, {"start_axis": 1, "stop_axis": 3}),
        ("matmul_v2", {"X": "f", "Y": "v"}, {"Out": "p"}, {}),
        ("relu", {"X": "p"}, {"Out": "q"}, {}),
    ]
    case = PassCase(one_conv().feeds, one_conv().params | {"v": normal(32 * 20 * 24, 8)}, ops)
    for precisions, conv_mark, product_mark in (
        ({}, "float32", "float32"),
        (ALL, "bfloat16", "bfloat16"),
        ({"bfloat16": ["conv2d"]}, "bfloat16", "float32"),
        ({"bfloat16": ["matmul_v2"]}, "float32", "bfloat16"),
        ({"bfloat16": ["softmax"]}, "float32", "float32"),
    ):
        found = run(case, precisions)[1].program.blocks[0].ops
        by_type = {op.type: op.attrs.get(NAME, "float32") for op in found}
        # in float32 it may be one by Winograd's algorithm
        conv = next(by_type[t] for t in ("conv2d_post_ops", "onednn_winograd_conv2d") if t in by_type)
        assert (conv, by_type["matmul_post_ops"]) == (conv_mark, product_mark)


def test_without_the_instructions_all_stays_float32(monkeypatch):
    monkeypatch.setattr(type(LIBRARY), "has_bfloat16", lambda self: False)
    assert "bfloat16" not in marks(run(one_conv(), ALL)[1])


@narrow
def test_the_config_asks_for_it(tmp_path):
    case = one_conv()
    program, scope = case.build(None)
    save_inference_model(tmp_path / "net", program, ["x"], case.fetches(), scope)
    outputs = {}
    for how in ("plain", "bfloat16", "other ops"):
        config = inference.Config(str(tmp_path / "net.pdmodel"), str(tmp_path / "net.pdiparams"))
        if how != "plain":
            config.enable_mkldnn_bfloat16()
        if how == "other ops":
            config.set_bfloat16_op({"matmul_v2"})
        assert config.mkldnn_bfloat16_enabled() == (how != "plain")
        assert ("onednn_bfloat16_conv2d" in config.pass_builder().all_passes()) == (how == "bfloat16")
        (outputs[how],) = create_predictor(config).run([case.feeds["x"]])
    np.testing.assert_array_equal(outputs["plain"], outputs["other ops"])
    difference = np.abs(outputs["plain"] - outputs["bfloat16"]).max()
    assert 1e-4 < difference / np.abs(outputs["plain"]).max() < 2e-2


# Models that say which layers round -----------------------------------------------------------------------------------
def three_convs(*said):
    """Convolutions of which some say that they round, with a batch_norm and an activation behind the first."""
    layers = [{NAME: "bfloat16"} if one else {} for one in said]
    conv = ("conv2d", {"Input": "x", "Filter": "w0"}, {"Output": "y0"}, {"paddings": [1, 1], **layers[0]})
    norm = {"X": "y0", "Scale": "s", "Bias": "b", "Mean": "m", "Variance": "v"}
    kept = {"Y": "z0", "MeanOut": "m", "VarianceOut": "v", "SavedMean": "sm", "SavedVariance": "sv"}
    ops = [
        conv,
        ("batch_norm", norm, kept, {"is_test": True, "epsilon": 0.0}),
        ("relu", {"X": "z0"}, {"Out": "r"}, {}),
        ("conv2d", {"Input": "r", "Filter": "w1"}, {"Output": "y1"}, layers[1]),
        ("relu", {"X": "y1"}, {"Out": "r1"}, {}),
        ("conv2d", {"Input": "r1", "Filter": "w2"}, {"Output": "out"}, {"paddings": [1, 1], **layers[2]}),
    ]
    ones = np.ones(32, np.float32)
    weights = {"w0": normal(32, 32, 3, 3), "w1": normal(32, 32, 1, 1), "w2": normal(32, 32, 3, 3, seed=1)}
    params = {**weights, "s": 2 * ones, "b": ones, "m": 0 * ones, "v": ones}
    return PassCase({"x": normal(1, 32, 20, 24)}, params, ops, ["out"])


def by_hand(case, said):
    """The same sums in float64, with the factors of some layers rounded."""
    x, p = case.feeds["x"], case.params
    factors = [rounded if one else np.asarray for one in said]
    y = conv(factors[0](x), factors[0](2 * p["w0"]), 1) + 1
    y = conv(factors[1](np.maximum(y, 0).astype(np.float32)), factors[1](p["w1"]), 0)
    return conv(factors[2](np.maximum(y, 0).astype(np.float32)), factors[2](p["w2"]), 1)


@narrow
@pytest.mark.parametrize("said", [(True, False, False), (False, True, False), (False, False, True), (True, True, True)])
def test_only_layers_round_that_the_model_names(said):
    case = three_convs(*said)
    got, optimized = run(case, ALL)
    want = by_hand(case, said)
    assert "bfloat16" in marks(optimized)
    # a number half way between two may be rounded to either, as sums differ in their last bits
    error = np.linalg.norm(got - want) / np.linalg.norm(want)
    others = [tuple(s ^ (i == k) for i, s in enumerate(said)) for k in range(3)]
    assert error < 5e-4 and all(
        error < np.linalg.norm(got - by_hand(case, o)) / np.linalg.norm(want) / 3 for o in others
    )


@narrow
def test_what_a_model_says_counts_for_who_asks_alone():
    got, _ = run(three_convs(True, True, True), {})
    want = by_hand(three_convs(True, True, True), (False, False, False))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * np.abs(want).max())
