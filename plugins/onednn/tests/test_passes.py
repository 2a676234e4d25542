"""Passes: what follows a convolution or product is taken in, and the program computes the same."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack.ir import optimize, select_passes
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types
from oprack_nn.ops.post_ops import ACTIVATIONS, attributes, encode
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.dnnl.library import LIBRARY

CLOSE = dict(rtol=1e-5, atol=1e-5)


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def conv_case(*ops, op_type="conv2d", groups=1, image=(2, 6, 9, 10), **params):
    w = normal(12, image[1] // groups, 3, 3)
    attrs = {"paddings": [1, 1], "strides": [2, 2], "groups": groups}
    conv = (op_type, {"Input": "x", "Filter": "w"}, {"Output": "y0"}, attrs)
    return PassCase({"x": normal(*image)}, {"w": w, **params}, [conv, *ops])


def after(op_type, i, attrs=None, **inputs):
    slots = {"X": f"y{i}"} | inputs
    return (op_type, slots, {"Out": f"y{i + 1}"}, attrs or {})


def texts(optimized, op_type):
    return [op.attrs["post_ops"] for op in optimized.program.blocks[0].ops if op.type == op_type]


@pytest.mark.primitives("conv2d")
def test_a_convolution_takes_in_all_that_follows():
    case = conv_case(
        after("elementwise_add", 0, {"axis": 1}, Y="b"),
        after("hard_swish", 1),
        after("scale", 2, {"scale": 0.5, "bias": 0.25, "bias_after_scale": False}),
        after("relu6", 3),
        b=normal(12),
    )
    optimized = check_passes(case, "onednn_fuse_conv2d", **CLOSE)
    assert op_types(optimized) == ["conv2d_post_ops"]
    assert texts(optimized, "conv2d_post_ops") == [["hard_swish 6.0 6.0 3.0", "scale 0.5 0.25 0.0", "relu6 6.0"]]


@pytest.mark.parametrize(
    ("view", "attrs"),
    [
        ("squeeze2", {"axes": [2]}),
        ("unsqueeze2", {"axes": [0]}),
        ("reshape2", {"shape": [0, -1, 5]}),
        ("flatten_contiguous_range", {"start_axis": 1, "stop_axis": 3}),
        ("transpose2", {"axis": [0, 2, 3, 1]}),
    ],
)
@pytest.mark.primitives("conv2d")
def test_activations_behind_a_view(view, attrs):
    moved = (view, {"X": "y0"}, {"Out": "y1", "XShape": "seen"}, attrs)
    case = conv_case(moved, after("relu", 1), image=(2, 6, 1, 10))
    optimized = check_passes(case, "onednn_fuse_conv2d", **CLOSE)
    assert op_types(optimized) == ["conv2d_post_ops", view]
    assert texts(optimized, "conv2d_post_ops") == [["relu"]]


@pytest.mark.parametrize("shape", [(12,), (12, 1, 1), (1, 12, 1, 1)], ids=str)
@pytest.mark.primitives("conv2d")
def test_bias_in_every_shape(shape):
    bias = after("elementwise_add", 0, {"axis": 1 if len(shape) < 4 else -1}, Y="b")
    optimized = check_passes(conv_case(bias, b=normal(*shape)), "onednn_fuse_conv2d", **CLOSE)
    assert op_types(optimized) == ["conv2d_post_ops"]


def test_what_is_no_bias_stays():
    wide = check_passes(conv_case(after("elementwise_add", 0, Y="b"), b=normal(5)), "onednn_fuse_conv2d", **CLOSE)
    assert op_types(wide) == ["conv2d", "elementwise_add"]
    late = conv_case(after("relu", 0), after("elementwise_add", 1, {"axis": 1}, Y="b"), b=normal(12))
    assert op_types(check_passes(late, "onednn_fuse_conv2d", **CLOSE)) == ["conv2d_post_ops", "elementwise_add"]


@pytest.mark.primitives("conv2d")
def test_a_depthwise_convolution():
    case = conv_case(after("relu", 0), op_type="depthwise_conv2d", groups=6)
    assert op_types(check_passes(case, "onednn_fuse_conv2d", **CLOSE)) == ["conv2d_post_ops"]


@pytest.mark.parametrize(
    "w, attrs",
    [
        ((6, 5, 2, 2), {"strides": [2, 2]}),
        ((6, 5, 3, 3), {"strides": [2, 2], "paddings": [1, 1], "output_padding": [1, 0]}),
        ((6, 2, 3, 3), {"groups": 2, "dilations": [2, 1]}),
    ],
    ids=str,
)
@pytest.mark.parametrize("excluded", [(), ("onednn",)])
@pytest.mark.primitives("conv2d_transpose")
def test_a_transposed_convolution(w, attrs, excluded):
    outputs = w[1] * attrs.get("groups", 1)
    conv = ("conv2d_transpose", {"Input": "x", "Filter": "w"}, {"Output": "y0"}, attrs)
    ops = [conv, after("elementwise_add", 0, {"axis": 1}, Y="b"), after("sigmoid", 1)]
    case = PassCase({"x": normal(2, 6, 9, 10)}, {"w": normal(*w), "b": normal(outputs)}, ops)
    optimized = check_passes(case, "onednn_fuse_conv2d", **CLOSE)
    assert op_types(optimized) == ["conv2d_transpose_post_ops"]
    program, scope = case.build()
    passes = [p for p in select_passes() if p.name == "onednn_fuse_conv2d"]
    fused = optimize(program.desc, scope, keep=case.fetches(), passes=passes).program
    executor = oprack.Executor(excluded_libraries=excluded)
    (want,), (got,) = (executor.run(p, case.feeds, case.fetches(), scope) for p in (program, fused))
    np.testing.assert_allclose(got, want, **CLOSE)


def test_channels_last_programs_are_left_alone():
    conv = ("conv2d", {"Input": "x", "Filter": "w"}, {"Output": "y0"}, {"data_format": "NHWC"})
    case = PassCase({"x": normal(1, 8, 8, 3)}, {"w": normal(4, 3, 3, 3)}, [conv, after("relu", 0)])
    assert op_types(check_passes(case, "onednn_fuse_conv2d", **CLOSE)) == ["conv2d", "relu"]


@pytest.mark.primitives("conv2d")
def test_a_residual_comes_from_anywhere_before():
    ops = [
        ("relu", {"X": "x"}, {"Out": "r"}),
        ("conv2d", {"Input": "x", "Filter": "w"}, {"Output": "y0"}, {"paddings": [1, 1]}),
        ("elementwise_add", {"X": "r", "Y": "y0"}, {"Out": "y1"}),
        after("relu", 1),
    ]
    case = PassCase({"x": normal(2, 6, 9, 10)}, {"w": normal(6, 6, 3, 3)}, ops)
    optimized = check_passes(case, "onednn_fuse_conv2d", **CLOSE)
    assert op_types(optimized) == ["relu", "conv2d_post_ops"]
    assert texts(optimized, "conv2d_post_ops") == [["residual", "relu"]]


def test_a_result_that_others_read_stays():
    case = conv_case(after("relu", 0))
    case.fetch = ["y0", "y1"]
    assert op_types(check_passes(case, "onednn_fuse_conv2d", **CLOSE)) == ["conv2d", "relu"]


@pytest.mark.parametrize("op_type", ["mul", "matmul", "matmul_v2"])
@pytest.mark.primitives("fused")
@pytest.mark.usefixtures("constants")
def test_a_product_takes_in_all_that_follows(op_type):
    product = (op_type, {"X": "x", "Y": "w"}, {"Out": "y0"})
    ops = [product, after("elementwise_add", 0, Y="b"), after("tanh", 1), after("elementwise_add", 2, Y="x")]
    params = {"w": normal(64, 64), "b": normal(64)}
    case = PassCase({"x": normal(40, 64)}, params, ops)
    optimized = check_passes(case, "onednn_fuse_matmul", **CLOSE)
    assert op_types(optimized) == ["matmul_post_ops"]
    assert texts(optimized, "matmul_post_ops") == [["tanh", "residual"]]


@pytest.mark.primitives("fused")
@pytest.mark.usefixtures("constants")
def test_products_of_batches():
    ops = [("matmul_v2", {"X": "x", "Y": "w"}, {"Out": "y0"}), after("elementwise_add", 0, Y="b"), after("swish", 1)]
    case = PassCase({"x": normal(3, 20, 64)}, {"w": normal(64, 50), "b": normal(50)}, ops)
    assert op_types(check_passes(case, "onednn_fuse_matmul", **CLOSE)) == ["matmul_post_ops"]
    ops[0] = ("matmul_v2", {"X": "x", "Y": "w"}, {"Out": "y0"}, {"trans_x": True})
    images = np.ascontiguousarray(normal(3, 20, 64)).transpose(0, 2, 1)
    for x in (images, normal(3, 64, 20)):
        case = PassCase({"x": x}, {"w": normal(64, 50), "b": normal(50)}, ops)
        assert op_types(check_passes(case, "onednn_fuse_matmul", **CLOSE)) == ["matmul_post_ops"]
    ops[0] = ("matmul_v2", {"X": "x", "Y": "w"}, {"Out": "y0"}, {"trans_y": True})
    case = PassCase({"x": normal(3, 20, 64)}, {"w": normal(50, 64), "b": normal(50)}, ops)
    assert op_types(check_passes(case, "onednn_fuse_matmul", **CLOSE))[0] == "matmul_v2"


@pytest.mark.parametrize("op_type", ACTIVATIONS)
@pytest.mark.primitives("conv2d")
def test_every_activation(op_type):
    proto = oprack.op_info(op_type).proto.attrs
    values = [proto[name].default for name in ACTIVATIONS[op_type]]
    text = encode(op_type, values)
    assert attributes(text) == (op_type, dict(zip(ACTIVATIONS[op_type], map(float, values), strict=True)))
    assert op_types(check_passes(conv_case(after(op_type, 0)), "onednn_fuse_conv2d", **CLOSE)) == ["conv2d_post_ops"]


def test_an_activation_that_onednn_has_not_stays():
    case = conv_case(after("hard_swish", 0, {"threshold": 6.0, "scale": 5.0, "offset": 3.0}))
    assert op_types(check_passes(case, "onednn_fuse_conv2d", **CLOSE)) == ["conv2d", "hard_swish"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("excluded", [(), ("onednn",)])
def test_fused_ops_run_on_numpy_as_well(monkeypatch, dtype, excluded):
    case = conv_case(after("elementwise_add", 0, {"axis": 1}, Y="b"), after("swish", 1), b=normal(12))
    case.feeds, case.params = ({k: v.astype(dtype) for k, v in d.items()} for d in (case.feeds, case.params))
    program, scope = case.build()
    (want,) = oprack.Executor(excluded_libraries=("onednn",)).run(program, case.feeds, case.fetches(), scope)
    passes = [p for p in select_passes() if p.name == "onednn_fuse_conv2d"]
    optimized = optimize(program.desc, scope, keep=case.fetches(), passes=passes)
    if excluded or dtype == "float64":
        monkeypatch.setattr(PrimitiveChain, "run", lambda *a: pytest.fail("oneDNN ran"))
    executor = oprack.Executor(excluded_libraries=excluded)
    (got,) = executor.run(optimized.program, case.feeds, case.fetches(), scope)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, want, **CLOSE)


def test_a_fused_convolution_that_onednn_refuses_runs_step_by_step(monkeypatch):
    case = conv_case(after("elementwise_add", 0, {"axis": 1}, Y="b"), after("relu", 1), b=normal(12))
    monkeypatch.setattr("oprack_onednn.kernels.conv2d.find_primitive", lambda *a: None)
    assert op_types(check_passes(case, "onednn_fuse_conv2d", **CLOSE)) == ["conv2d_post_ops"]


def test_squeeze_and_excitation_sums_in_parts():
    """1x1 images take another way, with the same numbers."""
    conv = ("conv2d", {"Input": "x", "Filter": "w"}, {"Output": "y0"}, {})
    ops = [conv, after("elementwise_add", 0, {"axis": 1}, Y="b"), after("hard_sigmoid", 1)]
    params = {"w": normal(24, 96, 1, 1), "b": normal(24)}
    check_passes(PassCase({"x": normal(3, 96, 1, 1)}, params, ops), "onednn_fuse_conv2d", **CLOSE)


def test_passes_do_nothing_where_the_library_does_not_serve(monkeypatch):
    monkeypatch.setattr(LIBRARY, "ready", False)
    monkeypatch.setattr(LIBRARY, "problem", "as a test wants it")
    assert not [p for p in select_passes() if p.library == "onednn"]


def test_passes_do_nothing_where_the_library_is_left_out():
    assert [p for p in select_passes() if p.library == "onednn"]
    assert not [p for p in select_passes(excluded_libraries=("onednn",)) if p.library == "onednn"]


@pytest.mark.parametrize("op_type", ["elementwise_add", "elementwise_mul"])
def test_a_convolution_and_itself(op_type):
    case = conv_case(after(op_type, 0, {"axis": -1}, Y="y0"), after("relu", 1))
    assert op_types(check_passes(case, "onednn_fuse_conv2d", **CLOSE))[0] == "conv2d"


@pytest.mark.parametrize("dtype", ["int8", "float64"])
@pytest.mark.parametrize("which", ["w", "v"])
def test_filters_of_another_dtype_are_refused_as_before(dtype, which):
    ops = [
        ("conv2d", {"Input": "x", "Filter": "w"}, {"Output": "y"}, {}),
        ("conv2d", {"Input": "y", "Filter": "v"}, {"Output": "z"}, {"paddings": [1, 1]}),
    ]
    params = {"w": normal(8, 8, 1, 1), "v": normal(8, 8, 3, 3)}
    params[which] = (params[which] * 4).astype(dtype)
    case = PassCase({"x": normal(2, 8, 16, 16)}, params, ops)
    program, scope = case.build()
    done = optimize(program.desc, scope, keep=["z"])
    assert op_types(done) == ["conv2d", "conv2d"]
    results = []
    for one in (program, done.program):
        try:
            (z,) = oprack.Executor().run(one, case.feeds, ["z"], scope)
            results.append((z.dtype, z.tobytes()))
        except oprack.errors.OprackError as error:
            results.append((type(error), ""))
    assert results[0] == results[1]
