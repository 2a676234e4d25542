"""Convolutions and products of bytes: sums are exact, and results are within a step of the program in floats."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack import inference
from oprack.inference import create_predictor
from oprack.io import save_inference_model
from oprack.ir import optimize, select_passes
from oprack.testing import PassCase
from oprack.testing.passes import op_types
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernels.quantized_conv2d import find_quantized
from oprack_onednn.passes.int8 import multiples

LIBRARY.usable()
bytes_only = pytest.mark.skipif(not LIBRARY.has_int8(), reason="this CPU has no VNNI")
ALL = {"int8": None}
CONV, PRODUCT = "onednn_quantized_conv2d", "onednn_quantized_matmul"
INPUT = np.float32(3.0)  # the scale of what enters


def drawn(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def whole(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).integers(-127, 128, shape).astype(np.int8)


def quantized(x, step):
    """Integers of a byte, as Paddle's formula has them."""
    return np.clip(np.rint(127 * x.astype(np.float64) / step), -128, 127)


def conv(x, w, pad, stride, groups):
    """In float64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    n, c, *rest = windows.shape
    windows = windows.reshape(n, groups, c // groups, *rest)
    w = w.astype(np.float64).reshape(groups, len(w) // groups, *w.shape[1:])
    y = np.einsum("ngchwij,gkcij->ngkhw", windows, w, optimize=True)
    return y.reshape(n, -1, *y.shape[3:])


# Primitives -----------------------------------------------------------------------------------------------------------
@bytes_only
@pytest.mark.parametrize("output_step", [0.0, 0.25])
@pytest.mark.parametrize("given", ["int8", "float32"])
@pytest.mark.parametrize(
    ("c", "k", "width", "stride", "groups"),
    [(3, 16, 3, 2, 1), (20, 7, 1, 1, 1), (24, 24, 3, 1, 24), (16, 16, 5, 2, 16), (12, 8, 3, 1, 2), (5, 5, 3, 1, 5)],
)
def test_a_convolution_adds_integers_up_exactly(c, k, width, stride, groups, given, output_step):
    w, steps, bias = whole(k, c // groups, width, width), np.abs(drawn(k)) / 100, drawn(k, seed=3)
    x = whole(2, c, 9, 13) if given == "int8" else drawn(2, c, 9, 13)
    for a in (w, steps, bias):
        a.flags.writeable = False
    step = np.float32(0.02)
    attrs = {"strides": [stride] * 2, "paddings": [width // 2] * 2, "dilations": [1, 1], "groups": groups}
    attrs |= {"padding_algorithm": "EXPLICIT", "post_ops": ["relu"], "input_step": float(step)}
    found = find_quantized(x, w, steps, bias, None, attrs | {"output_step": output_step})
    assert found is not None
    got = found.run(x, w, steps, bias)
    integers = x if given == "int8" else np.clip(np.rint(x / step), -128, 127)
    sums = conv(integers, w, width // 2, stride, groups)
    want = np.maximum(sums * float(step) * steps.reshape(-1, 1, 1) + bias.reshape(-1, 1, 1), 0)
    if output_step:
        assert got.dtype == np.int8
        exact = np.clip(want / output_step, -128, 127)
        assert np.abs(got - exact).max() <= 0.5 + 1e-3
    else:
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


# Programs -------------------------------------------------------------------------------------------------------------
def rounded(x, name, scale, spelling="linear"):
    """Ops by which a tool rounds x, and their parameters; what they write is called `name`."""
    scales = {f"{name}_scale": np.float32([scale]), f"{name}_zero": np.zeros(1, np.int32)}
    if spelling == "fake":
        slots = {"X": x, "InScale": f"{name}_scale"}, {"Out": name, "OutScale": f"{name}_scale"}
        return [("fake_quantize_dequantize_moving_average_abs_max", *slots, {"is_test": True})], scales
    more, attrs = {"Scale": f"{name}_scale", "ZeroPoint": f"{name}_zero"}, {"quant_axis": -1}
    return [
        ("quantize_linear", {"X": x, **more}, {"Y": f"{name}_q"}, attrs),
        ("dequantize_linear", {"X": f"{name}_q", **more}, {"Y": name}, attrs),
    ], scales


def weight(name, shape, axis, seed=0):
    """An int8 weight with a scale for each channel."""
    w = whole(*shape, seed=seed)
    scales = np.abs(drawn(shape[axis], seed=seed)) / 8 + np.float32(0.1)
    params = {f"{name}_int8": w, f"{name}_s": scales, f"{name}_z": np.zeros(shape[axis], np.int32)}
    slots = {"X": f"{name}_int8", "Scale": f"{name}_s", "ZeroPoint": f"{name}_z"}
    return [("dequantize_linear", slots, {"Y": name}, {"quant_axis": axis})], params


def two_convolutions(spelling="linear"):
    """x -> conv, bias, relu -> conv; what lies between has scale 20."""
    (first, p0), (second, p1) = rounded("x", "a", INPUT, spelling), rounded("z", "r", 20.0, spelling)
    (w, p2), (v, p3) = weight("w", (24, 16, 3, 3), 0), weight("v", (8, 24, 1, 1), 0)
    ops = [
        *(*first, *w, *v),
        ("conv2d", {"Input": "a", "Filter": "w"}, {"Output": "y"}, {"paddings": [1, 1]}),
        ("elementwise_add", {"X": "y", "Y": "b"}, {"Out": "s"}, {"axis": 1}),
        ("relu", {"X": "s"}, {"Out": "z"}, {}),
        *second,
        ("conv2d", {"Input": "r", "Filter": "v"}, {"Output": "out"}, {}),
    ]
    return PassCase({"x": drawn(2, 16, 11, 9)}, {"b": drawn(24), **p0, **p1, **p2, **p3}, ops, ["out"])


def run(case, precisions):
    """(what the optimised program gives, its ops)"""
    program, scope = case.build(None)
    optimized = optimize(program.desc, scope, keep=case.fetches(), passes=select_passes(precisions=precisions))
    assert not [r.error for r in optimized.reports if r.error]
    for name in scope.local_var_names():
        scope.get_var(name).get().array.flags.writeable = False
    executor = oprack.Executor()
    for _ in range(3):  # recorded, by the plan, and joined
        (out,) = executor.run(optimized.program, case.feeds, case.fetches(), scope)
    return out, optimized


def parameter_steps(params, name):
    return params[f"{name}_s"].astype(np.float64) / 127


@bytes_only
@pytest.mark.parametrize("spelling", ["linear", "fake"])
def test_convolutions_hand_bytes_on(spelling):
    case = two_convolutions(spelling)
    got, optimized = run(case, ALL)
    assert op_types(optimized) == [CONV, CONV]
    first, second = optimized.program.blocks[0].ops
    assert (first.attrs["output_step"], second.attrs.get("output_step", 0.0)) == (second.attrs["input_step"], 0.0)
    p, x = case.params, case.feeds["x"]
    y = conv(quantized(x, INPUT), p["w_int8"], 1, 1, 1) * (float(INPUT) / 127) * parameter_steps(p, "w")[:, None, None]
    z = np.maximum(y + p["b"].astype(np.float64)[:, None, None], 0)
    want = conv(quantized(z, 20.0), p["v_int8"], 0, 1, 1) * (20.0 / 127) * parameter_steps(p, "v")[:, None, None]
    # a sum that lies half way between two integers may become either, one step of what lies between
    step = 20.0 / 127 * np.abs(p["v_int8"] * parameter_steps(p, "v")[:, None, None, None]).max()
    assert np.abs(got - want).max() <= 1.01 * step
    assert np.median(np.abs(got - want)) < 1e-4 * np.abs(want).max()
    plain, floats = run(case, {})
    assert CONV not in op_types(floats)
    assert np.abs(got - plain).max() <= 2.02 * step


@bytes_only
def test_products_and_other_shapes():
    (first, p0), (second, p1) = rounded("x", "a", INPUT), rounded("z", "r", 30.0)
    (w, p2), (v, p3) = weight("w", (40, 24), 1), weight("v", (24, 9), 1, seed=1)
    params = p0 | p1 | p2 | p3
    ops = [
        *(*first, *w, *v),
        ("matmul_v2", {"X": "a", "Y": "w"}, {"Out": "y"}, {}),
        ("elementwise_add", {"X": "y", "Y": "b"}, {"Out": "s"}, {"axis": -1}),
        ("hard_swish", {"X": "s"}, {"Out": "z"}, {}),
        *second,
        ("matmul_v2", {"X": "r", "Y": "v"}, {"Out": "out"}, {}),
    ]
    case = PassCase({"x": drawn(3, 5, 40)}, params | {"b": drawn(24)}, ops, ["out"])
    got, optimized = run(case, ALL)
    assert op_types(optimized) == [PRODUCT, PRODUCT]
    y = quantized(case.feeds["x"], INPUT) @ params["w_int8"].astype(np.float64) * (float(INPUT) / 127)
    y = y * parameter_steps(params, "w") + case.params["b"]
    z = y * np.clip(y + 3, 0, 6) / 6
    want = quantized(z, 30.0) @ params["v_int8"].astype(np.float64) * (30.0 / 127) * parameter_steps(params, "v")
    assert np.abs(got - want).max() <= 30.0 / 127 * np.abs(params["v_int8"] * parameter_steps(params, "v")).max()


@bytes_only
def test_who_reads_floats_gets_floats():
    case = two_convolutions()
    case.ops[-1:] = [*case.ops[-1:], ("tanh", {"X": "z"}, {"Out": "t"}, {})]
    case.fetch = ["out", "t"]
    program, scope = case.build(None)
    chosen = select_passes(precisions=ALL)
    optimized = optimize(program.desc, scope, keep=case.fetches(), passes=chosen)
    assert [op.attrs.get("output_step", 0.0) for op in optimized.program.blocks[0].ops if op.type == CONV] == [0.0, 0.0]


@bytes_only
@pytest.mark.skipif(not LIBRARY.has_bfloat16(), reason="this CPU has no bfloat16")
def test_what_stays_float_may_be_bfloat16():
    """Two convolutions of bytes, and one that nobody quantised."""
    case = two_convolutions()
    case.ops += [("conv2d", {"Input": "out", "Filter": "u"}, {"Output": "o"}, {"paddings": [1, 1]})]
    case.params["u"], case.fetch = drawn(8, 8, 3, 3), ["o"]
    got, optimized = run(case, {"int8": None, "bfloat16": None})
    assert op_types(optimized) == [CONV, CONV, "conv2d_post_ops"]
    assert optimized.program.blocks[0].ops[2].attrs["mkldnn_data_type"] == "bfloat16"
    want, _ = run(case, ALL)
    assert 1e-4 < np.abs(got - want).max() / np.abs(want).max() < 1e-2


@bytes_only
def test_users_choose_the_ops():
    for precisions, count in ({}, 0), (ALL, 2), ({"int8": ["conv2d"]}, 2), ({"int8": ["matmul_v2"]}, 0):
        assert op_types(run(two_convolutions(), precisions)[1]).count(CONV) == count


def test_without_the_instructions_all_stays_float(monkeypatch):
    monkeypatch.setattr(type(LIBRARY), "has_int8", lambda self: False)
    assert CONV not in op_types(run(two_convolutions(), ALL)[1])


@bytes_only
@pytest.mark.parametrize("change", ["weights", "bits", "training", "scale"])
def test_what_is_not_quantised_stays_float(change):
    case = two_convolutions("fake" if change in ("bits", "training") else "linear")
    if change == "weights":
        case.ops[:] = [op for op in case.ops if op[2] not in ({"Y": "w"}, {"Y": "v"})]
        case.params.update(w=drawn(24, 16, 3, 3), v=drawn(8, 24, 1, 1))
    elif change == "scale":
        case.params.update(a_scale=np.float32([np.nan]), r_scale=np.float32([0]))
    else:
        for op in case.ops:
            if op[0].startswith("fake"):
                op[3].update({"bit_length": 4} if change == "bits" else {"is_test": False})
                op[1].update({} if change == "bits" else {"InAccum": "one", "InState": "one"})
        case.params["one"] = np.ones(1, np.float32)
    assert CONV not in op_types(run(case, ALL)[1])


def test_the_kernel_without_the_library_agrees():
    case = two_convolutions()
    program, scope = case.build(None)
    optimized = optimize(program.desc, scope, keep=["out"], passes=select_passes(precisions=ALL))
    numpy = oprack.Executor(excluded_libraries=["onednn"])
    (want,) = numpy.run(program, case.feeds, ["out"], scope)
    (got,) = numpy.run(optimized.program, case.feeds, ["out"], scope)
    step = 20.0 / 127 * np.abs(case.params["v_s"]).max()
    assert np.abs(got - want).max() <= 1.01 * step


# Weights --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("greatest", [127, 128, 100, 3, 1])
def test_steps_of_weights_are_found(greatest):
    rng = np.random.default_rng(greatest)
    integers = rng.integers(-greatest, min(greatest, 127) + 1, (6, 200)).astype(np.int8)
    integers[:, 0] = -greatest if greatest == 128 else greatest
    integers[5] = 0
    steps = rng.uniform(0.001, 10, 6).astype(np.float32)
    found = multiples(integers * steps[:, None] * np.float32(1.7) / np.float32(1.3))
    assert found is not None
    got, sizes = found
    np.testing.assert_allclose(got * sizes[:, None], integers * (steps * (1.7 / 1.3))[:, None], rtol=1e-3)
    assert not got[5].any()


def test_other_weights_have_no_steps():
    assert multiples(drawn(4, 100)) is None
    assert multiples(np.float32([[np.inf, 1.0]])) is None


# Settings -------------------------------------------------------------------------------------------------------------
@bytes_only
def test_the_config_asks_for_it(tmp_path):
    case = two_convolutions()
    program, scope = case.build(None)
    save_inference_model(tmp_path / "net", program, ["x"], case.fetches(), scope)
    outputs = {}
    for how in ("plain", "int8", "other ops"):
        config = inference.Config(str(tmp_path / "net.pdmodel"), str(tmp_path / "net.pdiparams"))
        if how != "plain":
            config.enable_mkldnn_int8({"matmul_v2"} if how == "other ops" else ())
        assert config.mkldnn_int8_enabled() == (how != "plain")
        assert ("onednn_int8_conv2d" in config.pass_builder().all_passes()) == (how == "int8")
        (outputs[how],) = create_predictor(config).run([case.feeds["x"]])
    np.testing.assert_array_equal(outputs["plain"], outputs["other ops"])
    assert not np.array_equal(outputs["plain"], outputs["int8"])
