"""Programs written as models: read again, run by ONNX's reference, and by ONNX Runtime."""

from __future__ import annotations

import math
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.checker
import onnx.reference
import onnxruntime
import oprack
import pytest
from exported_cases import cases_of, outcome
from oprack import Executor, InputSpec, io, to_program
from oprack import functional as F
from oprack.cli.main import main
from oprack.desc import ProgramDesc
from oprack.tensor import Scope
from oprack.types import VarType
from oprack_onnx import backend
from oprack_onnx.export.expressions import Expr
from oprack_onnx.export.graph import Graph
from oprack_onnx.export.nets.polygons import polygon_overlaps
from oprack_onnx.export.program import export_loaded

ZOO = Path(__file__).parents[3] / "tests" / "data" / "zoo"
sys.path.append(str(Path(__file__).parents[3] / "tests" / "zoo"))

import compare  # noqa: E402
import distance as distances  # noqa: E402

TOLERANCES = {"crnn_int8": 5e-2}
"""What lies between two steps of 8 bits is rounded to the one or the other by its last bit, as tests/zoo says."""


def nets() -> list[str]:
    return sorted(p.name for p in ZOO.iterdir() if p.is_dir())


@pytest.fixture(params=nets())
def written(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[onnx.ModelProto, list[str], Path]:
    folder = shutil.copytree(ZOO / request.param, tmp_path / request.param)
    compare.remake(folder)
    scope = Scope()
    model, lacking = export_loaded(io.load_inference_model(folder / "model", scope), scope)
    return model, lacking, folder


def test_a_net_of_the_zoo_is_a_model_that_answers_as_paddle(written):
    model, lacking, folder = written
    assert not lacking
    with np.load(folder / "io.npz") as found:
        feeds = {key.removeprefix("in/"): found[key] for key in found if key.startswith("in/")}
        wanted = [found[key] for key in sorted(found) if key.startswith("out/")]
    feeds = {i.name: feeds[i.name] for i in model.graph.input}
    answers = [backend.OprackRep(model).run(feeds)]
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    answers.append(session.run(None, feeds))
    for found in answers:
        for got, want in zip(found, wanted, strict=True):
            assert distances.distance(got, want) < TOLERANCES.get(folder.name, 1e-4)


def test_sequences_are_rows_with_offsets_beside_them():
    """A gru over LoD, and the best path of a CRF: what Paddle gave for a LoD of its own."""
    found = [outcome(op, case) for op in ("gru", "lstm", "crf_decoding", "sequence_pool") for case in cases_of(op)]
    assert found and all(o.kind == "agrees" for o in found), [o for o in found if o.kind != "agrees"]


def test_turned_boxes_share_what_geometry_says():
    """A square and the same one turned by an eighth share an octagon; others lie apart, within, or half a side away."""
    graph = Graph(ProgramDesc().blocks[0])
    a, b = (Expr(graph, graph.fresh(n), VarType.FP32) for n in "ab")
    out = polygon_overlaps(a, b)
    shapes = {"a": [1, 8], "b": [5, 8], out.name: [5]}
    *inputs, result = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, d) for n, d in shapes.items())
    held = [onnx.numpy_helper.from_array(v, n) for n, v in graph.initializers.items()]
    made = onnx.helper.make_graph(graph.nodes, "overlaps", inputs, [result], held)
    model = onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9)
    square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], "float32")
    eighth = np.sqrt(2) * np.array([[0, -1], [1, 0], [0, 1], [-1, 0]])
    others = [square[::-1], eighth, square + 3, square * 0.5, square + np.array([1, 0])]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"a": square.reshape(1, 8), "b": np.reshape(others, (5, 8)).astype("float32")})
    octagon = 8 * (np.sqrt(2) - 1)
    np.testing.assert_allclose(found, [1, octagon / (8 - octagon), 0, 1 / 4, 1 / 3], atol=1e-5)


def reference(model: onnx.ModelProto, **feeds: np.ndarray) -> list[np.ndarray]:
    onnx.checker.check_model(model)
    return onnx.reference.ReferenceEvaluator(model).run(None, feeds)


X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype("float32")
FUNCTIONS = {
    "broadcast_along_an_axis": lambda x: F.elementwise_add(x, oprack.to_tensor(X[0, :, 0]), axis=1),
    "activations": lambda x: F.hard_swish(F.gelu(F.leaky_relu(x))) + F.silu(x),
    "scale": lambda x: F.scale(x, scale=2.0, bias=1.0, bias_after_scale=False),
    "reduce": lambda x: F.reduce_mean(x, dim=[-1], keep_dim=True) - F.reduce_max(x, dim=[0, 1]),
    "slice": lambda x: F.slice(x, axes=[1, 2], starts=[0, -3], ends=[2, 4], decrease_axis=[]),
    "one_place": lambda x: F.slice(x, axes=[1], starts=[1], ends=[2], decrease_axis=[1]),
    "shape": lambda x: F.reshape2(F.transpose2(x, axis=[2, 0, 1])[0], shape=[0, -1]),
    "stack": lambda x: F.stack([x, F.relu(x)], axis=1),
    "softmax": lambda x: F.softmax(x, axis=1) + F.log_softmax(x, axis=-1),
    "flip": lambda x: F.flip(x, axis=[0, 2]),
    "top_k": lambda x: F.top_k_v2(x, k=2, axis=-1)[0],
    "floor_division": lambda x: F.cast(x * 10, in_dtype=5, out_dtype=3) // oprack.to_tensor(np.array(-3)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_gives_the_same_in_onnx_s_reference(name):
    function = FUNCTIONS[name]
    traced = to_program(function, [InputSpec([None, 3, 4], name="x")])
    found = io.inference_model.InferenceModel(traced.program, ["x"], list(traced.fetch_names))
    model, lacking = export_loaded(found, traced.scope)
    assert not lacking
    wanted = Executor().run(traced.program, feed={"x": X}, fetch_list=traced.fetch_names, scope=traced.scope)
    for got, want in zip(reference(model, x=X), wanted, strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_what_onnx_lacks_is_a_node_of_oprack_and_is_read_again(tmp_path, capsys):
    traced = to_program(lambda x: F.brelu(F.erfinv(x), t_min=-0.5, t_max=0.5), [InputSpec([None, 4], name="x")])
    io.save_inference_model(tmp_path / "net", traced.program, ["x"], list(traced.fetch_names), traced.scope)
    assert main(["convert", str(tmp_path / "net"), "--to", "onnx", str(tmp_path / "made")]) == 0
    told = capsys.readouterr()
    assert "made.onnx" in told.out and "erfinv" in told.err and "domain 'oprack'" in told.err
    x = np.array([[-0.9, -0.5205, 0.0, 0.2], [0.2763, 0.4, 0.5, 0.9]], "float32")
    scope = Scope()
    read = io.load_inference_model(tmp_path / "made.onnx", scope)
    (y,) = Executor().run(read.program, feed={"x": x}, fetch_list=read.fetch_names, scope=scope)
    # erf(y) is x again, where y was not cut
    cut = np.abs(x) > 0.5205
    np.testing.assert_allclose(np.vectorize(math.erf)(y)[~cut], x[~cut], atol=1e-5)
    assert np.array_equal(np.abs(y[cut]), np.full(cut.sum(), 0.5, "float32"))


def test_an_unknown_format_is_told(tmp_path, capsys):
    assert main(["convert", str(ZOO / nets()[0] / "model"), "--to", "odd", str(tmp_path / "x")]) != 0
    assert "expected one of pdmodel, onnx" in capsys.readouterr().err
