"""Clients of onnxruntime, on oprack."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
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
