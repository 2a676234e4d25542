"""Clients of onnxruntime, on oprack."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx_models import expected, net
from oprack.errors import PreconditionNotMetError, UnimplementedError
from oprack.inference import as_onnxruntime

X = np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype("float32")

CLIENT = """
import onnxruntime as ort
from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions, get_available_providers, get_device

def main(path, x):
    options = SessionOptions()
    options.log_severity_level = 4
    options.enable_cpu_mem_arena = False
    options.intra_op_num_threads = 1
    options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
    session = InferenceSession(str(path), sess_options=options, providers=[("CPUExecutionProvider", {})])
    names = [i.name for i in session.get_inputs()]
    meta = session.get_modelmeta().custom_metadata_map
    outputs = session.run([o.name for o in session.get_outputs()], dict(zip(names, [x])))
    return outputs[0], session.get_inputs()[0], session.get_providers(), meta, get_device()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = net()
    entry = made.metadata_props.add()
    entry.key, entry.value = "character", "a\nb"
    file = tmp_path / "net.onnx"
    onnx.save(made, file)
    return file


@pytest.fixture
def ort(monkeypatch: pytest.MonkeyPatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == "onnxruntime"]:
        monkeypatch.delitem(sys.modules, name)
    with as_onnxruntime():
        import onnxruntime

        yield onnxruntime
    assert "onnxruntime" not in sys.modules


def test_a_client_runs_without_a_change(path, ort):
    names: dict = {}
    exec(CLIENT, names)
    y, first, providers, meta, device = names["main"](path, X)
    np.testing.assert_allclose(y, expected(X), rtol=1e-4, atol=1e-5)
    assert (first.name, first.shape, first.type) == ("x", ["batch", 3, 8, 8], "tensor(float)")
    assert providers == ["CPUExecutionProvider"] == ort.get_available_providers() and device == "CPU"
    assert meta == {"character": "a\nb"} and ort.__version__


def test_sessions_take_bytes_values_and_bindings(path, ort):
    session = ort.InferenceSession(path.read_bytes())
    (y,) = session.run(None, {"x": ort.OrtValue.ortvalue_from_numpy(X)})
    np.testing.assert_allclose(y, expected(X), rtol=1e-4, atol=1e-5)
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    (bound,) = binding.copy_outputs_to_cpu()
    assert (bound == y).all() and binding.get_outputs()[0].data_type() == "tensor(float)"


def test_errors_are_those_of_onnxruntime(path, ort):
    from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, InvalidProtobuf, NoSuchFile

    session = ort.InferenceSession(path)
    for feed, outputs in (({"z": X}, None), ({"x": X}, ["q"]), ({"x": X.astype("float64")}, None)):
        with pytest.raises(InvalidArgument):
            session.run(outputs, feed)
    with pytest.raises(NoSuchFile):
        ort.InferenceSession(path.with_name("absent.onnx"))
    path.write_bytes(b"\x08\x01nothing")
    with pytest.raises(InvalidProtobuf):
        ort.InferenceSession(path)
    with pytest.raises(UnimplementedError, match="op packs"):
        ort.SessionOptions().register_custom_ops_library("x.so")


def test_what_the_stand_in_lacks_is_told(ort):
    with pytest.raises(AttributeError, match=r"onnxruntime\.training is not provided by .*as_onnxruntime\(\)"):
        ort.training  # noqa: B018


def test_the_real_one_is_not_replaced(monkeypatch: pytest.MonkeyPatch):
    import types

    monkeypatch.setitem(sys.modules, "onnxruntime", types.ModuleType("onnxruntime"))
    with pytest.raises(PreconditionNotMetError, match="onnxruntime is imported already"):
        as_onnxruntime()


def branching() -> onnx.ModelProto:
    """Rows that are convolved twice, then a branch that asks for a shape, in one that asks for a number that is fed."""
    rng = np.random.default_rng(2)
    weights = {"w": rng.standard_normal((4, 3, 3)), "v": rng.standard_normal((4, 4, 1)), "b": rng.standard_normal(4)}
    node, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    held = [onnx.numpy_helper.from_array(a.astype("float32"), n) for n, a in weights.items()]
    held += [onnx.numpy_helper.from_array(np.array(v), n) for n, v in (("rate", 16000), ("eight", 8), ("one", [1]))]

    def graph(nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
        return onnx.helper.make_graph(nodes, "branch", [], [info(nodes[-1].output[0], onnx.TensorProto.FLOAT, None)])

    inner = node(
        "If",
        ["long"],
        ["picked"],
        then_branch=graph([node("Exp", ["r"], ["e"])]),
        else_branch=graph([node("Neg", ["r"], ["n"])]),
    )
    sized = [
        node("Shape", ["r"], ["s"]),
        node("Gather", ["s", "two"], ["length"]),
        node("Greater", ["length", "eight"], ["long"]),
        inner,
        node("ReduceMean", ["picked"], ["m"], axes=[1], keepdims=0),
        node("Unsqueeze", ["m", "one"], ["y1"]),
    ]
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1]),
        node("Relu", ["c"], ["c1"]),
        node("Conv", ["c1", "v"], ["c2"]),
        node("Relu", ["c2"], ["r"]),
        node("Constant", [], ["two"], value_int=2),
        node("Equal", ["sr", "rate"], ["fast"]),
        node(
            "If",
            ["fast"],
            ["y"],
            then_branch=graph(sized),
            else_branch=graph([node("ReduceMax", ["r"], ["y2"], axes=[1], keepdims=1)]),
        ),
    ]
    inputs = [info("x", onnx.TensorProto.FLOAT, ["n", 3, "t"]), info("sr", onnx.TensorProto.INT64, [])]
    made = onnx.helper.make_graph(nodes, "branching", inputs, [info("y", onnx.TensorProto.FLOAT, [None] * 3)], held)
    return onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", 16)], ir_version=8)


def test_shapes_and_numbers_that_come_again_get_a_model_of_their_own(ort):
    """Branches that follow from them are taken once; other shapes and numbers are answered as before."""
    model = branching()
    session, reference = ort.InferenceSession(model.SerializeToString()), onnx.reference.ReferenceEvaluator(model)
    rng = np.random.default_rng(3)
    for length, rate, runs in ((8, 16000, 6), (9, 16000, 6), (8, 8000, 6), (5, 16000, 1), (8, 16000, 2)):
        for _ in range(runs):
            feeds = {"x": rng.standard_normal((2, 3, length)).astype("float32"), "sr": np.array(rate)}
            (want,), (got,) = reference.run(None, feeds), session.run(None, feeds)
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    made = session._special._made
    assert len(made) == 3 and all(p is not session._predictor for p in made.values())
    written = [op.type for p in made.values() for op in p._model.program.desc.blocks[0].ops]
    assert not {"conditional_block", "shape", "equal"} & set(written)


def test_a_model_of_one_shape_has_no_more_nodes_than_it_needs():
    """Convolutions of rows stand side by side, and what asks for shapes is gone."""
    from oprack_onnx.specialize import specialized

    made = specialized(branching(), {"x": (2, 3, 8)}, {"sr": np.array(16000)})
    onnx.checker.check_model(made)
    ops = [n.op_type for n in made.graph.node]
    assert ops[:5] == ["Reshape", "Conv", "Relu", "Conv", "Relu"] and "If" not in ops and "Shape" not in ops
    assert [i.name for i in made.graph.input] == ["x"]
    x = np.random.default_rng(4).standard_normal((2, 3, 8)).astype("float32")
    (want,) = onnx.reference.ReferenceEvaluator(branching()).run(None, {"x": x, "sr": np.array(16000)})
    (got,) = onnx.reference.ReferenceEvaluator(made).run(None, {"x": x})
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_branches_may_have_names_in_common():
    """Branches that do not lie in each other name their values as they like."""
    from oprack_onnx.specialize import specialized

    node, info, held = onnx.helper.make_node, onnx.helper.make_tensor_value_info, onnx.numpy_helper.from_array

    def branch(factor: float) -> onnx.GraphProto:
        factors = [held(np.array(factor, "float32"), "factor")]
        result = [info("found", onnx.TensorProto.FLOAT, None)]
        return onnx.helper.make_graph([node("Mul", ["x", "factor"], ["found"])], "branch", [], result, factors)

    nodes = [
        node("If", ["yes"], [out], then_branch=branch(factor), else_branch=branch(-factor))
        for out, factor in (("a", 2.0), ("b", 3.0))
    ]
    inputs, outputs = ([info(n, onnx.TensorProto.FLOAT, [2])] for n in "xy")
    graph = onnx.helper.make_graph(
        [*nodes, node("Sub", ["b", "a"], ["y"])], "two", inputs, outputs, [held(np.array(True), "yes")]
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 16)], ir_version=8)
    made = specialized(model, {"x": (2,)}, {})
    assert [n.op_type for n in made.graph.node] == ["Mul", "Mul", "Sub"]
    (y,) = onnx.reference.ReferenceEvaluator(made).run(None, {"x": np.array([1, 5], "float32")})
    assert y.tolist() == [1.0, 5.0]
