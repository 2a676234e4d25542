"""Nets that hear bit by bit: a step of an LSTM, and small ops between primitives, as one native call."""

from __future__ import annotations

import numpy as np
import pytest
from oprack import inference
from oprack.io import save_inference_model
from oprack.ir import optimize
from oprack.runtime import Executor
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import find_pass, op_types
from oprack_onednn.c.runner import RUNNER, _Stretch
from oprack_onednn.dnnl.library import LIBRARY

LIBRARY.usable()
needs_runner = pytest.mark.skipif(RUNNER.run is None, reason=f"the runner is not there: {RUNNER.problem}")
PASS = "onednn_fuse_recurrent"
CLOSE = dict(rtol=1e-5, atol=1e-5)
INPUTS, SIZE = 24, 16


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def weights(inputs=INPUTS, size=SIZE, gates=4):
    shapes = {"wx": (gates * size, inputs), "wh": (gates * size, size), "bx": (gates * size,), "bh": (gates * size,)}
    return {name: normal(*shape) * np.float32(0.3) for name, shape in shapes.items()}


def layer(x="x", h="h", c="c", mode="LSTM", **attrs):
    """The op rnn over one layer, with its results out, h1 and c1."""
    states = [h, c] if mode == "LSTM" else [h]
    slots = {"Input": x, "PreState": states, "WeightList": ["wx", "wh", "bx", "bh"]}
    given = dict(mode=mode, input_size=INPUTS, hidden_size=SIZE, num_layers=1, is_test=True) | attrs
    after = [f"{name}1" for name in states]
    return "rnn", slots, {"Out": "out", "State": after, "Reserve": "reserve"}, given


def by_hand(x, h, c, wx, wh, bx, bh):
    i, f, g, o = np.split(x @ wx.T + h @ wh.T + bx + bh, 4, axis=-1)
    i, f, o = (1 / (1 + np.exp(-gate.astype(np.float64))) for gate in (i, f, o))
    c = f * c + i * np.tanh(g)
    return o * np.tanh(c), c


def a_step(batch, fetch, **attrs):
    """A step over x [batch, INPUTS], which the program makes [1, batch, INPUTS]."""
    feeds = {"rows": normal(batch, INPUTS), "h0": normal(batch, SIZE, seed=1), "c0": normal(batch, SIZE, seed=2)}
    wide = {"rows": "x", "h0": "h", "c0": "c"}
    ops = [("unsqueeze2", {"X": a}, {"Out": b, "XShape": f"{b}s"}, {"axes": [0]}) for a, b in wide.items()]
    return PassCase(feeds, weights(), [*ops, layer(**attrs)], fetch)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("fetch", [["h1", "c1"], ["out", "c1"], ["out", "h1", "c1"]], ids="-".join)
def test_one_step_is_two_products_and_the_gates(batch, fetch):
    case = a_step(batch, fetch)
    check_passes(case, PASS, **CLOSE)
    program, scope = case.build()
    optimized = optimize(program.desc, scope, keep=fetch, passes=[find_pass(PASS)])
    assert op_types(optimized)[-1] == ("rnn" if {"out", "h1"} <= set(fetch) else "onednn_lstm_step")
    h, c = by_hand(*(case.feeds[n][None] for n in ("rows", "h0", "c0")), *case.params.values())
    want = {"out": h, "h1": h, "c1": c}
    for executor in (Executor(), Executor(excluded_libraries=["onednn"])):
        for _ in range(3):
            found = executor.run(optimized.program, case.feeds, fetch, scope)
            for name, got in zip(fetch, found, strict=True):
                np.testing.assert_allclose(got, want[name], **CLOSE)


def test_several_steps_and_other_cells_stay():
    for rows, mode, gates in (((5, 2, INPUTS), "LSTM", 4), ((1, 2, INPUTS), "GRU", 3)):
        feeds = {"x": normal(*rows), "h": normal(1, 2, SIZE), "c": normal(1, 2, SIZE)}
        case = PassCase(feeds, weights(gates=gates), [layer(mode=mode)], ["out", "h1"])
        assert op_types(check_passes(case, PASS, **CLOSE)) == ["rnn"]


@pytest.mark.parametrize("axis, places", [(1, [3, 2, 1, 0, 1, 4]), (-1, [0, 0, 6]), (2, [5])])
def test_parts_at_known_places_are_taken(axis, places):
    x = normal(2, 5, 7)
    ops = [("gather", {"X": "x", "Index": "i"}, {"Out": "y"}, {"axis": axis}), ("relu", {"X": "y"}, {"Out": "z"})]
    case = PassCase({"x": x}, {"i": np.array(places)}, ops)
    optimized = check_passes(case, PASS)
    assert op_types(optimized) == ["onednn_take", "relu"]
    for _ in range(3):
        (got,) = Executor().run(optimized.program, case.feeds, ["z"], case.build()[1])
        np.testing.assert_array_equal(got, np.maximum(np.take(x, places, axis), 0))


@pytest.mark.parametrize("axis, places", [(1, [0, 5]), (1, [-1]), (0, [1])])
def test_places_that_may_not_be_there_stay_with_gather(axis, places):
    ops = [("gather", {"X": "x", "Index": "i"}, {"Out": "y"}, {"axis": axis})]
    case = PassCase({"x": normal(2, 5)}, {"i": np.array(places)}, ops)
    program, scope = case.build()
    optimized = optimize(program.desc, scope, keep=["y"], passes=[find_pass(PASS)])
    assert op_types(optimized) == ["gather"]


# All of it ------------------------------------------------------------------------------------------------------------
def hearing(folder, samples=96):
    """A net as those that find speech: mirrored edges, bands and their powers, a step of an LSTM, its states as one."""

    def reshaped(x, y, shape):
        return "reshape2", {"X": x}, {"Out": y, "XShape": f"{y}.s"}, {"shape": shape}

    def part(x, y, axis, start, end):
        return "slice", {"Input": x}, {"Out": y}, {"axes": [axis], "starts": [start], "ends": [end]}

    def conv(x, w, y, strides=(1, 1)):
        return "conv2d", {"Input": x, "Filter": w}, {"Output": y}, {"strides": list(strides)}

    places = [*range(samples), *range(samples - 2, samples - 18, -1)]
    params = weights() | {"i": np.array(places), "bands": normal(2 * INPUTS, 1, 1, 16) * np.float32(0.2)}
    params |= {"w": normal(INPUTS, INPUTS, 1, len(places) // 16) * np.float32(0.1), "v": normal(1, SIZE, 1, 1)}
    ops = [
        ("gather", {"X": "x", "Index": "i"}, {"Out": "padded"}, {"axis": 1}),
        reshaped("padded", "image", [1, 1, 1, -1]),
        conv("image", "bands", "all", (1, 16)),
        *(part("all", "real", 1, 0, INPUTS), part("all", "unreal", 1, INPUTS, 2 * INPUTS)),
        *(("square", {"X": name}, {"Out": f"{name}2"}) for name in ("real", "unreal")),
        ("elementwise_add", {"X": "real2", "Y": "unreal2"}, {"Out": "power"}),
        ("sqrt", {"X": "power"}, {"Out": "size"}),
        conv("size", "w", "heard"),
        reshaped("heard", "xs", [1, 1, INPUTS]),
        *(part("state", name, 0, k, k + 1) for k, name in enumerate("hc")),
        layer("xs"),
        ("concat", {"X": ["h1", "c1"]}, {"Out": "after"}, {"axis": 0}),
        ("relu", {"X": "h1"}, {"Out": "shown"}),
        reshaped("shown", "point", [1, SIZE, 1, 1]),
        conv("point", "v", "found"),
    ]
    feeds = {"x": normal(1, samples), "state": np.zeros((2, 1, SIZE), np.float32)}
    program, scope = PassCase(feeds, params, ops).build()
    save_inference_model(str(folder / "net"), program, list(feeds), ["found", "after"], scope)
    config = inference.Config(str(folder / "net.pdmodel"), str(folder / "net.pdiparams"))
    return inference.create_predictor(config), program, scope


@needs_runner
def test_a_net_that_hears_is_one_native_call(tmp_path, monkeypatch):
    predictor, program, scope = hearing(tmp_path)
    counts, run = [], RUNNER.run
    monkeypatch.setattr(RUNNER, "run", lambda p: counts.append(_Stretch.from_address(p).chain_count) or run(p))
    plain, state = Executor(prepared=False, excluded_libraries=["onednn"]), np.zeros((2, 1, SIZE), np.float32)
    odd = normal(1, 96, seed=40)
    odd[0, 3] = np.nan
    for x in (*(normal(1, 96, seed=i) for i in range(6)), odd, normal(1, 96, seed=50)):
        counts.clear()
        found = predictor.call([x, state])
        want = plain.run(program, {"x": x, "state": state}, ["found", "after"], scope)
        for got, expected in zip(found, want, strict=True):
            np.testing.assert_allclose(got, expected, **CLOSE)
        state = state if np.isnan(want[1]).any() else want[1]
    assert len(counts) == 1 and counts[0] > 9, counts
    kept = found[1].copy()
    predictor.call([odd, state])
    np.testing.assert_array_equal(found[1], kept)  # what a run gave is the caller's own
