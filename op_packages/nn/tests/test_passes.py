"""Affine ops folded into convolutions and products: the same numbers from fewer ops."""

from __future__ import annotations

import itertools
import tracemalloc
import warnings

import numpy as np
import pytest
from oprack.errors import InvalidArgumentError
from oprack.ir import find_pass, optimize
from oprack.runtime import Executor
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types

RNG = np.random.default_rng(0)
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def normal(*shape):
    return RNG.standard_normal(shape)


def stats(channels):
    """Parameters of a batch_norm."""
    return {
        "scale": normal(channels),
        "shift": normal(channels),
        "mean": normal(channels),
        "variance": RNG.random(channels) + 0.5,
    }


def batch_norm(x, y, **attrs):
    return (
        "batch_norm",
        {"X": x, "Scale": "scale", "Bias": "shift", "Mean": "mean", "Variance": "variance"},
        {"Y": y, "MeanOut": "mean", "VarianceOut": "variance", "SavedMean": "m", "SavedVariance": "v"},
        {"is_test": True} | attrs,
    )


def convolution(kind, layout, groups, padding):
    """(feeds, params, op) of a convolution of 4 channels to 6, or to 4 where it is transposed."""
    filters = normal(4, 6 // groups, 3, 3) if "transpose" in kind else normal(6, 4 // groups, 3, 3)
    x = normal(2, 4, 5, 6)
    if layout == "NHWC":
        x = x.transpose(0, 2, 3, 1).copy()
    attrs = {"groups": groups, "paddings": [padding, padding], "data_format": layout, "strides": [2, 1]}
    return {"x": x}, {"w": filters}, (kind, {"Input": "x", "Filter": "w"}, {"Output": "conv"}, attrs)


CONVS = [
    ("conv2d", "NCHW", 1, 1),
    ("conv2d", "NCHW", 2, 0),
    ("conv2d", "NHWC", 1, 1),
    ("depthwise_conv2d", "NCHW", 2, 1),
    ("conv2d_transpose", "NCHW", 1, 1),
    ("conv2d_transpose", "NCHW", 2, 0),
]


def chain(start, *ops):
    """Ops after each other, each from the last one's output; (type, constant or None, attributes)."""
    last, found = start, []
    for i, (kind, constant, attrs) in enumerate(ops):
        inputs = {"X": last} if constant is None else {"X": last, "Y": constant}
        found.append((kind, inputs, {"Out": f"t{i}"}, attrs))
        last = f"t{i}"
    return found


@pytest.mark.parametrize("kind,layout,groups,padding", CONVS)
@pytest.mark.parametrize("bias", [False, True])
def test_batch_norm_after_a_convolution(kind, layout, groups, padding, bias):
    feeds, params, conv = convolution(kind, layout, groups, padding)
    ops, last = [conv], "conv"
    if bias:
        params["b"] = normal(6)
        ops += chain("conv", ("elementwise_add", "b", {"axis": 1 if layout == "NCHW" else 3}))
        last = "t0"
    case = PassCase(feeds, params | stats(6), [*ops, batch_norm(last, "y", data_layout=layout)])
    done = check_passes(case, "fold_affine_into_conv", **CLOSE)
    assert op_types(done) == [kind, "elementwise_add"] and done.reports[0].matches == 1
    assert {"w", "scale", "shift", "mean", "variance"} <= set(done.unused)


@pytest.mark.parametrize("kind,layout,groups,padding", CONVS)
def test_learnable_affine_blocks_after_a_convolution(kind, layout, groups, padding):
    """A convolution, its bias, and factors and shifts of one element and of one per channel in turn."""
    feeds, params, conv = convolution(kind, layout, groups, padding)
    axis = 1 if layout == "NCHW" else 3
    params |= {"b": normal(6), "one": normal(1), "two": normal(1), "c": normal(6), "d": normal(6)}
    ops = chain(
        "conv",
        ("elementwise_add", "b", {"axis": axis}),
        ("elementwise_mul", "one", {}),
        ("elementwise_add", "two", {}),
        ("elementwise_mul", "c", {"axis": axis}),
        ("elementwise_sub", "d", {"axis": axis}),
        ("scale", None, {"scale": 0.5, "bias": 3.0, "bias_after_scale": False}),
        ("elementwise_div", "two", {}),
    )
    done = check_passes(PassCase(feeds, params, [conv, *ops]), "fold_affine_into_conv", rtol=1e-10, atol=1e-10)
    assert op_types(done) == [kind, "elementwise_add"]


def test_a_shift_leaves_the_weights_alone():
    """No weights are made anew, times one, for what is added behind a bias or in front of a convolution."""
    feeds, params, conv = convolution("conv2d", "NCHW", 1, 0)
    params |= {"b": normal(6), "c": normal(6)}
    behind = chain("conv", ("elementwise_add", "b", {"axis": 1}), ("elementwise_sub", "c", {"axis": 1}))
    done = check_passes(PassCase(feeds, params, [conv, *behind]), "fold_affine_into_conv", **CLOSE)
    assert op_types(done) == ["conv2d", ADD] and "w" not in done.unused
    undone = chain("conv", ("elementwise_add", "b", {"axis": 1}), ("elementwise_sub", "b", {"axis": 1}))
    done = check_passes(PassCase(feeds, params, [conv, *undone]), "fold_affine_into_conv", **CLOSE)
    assert op_types(done) == ["conv2d"] and "w" not in done.unused
    in_front = chain("x", ("elementwise_add", "a", {"axis": 1}))
    conv[1]["Input"] = "t0"
    case = PassCase(feeds, {"w": params["w"], "a": normal(4)}, [*in_front, conv])
    done = check_passes(case, "fold_affine_into_conv", **CLOSE)
    assert op_types(done) == ["conv2d", ADD] and "w" not in done.unused


def test_a_layer_takes_bias_and_activation_at_once():
    """One rewrite does that; an activation behind a second addition stays."""
    feeds, params, conv = convolution("conv2d", "NCHW", 1, 0)
    params["b"] = normal(6)
    bias = ("elementwise_add", "b", {"axis": 1})
    ops = chain("conv", bias, ("relu", None, {}))
    done = check_passes(PassCase(feeds, params, [conv, *ops]), "onednn_fuse_conv2d", **CLOSE)
    assert op_types(done) == ["conv2d_post_ops"] and done.reports[0].matches == 1
    ops = chain("conv", bias, bias, ("relu", None, {}))
    done = check_passes(PassCase(feeds, params, [conv, *ops]), "onednn_fuse_conv2d", **CLOSE)
    assert op_types(done) == ["conv2d_post_ops", ADD, "relu"]


@pytest.mark.parametrize("groups,padding", list(itertools.product([1, 2], [0, 1])))
def test_factors_before_a_convolution(groups, padding):
    """A factor moves into the weights; a shift does so only where padding adds no zeros after it."""
    feeds, params, conv = convolution("conv2d", "NCHW", groups, padding)
    params |= {"a": normal(4), "one": normal(1)}
    conv[1]["Input"] = "t1"
    factors = chain("x", ("elementwise_mul", "a", {"axis": 1}), ("elementwise_mul", "one", {}))
    done = check_passes(PassCase(feeds, params, [*factors, conv]), "fold_affine_into_conv", **CLOSE)
    assert op_types(done) == ["conv2d"]
    shifted = chain("x", ("elementwise_mul", "one", {}), ("elementwise_add", "a", {"axis": 1}))
    done = check_passes(PassCase(feeds, params, [*shifted, conv]), "fold_affine_into_conv", **CLOSE)
    assert op_types(done) == (["elementwise_mul", ADD, "conv2d"] if padding else ["conv2d", ADD])
    params["two"] = normal(1)
    scalars = chain("x", ("elementwise_mul", "one", {}), ("elementwise_add", "two", {}))
    done = check_passes(PassCase(feeds, params, [*scalars, conv]), "fold_affine_into_conv", **CLOSE)
    assert op_types(done) == ([ADD, "conv2d"] if padding else ["conv2d", ADD])


ADD = "elementwise_add"


@pytest.mark.parametrize(
    "what,ops",
    [
        ("training statistics", [batch_norm("conv", "y", is_test=False)]),
        ("a constant along another dim", chain("conv", ("elementwise_mul", "rows", {}))),
        ("a constant that is computed", [("scale", {"X": "one"}, {"Out": "s"}, {"scale": 2.0}),
                                         ("elementwise_mul", {"X": "conv", "Y": "s"}, {"Out": "y"})]),
        ("a bias alone", chain("conv", ("elementwise_add", "b", {"axis": 1}))),
        ("two readers", [*chain("conv", ("elementwise_mul", "one", {})),
                         ("elementwise_add", {"X": "t0", "Y": "conv"}, {"Out": "y"})]),
    ],
)  # fmt: skip
def test_what_is_left_alone(what, ops):
    feeds, params, conv = convolution("conv2d", "NCHW", 1, 1)
    params |= stats(6) | {"rows": normal(6), "one": normal(1), "b": normal(6)}
    done = check_passes(PassCase(feeds, params, [conv, *ops]), "fold_affine_into_conv")
    assert done.reports[0].matches == 0, what


def test_a_fetched_intermediate_is_left_alone():
    feeds, params, conv = convolution("conv2d", "NCHW", 1, 1)
    case = PassCase(feeds, params | {"one": normal(1)}, [conv, *chain("conv", ("elementwise_mul", "one", {}))])
    case.fetch = ["conv", "t0"]
    assert check_passes(case, "fold_affine_into_conv").reports[0].matches == 0
    case.fetch = ["t0"]
    assert check_passes(case, "fold_affine_into_conv", **CLOSE).reports[0].matches == 1


def test_running_statistics_can_still_be_read():
    """batch_norm gives back its statistics; who reads them afterwards reads the parameters."""
    feeds, params, conv = convolution("conv2d", "NCHW", 1, 1)
    after = ("scale", {"X": "mean"}, {"Out": "twice"}, {"scale": 2.0})
    case = PassCase(feeds, params | stats(6), [conv, batch_norm("conv", "y"), after], ["y", "twice"])
    done = check_passes(case, "fold_affine_into_conv", **CLOSE)
    assert op_types(done) == ["conv2d", ADD, "scale"] and "mean" not in done.unused


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", ["mul", "matmul", "matmul_v2"])
def test_batch_norm_after_a_product(kind, bias):
    params = {"w": normal(5, 6), "b": normal(6)} | stats(6)
    ops = [(kind, {"X": "x", "Y": "w"}, {"Out": "product"}), *chain("product", (ADD, "b", {"axis": 1}))]
    ops = [*ops, batch_norm("t0", "y")] if bias else [ops[0], batch_norm("product", "y")]
    done = check_passes(PassCase({"x": normal(3, 5)}, params, ops), "fold_affine_into_matmul", **CLOSE)
    assert op_types(done) == [kind, ADD]


def test_a_product_with_a_transposed_weight_is_left_alone():
    ops = [
        ("matmul_v2", {"X": "x", "Y": "w"}, {"Out": "product"}, {"trans_y": True}),
        *chain("product", ("elementwise_mul", "c", {})),
    ]
    case = PassCase({"x": normal(3, 5)}, {"w": normal(6, 5), "c": normal(6)}, ops)
    assert check_passes(case, "fold_affine_into_matmul").reports[0].matches == 0


@pytest.mark.parametrize(
    "attrs,identity",
    [
        ({"is_test": True, "dropout_implementation": "upscale_in_train"}, True),
        ({"is_test": True, "dropout_implementation": "downgrade_in_infer"}, False),
        ({"is_test": True, "dropout_prob": 0.0}, True),
        ({"is_test": False, "dropout_implementation": "upscale_in_train", "dropout_prob": 0.0}, False),
    ],
)
def test_dropout_that_drops_nothing(attrs, identity):
    ops = [("dropout", {"X": "x"}, {"Out": "d", "Mask": "mask"}, attrs), ("relu", {"X": "d"}, {"Out": "y"}, {})]
    done = check_passes(PassCase({"x": normal(3, 4)}, {}, ops), "remove_identities")
    assert op_types(done) == (["relu"] if identity else ["dropout", "relu"])


def two_convolutions(v, w, first, second, layout="NCHW"):
    x = normal(2, v[1] * first.get("groups", 1), 7, 8)
    x = x.transpose(0, 2, 3, 1).copy() if layout == "NHWC" else x
    ops = [
        ("conv2d", {"Input": "x", "Filter": "v"}, {"Output": "y"}, {"data_format": layout} | first),
        ("conv2d", {"Input": "y", "Filter": "w"}, {"Output": "z"}, {"data_format": layout} | second),
    ]
    return PassCase({"x": x}, {"v": normal(*v), "w": normal(*w)}, ops)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    "v, w, first, second",
    [
        ((8, 4, 1, 1), (5, 8, 1, 1), {}, {}),
        ((8, 4, 3, 3), (5, 8, 1, 1), {"paddings": [1, 1], "strides": [2, 1], "dilations": [1, 2]}, {}),
        ((8, 4, 1, 1), (5, 8, 3, 2), {}, {"paddings": [1, 0, 2, 1], "strides": [2, 1]}),
    ],
    ids=["both", "second", "first"],
)
def test_a_pointwise_convolution_becomes_part_of_its_neighbour(v, w, first, second, layout):
    optimized = check_passes(two_convolutions(v, w, first, second, layout), "merge_pointwise_convs", **CLOSE)
    assert op_types(optimized) == ["conv2d"]


@pytest.mark.parametrize(
    "v, w, first, second",
    [
        ((2, 8, 1, 1), (8, 2, 1, 1), {}, {}),
        ((8, 4, 3, 3), (5, 8, 3, 3), {}, {}),
        ((8, 4, 1, 1), (5, 8, 3, 3), {"paddings": [1, 1]}, {}),
        ((8, 4, 1, 1), (5, 8, 3, 3), {"strides": [2, 2]}, {}),
        ((8, 2, 1, 1), (5, 8, 1, 1), {"groups": 2}, {}),
    ],
    ids=["fewer products apart", "no pointwise one", "padding before", "stride before", "groups"],
)
def test_convolutions_that_stay_two(v, w, first, second):
    optimized = check_passes(two_convolutions(v, w, first, second), "merge_pointwise_convs", **CLOSE)
    assert op_types(optimized) == ["conv2d", "conv2d"]


def conv_then(*ops, **params):
    conv = ("conv2d", {"Input": "x", "Filter": "w"}, {"Output": "y0"}, {})
    return PassCase({"x": normal(2, 3, 5, 5)}, {"w": normal(4, 3, 1, 1), **params}, [conv, *ops])


@pytest.mark.parametrize("name", ["scale", "shift", "mean", "variance"])
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool"])
def test_parameters_of_another_dtype_than_the_result_are_not_folded(name, dtype):
    params = stats(4)
    params[name] = (params[name] * 3 + 4).astype(dtype)
    case = conv_then(batch_norm("y0", "y1"), **params)
    assert op_types(check_passes(case, "fold_affine_into_conv")) == ["conv2d", "batch_norm"]


@pytest.mark.parametrize(
    "name, value, folded",
    [
        *[("variance", -2.0, False), ("variance", np.nan, False), ("variance", np.inf, True)],
        *[("mean", -2.0, True), ("mean", np.nan, False), ("mean", np.inf, False)],
    ],
)
def test_statistics_that_are_none_are_left_to_the_op_and_nothing_warns(name, value, folded):
    params = stats(4)
    params[name][1] = value
    case = conv_then(batch_norm("y0", "y1"), **params)
    program, scope = case.build()
    with warnings.catch_warnings(action="error"):
        done = optimize(program.desc, scope, keep=["y1"], passes=[find_pass("fold_affine_into_conv")])
    assert ("batch_norm" not in op_types(done)) == folded


def test_weights_stay_in_range():
    case = conv_then(("elementwise_mul", {"X": "y0", "Y": "c"}, {"Out": "y1"}, {"axis": 1}), c=np.full(4, 1e200))
    case.params["w"] = case.params["w"] * 1e200
    program, scope = case.build()
    done = optimize(program.desc, scope, keep=["y1"], passes=[find_pass("fold_affine_into_conv")])
    assert op_types(done) == ["conv2d", "elementwise_mul"]


@pytest.mark.parametrize("axis", [10**9, -(10**9), 2**31 - 1])
def test_an_axis_out_of_range_takes_no_memory(axis):
    case = conv_then(("elementwise_mul", {"X": "y0", "Y": "c"}, {"Out": "y1"}, {"axis": 1}), c=normal(4))
    program, scope = case.build()
    program.desc.blocks[0].ops[1].set_attr("axis", axis)
    tracemalloc.start()
    done = optimize(program.desc, scope, keep=["y1"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20 and "elementwise_mul" in op_types(done)
    with pytest.raises(InvalidArgumentError, match="axis"):
        Executor().run(done.program, case.feeds, ["y1"], scope)


# Dropout --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "attrs,dtype,left",
    [
        ({"is_test": True, "dropout_prob": 0.2}, "float32", ["scale"]),
        ({"is_test": True, "dropout_prob": 1.0}, "float32", ["scale"]),
        ({"is_test": True, "dropout_prob": 0.2}, "float64", ["dropout"]),
        ({"is_test": True, "dropout_implementation": "upscale_in_train"}, "float32", ["dropout"]),
        ({"is_test": False, "dropout_prob": 0.0}, "float32", ["dropout"]),
    ],
)
def test_dropout_of_a_test_is_a_factor(attrs, dtype, left):
    x = normal(3, 4).astype(dtype)
    ops = [("dropout", {"X": "x"}, {"Out": "y", "Mask": "mask"}, attrs)]
    done = check_passes(PassCase({"x": x}, {}, ops, ["y"]), "dropout_to_scale")
    assert op_types(done) == left
    if attrs["is_test"] and left == ["scale"]:
        (factor,) = [op.attrs["scale"] for op in done.program.blocks[0].ops]
        assert factor == pytest.approx(1 - attrs["dropout_prob"])
