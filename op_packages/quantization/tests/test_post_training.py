"""Post-training quantisation: scales of what was seen, integers of weights, and what it reports."""

from __future__ import annotations

import json

import numpy as np
import oprack
import pytest
from oprack import inference
from oprack.cli.main import main
from oprack.errors import InvalidArgumentError
from oprack.io import load_inference_model, save_inference_model
from oprack.quantization import choose_precisions, quantize_post_training
from oprack.testing import PassCase
from oprack_quantization.post_training import precision
from oprack_quantization.post_training.scales import BINS, METHODS, Histogram


def drawn(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def net():
    """conv, relu, a product; the convolution's second channel is far smaller than the others."""
    w = drawn(4, 3, 3, 3)
    w[1] /= 1000
    ops = [
        ("conv2d", {"Input": "x", "Filter": "w"}, {"Output": "y"}, {"paddings": [1, 1]}),
        ("relu", {"X": "y"}, {"Out": "r"}, {}),
        ("flatten_contiguous_range", {"X": "r"}, {"Out": "f", "XShape": "s"}, {"start_axis": 1, "stop_axis": 3}),
        ("mul", {"X": "f", "Y": "v"}, {"Out": "out"}, {}),
    ]
    return PassCase({"x": drawn(2, 3, 6, 6)}, {"w": w, "v": drawn(144, 5)}, ops, ["out"])


def feeds(count=3):
    return [{"x": drawn(2, 3, 6, 6, seed=i)} for i in range(count)]


def quantized(**settings):
    program, scope = net().build()
    return program, scope, quantize_post_training(program, scope, feeds(), ["out"], **settings)


def parameter(scope, program, op_type, number, slot):
    found = [op for op in program.blocks[0].ops if op.type == op_type][number]
    return scope.get_var(found.inputs[slot][0]).get().array


@pytest.mark.parametrize("per_channel", [True, False])
def test_weights_are_kept_as_integers(per_channel):
    _, scope, done = quantized(method="abs_max", per_channel=per_channel, least_decibels=-100)
    types = [op.type for op in done.program.blocks[0].ops]
    assert types.count("quantize_linear") == 2 and types.count("dequantize_linear") == 4
    readers = [op for op in done.program.blocks[0].ops if op.type == "conv2d"]
    (made,) = [op for op in done.program.blocks[0].ops if op.outputs.get("Y") == readers[0].inputs["Filter"]]
    kept, scale = (scope.get_var(made.inputs[s][0]).get().array for s in ("X", "Scale"))
    w = net().params["w"].astype(np.float64)
    want = np.abs(w).max(axis=(1, 2, 3)) if per_channel else np.abs(w).max(keepdims=True).reshape(1)
    np.testing.assert_allclose(scale, want, rtol=1e-6)
    assert kept.dtype == np.int8
    np.testing.assert_array_equal(kept, np.rint(127 * w / want.reshape(-1, 1, 1, 1)))
    # a channel that is far smaller than the others keeps its numbers only with a scale of its own
    assert bool(np.abs(kept[1]).max() == 127) == per_channel


def test_scales_follow_from_what_was_seen():
    _, scope, done = quantized(method="abs_max")
    greatest = max(float(np.abs(f["x"]).max()) for f in feeds())
    np.testing.assert_allclose(parameter(scope, done.program, "quantize_linear", 0, "Scale"), [greatest], rtol=1e-6)
    conv = next(layer for layer in done.layers if layer.op_type == "conv2d")
    assert (conv.output, conv.weight, conv.left) == ("y", "w", "")
    np.testing.assert_allclose(conv.scale, greatest, rtol=1e-6)


def test_decibels_are_those_of_the_result():
    program, scope, done = quantized()
    signal = error = 0.0
    executor = oprack.Executor()
    for feed in feeds():
        (want,), (got,) = (executor.run(p, feed, ["out"], scope) for p in (program, done.program))
        signal += float(np.sum(want.astype(np.float64) ** 2))
        error += float(np.sum((want.astype(np.float64) - got) ** 2))
    assert error > 0
    np.testing.assert_allclose(done.outputs["out"], 10 * np.log10(signal / error), rtol=1e-6)
    assert 20 < done.outputs["out"] < 60
    assert [layer.decibels for layer in done.layers] == sorted(layer.decibels for layer in done.layers)


def test_layers_are_left_by_name_and_by_threshold():
    _, _, done = quantized(skip=["v"])
    assert {layer.weight: layer.left for layer in done.layers} == {"w": "", "v": "it was named"}
    _, _, done = quantized(least_decibels=200.0)
    assert all("less than 200 dB" in layer.left for layer in done.layers)
    assert "quantize_linear" not in [op.type for op in done.program.blocks[0].ops]
    assert done.outputs == {"out": np.inf}


def test_convolutions_of_enlarged_maps_stay_floats():
    scale = {"scale": [2.0, 2.0], "interp_method": "nearest", "align_corners": False}
    ops = [
        ("conv2d", {"Input": "x", "Filter": "a"}, {"Output": "small"}, {"strides": [2, 2]}),
        ("conv2d", {"Input": "x", "Filter": "b"}, {"Output": "large"}, {}),
        ("nearest_interp_v2", {"X": "small"}, {"Out": "up"}, scale),
        ("elementwise_add", {"X": "large", "Y": "up"}, {"Out": "sum"}, {"axis": -1}),
        ("conv2d", {"Input": "sum", "Filter": "c"}, {"Output": "out"}, {"paddings": [1, 1]}),
    ]
    params = {"a": drawn(4, 3, 2, 2), "b": drawn(4, 3, 1, 1), "c": drawn(4, 4, 3, 3)}
    program, scope = PassCase({"x": drawn(1, 3, 8, 8)}, params, ops).build()
    for enlarged, left in ((False, {"b", "c"}), (True, set())):
        done = quantize_post_training(program, scope, [{"x": drawn(1, 3, 8, 8)}], ["out"], enlarged=enlarged)
        assert {layer.weight for layer in done.layers if layer.left} == left


@pytest.mark.parametrize("biased", [False, True])
def test_what_becomes_one_with_the_maker_of_an_enlarged_map_stays_floats(biased):
    ops = [
        ("conv2d", {"Input": "x", "Filter": "a"}, {"Output": "low"}, {}),
        *([("elementwise_add", {"X": "low", "Y": "bias"}, {"Out": "sum"}, {"axis": 1})] if biased else []),
        ("conv2d", {"Input": "sum" if biased else "low", "Filter": "b"}, {"Output": "made"}, {}),
        ("nearest_interp_v2", {"X": "made"}, {"Out": "up"}, {"scale": [2.0, 2.0], "align_corners": False}),
        ("conv2d", {"Input": "up", "Filter": "c"}, {"Output": "out"}, {"paddings": [1, 1]}),
    ]
    params = {"a": drawn(12, 8, 1, 1), "b": drawn(3, 12, 1, 1), "c": drawn(4, 3, 3, 3), "bias": drawn(12)}
    params = params if biased else {name: params[name] for name in "abc"}
    for channels, left in ((12, {"a", "b", "c"}), (2, {"b", "c"})):  # few channels in between: two products are cheaper
        params |= {"a": drawn(channels, 8, 1, 1), "b": drawn(3, channels, 1, 1)}
        params |= {"bias": drawn(channels)} if biased else {}
        program, scope = PassCase({"x": drawn(1, 8, 6, 6)}, params, ops).build()
        done = quantize_post_training(program, scope, [{"x": drawn(1, 8, 6, 6)}], ["out"])
        assert {layer.weight for layer in done.layers if layer.left} == left


@pytest.mark.parametrize(
    ("settings", "text"),
    [({"method": "best"}, "expected one of abs_max"), ({"skip": ["no"]}, "'no'"), ({"ops": ["relu"]}, "'relu'")],
)
def test_what_is_wrong_is_said(settings, text):
    with pytest.raises(InvalidArgumentError, match=text):
        quantized(**settings)


# Scales ---------------------------------------------------------------------------------------------------------------
def seen(*arrays):
    histogram = Histogram()
    for array in arrays:
        histogram.add(array)
    return histogram


def test_a_histogram_grows_with_what_it_sees():
    first, second = np.abs(drawn(5000)), 7 * np.abs(drawn(3000, seed=1))
    found = seen(first, second)
    both = np.concatenate([first, second])
    assert found.counts.sum() == both.size and found.end >= both.max() > found.end / 2
    np.testing.assert_allclose(found.greatest, both.max())
    want = np.histogram(both, BINS, (0, found.end))[0]
    # numbers on the edge of two bins may count for either
    assert np.abs(np.cumsum(found.counts) - np.cumsum(want)).max() <= 3


@pytest.mark.parametrize("method", METHODS)
def test_a_few_large_numbers_do_not_stretch_the_scale(method):
    x = drawn(400_000)
    scale = METHODS[method](seen(x, np.float32([40.0])))
    if method == "abs_max":
        assert scale == 40.0
        return
    # the least sum of rounding and cutting off, s^2 / (12 127^2) + (40 - s)^2 / n, is at 13.04
    assert scale == pytest.approx(13.04, rel=0.06) if method == "mse" else 2.0 < scale < 12.0

    def error(s):
        return float(np.mean((np.clip(np.rint(x * 127 / s), -127, 127) * s / 127 - x) ** 2))

    assert error(scale) < error(40.0) / 5


def test_numbers_that_are_all_alike_or_zero():
    assert all(METHODS[m](seen(np.full(100, 3.0, np.float32))) == pytest.approx(3.0, rel=1e-3) for m in METHODS)
    assert seen(np.zeros(10, np.float32), np.float32([np.nan])).greatest == 0


# Weights that are computed --------------------------------------------------------------------------------------------
def sequence_net():
    """A Conv1D as Paddle writes it: the weight goes through unsqueeze2; and a product of two activations."""
    ops = [
        ("unsqueeze2", {"X": "x"}, {"Out": "x4", "XShape": "xs"}, {"axes": [2]}),
        ("unsqueeze2", {"X": "w"}, {"Out": "w4", "XShape": "ws"}, {"axes": [2]}),
        ("conv2d", {"Input": "x4", "Filter": "w4"}, {"Output": "y4"}, {"paddings": [0, 1]}),
        ("squeeze2", {"X": "y4"}, {"Out": "y", "XShape": "ys"}, {"axes": [2]}),
        ("matmul_v2", {"X": "y", "Y": "y"}, {"Out": "out"}, {"trans_y": True}),
    ]
    return PassCase({"x": drawn(2, 3, 20)}, {"w": drawn(4, 3, 3)}, ops, ["out"])


def test_a_weight_that_is_made_of_a_parameter_is_quantised():
    program, scope = sequence_net().build()
    before = [op.type for op in program.blocks[0].ops]
    data = [{"x": drawn(2, 3, 20, seed=i)} for i in range(3)]
    done = quantize_post_training(program, scope, data, ["out"], method="abs_max", per_channel=False)
    assert [op.type for op in program.blocks[0].ops] == before
    ops = done.program.blocks[0].ops
    assert [op.type for op in ops].count("unsqueeze2") == 1 and [layer.left for layer in done.layers] == [""]
    kept = parameter(scope, done.program, "dequantize_linear", 1, "X")
    kept = kept if kept.ndim == 4 else parameter(scope, done.program, "dequantize_linear", 0, "X")
    w = sequence_net().params["w"]
    np.testing.assert_array_equal(kept[:, :, 0], np.rint(127 * (w / np.abs(w).max())))
    assert done.outputs["out"] > 25
    (why,) = done.others.values()
    assert why == "matmul_v2: its weight 'y' is no parameter, but computed by op squeeze2"


def test_weights_that_are_integers_already_stay_so():
    _, scope, done = quantized()
    again = quantize_post_training(done.program, scope, feeds(), ["out"])
    assert not again.layers and [op.type for op in again.program.blocks[0].ops] == [
        op.type for op in done.program.blocks[0].ops
    ]
    assert "its weight" in again.why_nothing() and "computed by op dequantize_linear" in again.why_nothing()


# Precisions -----------------------------------------------------------------------------------------------------------
def fastest_last(self, trials):
    """Times by which those that round least win, so that what is taken does not depend on this machine's."""
    return {name: 1 / (i + 1) for i, name in enumerate(trials)}


@pytest.mark.parametrize("error", [0.5, 0.02, 1e-9])
def test_the_error_of_chosen_precisions_is_within_the_limit(error, tmp_path, monkeypatch):
    monkeypatch.setattr(precision._Trials, "seconds", fastest_last)
    program, scope = net().build()
    done = choose_precisions(program, scope, feeds(), ["out"], error=error)
    save_inference_model(tmp_path / "auto", done.program, ["x"], ["out"], scope)
    config = inference.Config(str(tmp_path / "auto"))
    if "int8" in done.precisions:
        config.enable_mkldnn_int8()
    if "bfloat16" in done.precisions:
        config.enable_mkldnn_bfloat16()
    predictor = inference.create_predictor(config)
    signal = noise = 0.0
    for feed in feeds():
        (want,) = oprack.Executor().run(program, feed, ["out"], scope)
        (got,) = predictor.run([feed["x"]])
        signal, noise = (
            signal + np.sum(want.astype(np.float64) ** 2),
            noise + np.sum((got - want).astype(np.float64) ** 2),
        )
    assert np.sqrt(noise / signal) <= error and done.errors["out"] <= error
    np.testing.assert_allclose(done.errors["out"], np.sqrt(noise / signal), rtol=0.1, atol=1e-6)
    assert bool(done.why_nothing()) == (error == 1e-9 or len(done.seconds) == 1)


def test_layers_that_are_named_keep_their_precision(monkeypatch):
    monkeypatch.setattr(precision._Trials, "seconds", fastest_last)
    program, scope = net().build()
    done = choose_precisions(program, scope, feeds(), ["out"], error=0.9, skip=["w"])
    assert {layer.weight: layer.left for layer in done.layers}["w"] == "it was named"
    with pytest.raises(InvalidArgumentError, match="error is 0; expected a number above 0"):
        choose_precisions(program, scope, feeds(), ["out"], error=0)


# The command ----------------------------------------------------------------------------------------------------------
def test_the_command_chooses_precisions(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(precision._Trials, "seconds", fastest_last)
    program, scope = net().build()
    save_inference_model(tmp_path / "net", program, ["x"], ["out"], scope)
    np.save(tmp_path / "0.npy", feeds()[0]["x"])
    command = ["quantize", str(tmp_path / "net"), "--data", str(tmp_path / "0.npy"), "--precision", "auto"]
    assert main(command) == 3 and "--precision auto and --error belong together" in capsys.readouterr().err
    code = main([*command, "--error", "0.5"])
    printed = capsys.readouterr()
    assert code in (0, 1) and (code == 0) == (tmp_path / "net-auto.pdmodel").exists()
    if code == 0:  # this CPU multiplies in less than float32
        assert "float32: " in printed.out and "ms" in printed.out and "`oprack run --" in printed.out


def test_the_command_writes_a_model(tmp_path, capsys):
    program, scope = net().build()
    save_inference_model(tmp_path / "net", program, ["x"], ["out"], scope)
    files = []
    for i, feed in enumerate(feeds()):
        np.save(tmp_path / f"{i}.npy", feed["x"])
        files.append(str(tmp_path / f"{i}.npy"))
    assert main(["quantize", str(tmp_path / "net"), "--data", *files, "--method", "abs_max", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {layer["weight"] for layer in report["layers"]} == {"w", "v"} and report["outputs"]["out"] > 20
    again = oprack.Scope()
    model = load_inference_model(tmp_path / "net-int8", again)
    (got,) = oprack.Executor().run(model.program, feeds()[0], model.fetch_names, again)
    (want,) = oprack.Executor().run(program, feeds()[0], ["out"], scope)
    assert 0 < np.abs(got - want).max() < 0.1 * np.abs(want).max()
    assert main(["quantize", str(tmp_path / "net"), "--data", *files, "--out", str(tmp_path / "o"), "--skip", "v"]) == 0
    text = capsys.readouterr().out
    assert "float32: it was named" in text and "int8" in text and (tmp_path / "o.pdmodel").exists()


def test_the_command_says_when_nothing_was_quantised(tmp_path, capsys):
    program, scope = PassCase({"x": drawn(2, 3)}, {}, [("relu", {"X": "x"}, {"Out": "out"}, {})]).build()
    save_inference_model(tmp_path / "relu", program, ["x"], ["out"], scope)
    program, scope = net().build()
    save_inference_model(tmp_path / "net", program, ["x"], ["out"], scope)
    np.save(tmp_path / "relu.npy", drawn(2, 3))
    np.save(tmp_path / "net.npy", drawn(2, 3, 6, 6))
    for name, more, why in (
        ("relu", [], "the program has no convolution or product"),
        ("net", ["--least-db", "200"], "less than 200 dB (2 ops)"),
    ):
        data, out = str(tmp_path / f"{name}.npy"), str(tmp_path / "out")
        assert main(["quantize", str(tmp_path / name), "--data", data, "--out", out, *more]) == 1
        printed = capsys.readouterr()
        assert f"nothing was quantised, and nothing is written: {why}" in printed.err and "dB above" not in printed.out
        assert not (tmp_path / "out.pdmodel").exists()
