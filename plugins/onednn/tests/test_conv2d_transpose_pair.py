"""Transposed convolutions that make tiles of tiles: as one op they give what they gave one by one."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack.inference import Config, create_predictor
from oprack.io import save_inference_model
from oprack.ir import optimize, select_passes
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.kernels import conv2d_transpose_pair

PASS = "onednn_pair_conv2d_transpose"
CLOSE = dict(rtol=1e-4, atol=1e-5)


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def transposed(x, y, w, strides, **attrs):
    return ("conv2d_transpose", {"Input": x, "Filter": w}, {"Output": y}, {"strides": list(strides)} | attrs)


def pair(n=2, size=(5, 7), first=(2, 2), second=(2, 2), channels=(6, 8, 1), bias=True, **attrs):
    c, k, outputs = channels
    params = {"w": normal(c, k, *first), "v": normal(k, outputs, *second)}
    ops = [transposed("x", "y0", "w", first), transposed("y1", "y2", "v", second, **attrs)]
    if bias:
        params |= {"b": normal(k), "d": normal(outputs)}
        rows = {"y0": "b", "y2": "d"}
        add = [("elementwise_add", {"X": x, "Y": b}, {"Out": x + "b"}, {"axis": 1}) for x, b in rows.items()]
        ops = [ops[0], add[0], ("relu", {"X": "y0b"}, {"Out": "y1"}), ops[1], add[1]]
        ops.append(("sigmoid", {"X": "y2b"}, {"Out": "y3"}))
    else:
        ops.insert(1, ("relu", {"X": "y0"}, {"Out": "y1"}))
    return PassCase({"x": normal(n, c, *size)}, params, ops)


@pytest.fixture(params=[1 << 19, 1000], ids=["at once", "in parts"])
def on_onednn(request, monkeypatch, constants):
    """No step goes to other kernels."""
    monkeypatch.setattr(conv2d_transpose_pair, "by_steps", lambda *a: pytest.fail("oneDNN did not serve"))
    monkeypatch.setattr(conv2d_transpose_pair, "_BETWEEN", request.param)


@pytest.mark.usefixtures("on_onednn")
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("windows", [((2, 2), (2, 2)), ((2, 3), (1, 2)), ((1, 1), (4, 2))], ids=str)
@pytest.mark.parametrize("outputs", [1, 3, 20])
@pytest.mark.parametrize("bias", [True, False])
def test_tiles_of_tiles(n, windows, outputs, bias):
    case = pair(n, first=windows[0], second=windows[1], channels=(6, 8, outputs), bias=bias)
    optimized = check_passes(case, "onednn_fuse_conv2d", PASS, **CLOSE)
    assert op_types(optimized) == ["onednn_conv2d_transpose_pair"]


@pytest.mark.primitives("conv2d_transpose_pair")
@pytest.mark.usefixtures("constants")
def test_convolutions_with_nothing_between():
    ops = [transposed("x", "y0", "w", (2, 2)), transposed("y0", "y1", "v", (2, 2))]
    case = PassCase({"x": normal(1, 6, 5, 7)}, {"w": normal(6, 8, 2, 2), "v": normal(8, 3, 2, 2)}, ops)
    assert op_types(check_passes(case, PASS, **CLOSE)) == ["onednn_conv2d_transpose_pair"]


@pytest.mark.parametrize(
    "attrs", [{"paddings": [1, 1]}, {"output_padding": [1, 1], "strides": [3, 3]}, {"dilations": [2, 2]}], ids=str
)
def test_what_is_left_alone(attrs):
    case = pair(bias=False)
    case.ops[-1][3].update(attrs)
    assert len(op_types(check_passes(case, "onednn_fuse_conv2d", PASS, **CLOSE))) == 2


def test_an_image_between_that_others_read_stays():
    case = pair()
    case.fetch = ["y1", "y3"]
    types = op_types(check_passes(case, "onednn_fuse_conv2d", PASS, **CLOSE))
    assert types == ["conv2d_transpose_post_ops"] * 2


@pytest.mark.parametrize("excluded", [(), ("onednn",)])
def test_it_runs_step_by_step_as_well(monkeypatch, excluded):
    """Weights that may change are not packed; without oneDNN all is NumPy's."""
    case = pair()
    program, scope = case.build()
    names = ("onednn_fuse_conv2d", PASS)
    passes = [p for p in select_passes() if p.name in names]
    fused = optimize(program.desc, scope, keep=case.fetches(), passes=passes).program
    assert [op.type for op in fused.blocks[0].ops] == ["onednn_conv2d_transpose_pair"]
    (want,) = oprack.Executor(excluded_libraries=("onednn",)).run(program, case.feeds, case.fetches(), scope)
    if excluded:
        monkeypatch.setattr(PrimitiveChain, "run", lambda *a: pytest.fail("oneDNN ran"))
    monkeypatch.setattr(conv2d_transpose_pair.PairPrimitive, "run", lambda *a: pytest.fail("it ran as one op"))
    (got,) = oprack.Executor(excluded_libraries=excluded).run(fused, case.feeds, case.fetches(), scope)
    np.testing.assert_allclose(got, want, **CLOSE)


@pytest.mark.primitives("conv2d_transpose_pair")
def test_in_a_predictor(tmp_path):
    """Its parameters are constant, and the op keeps its primitive."""
    case = pair()
    program, scope = case.build()
    save_inference_model(tmp_path / "model", program, ["x"], case.fetches(), scope)
    (want,) = oprack.Executor().run(program, case.feeds, case.fetches(), scope)
    predictor = create_predictor(Config(str(tmp_path / "model.pdmodel"), str(tmp_path / "model.pdiparams")))
    for n in (2, 2, 1):
        (got,) = predictor.run([case.feeds["x"][:n]])
        np.testing.assert_allclose(got, want[:n], **CLOSE)
