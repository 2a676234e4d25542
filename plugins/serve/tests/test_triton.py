"""Models in Triton's Python backend: over a strict stand-in of its module, and in Triton itself where it is."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import types
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import served
from oprack.errors import InvalidArgumentError
from oprack_serve.engines import triton

PYTHON = os.environ.get("OPRACK_TRITON_PYTHON")
"""A Python 3.11 with nvidia-pytriton, which brings Triton's server, and the NumPy 1.26 that its build wants."""


# A stand-in that takes no more than Triton's documentation promises ---------------------------------------------------
class Tensor:
    def __init__(self, name, array):
        assert type(name) is str and type(array) is np.ndarray and array.flags.c_contiguous
        self._name, self._array = name, array

    def name(self):
        return self._name

    def as_numpy(self):
        return self._array


class TritonError:
    def __init__(self, message):
        assert type(message) is str
        self._message = message

    def message(self):
        return self._message


class InferenceRequest:
    def __init__(self, inputs, outputs):
        self._inputs, self._outputs = [Tensor(name, array) for name, array in inputs.items()], outputs

    def inputs(self):
        return self._inputs

    def requested_output_names(self):
        return self._outputs


class InferenceResponse:
    def __init__(self, output_tensors, error=None):
        assert type(output_tensors) is list and all(type(t) is Tensor for t in output_tensors)
        assert error is None or type(error) is TritonError
        self.tensors, self.failure = {t.name(): t.as_numpy() for t in output_tensors}, error


@pytest.fixture
def backend(monkeypatch):
    """The module that Triton puts into the backend's process."""
    module = types.ModuleType("triton_python_backend_utils")
    for each in (Tensor, TritonError, InferenceResponse):
        setattr(module, each.__name__, each)
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.fixture(scope="module")
def entries(tmp_path_factory) -> Path:
    """A repository with a model of sequences, one of rows, and one whose rows depend on each other."""
    folder = tmp_path_factory.mktemp("triton")
    for name in ("text", "image", "centred"):
        served.save(folder / "models" / name, getattr(served, name))
        triton.write(folder / "models" / name, folder / "repository", name, max_batch=8)
    return folder / "repository"


def loaded(entries: Path, name: str) -> triton.TritonPythonModel:
    text = (entries / name / "config.pbtxt").read_text()
    value = "1" if 'key: "ragged" value { string_value: "1" }' in text else "0"
    parameters = {"threads": {"string_value": "1"}, "ragged": {"string_value": value}}
    model = triton.TritonPythonModel()
    arguments = {"model_config": json.dumps({"name": name, "parameters": parameters})}
    model.initialize(arguments | {"model_repository": str(entries / name), "model_version": "1"})
    return model


def expected(entries: Path, name: str, *feeds):
    return served.predict(entries / name / "1" / "model", *feeds)


def sentence(ids) -> tuple[dict[str, np.ndarray], served.LoDTensor]:
    """A sentence as Triton has it, an entry of a batch of one, and as a predictor does."""
    ids = np.array(ids, np.int64).reshape(-1, 1)
    return {"ids": ids[None], "ids.lod.0": np.array([[0, len(ids)]])}, served.LoDTensor(ids, [[0, len(ids)]])


def test_the_configurations_say_what_the_models_take(entries):
    text, image, centred = (
        (entries / n / "config.pbtxt").read_text().split("\n") for n in ("text", "image", "centred")
    )
    assert 'input [ { name: "ids" data_type: TYPE_INT64 dims: [ -1, 1 ] allow_ragged_batch: true } ]' in text
    assert 'input [ { name: "ids.lod.0" data_type: TYPE_INT64 dims: [ -1 ] allow_ragged_batch: true } ]' in text
    assert 'input [ { name: "image" data_type: TYPE_FP32 dims: [ 3, 8, 8 ] } ]' in image
    assert "max_batch_size: 8" in image and "dynamic_batching { }" in image
    assert "max_batch_size: 0" in centred and "dynamic_batching { }" not in centred
    assert 'input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 4 ] } ]' in centred
    assert (entries / "text" / "1" / "model.py").read_text() == triton.MODULE


def test_sentences_of_any_length_run_together_and_a_bad_one_alone_fails(entries, backend):
    model = loaded(entries, "text")
    runs = []
    once = model._model._outputs_of
    model._model._outputs_of = lambda feed: runs.append(len(feed["ids"].lod[0]) - 1) or once(feed)
    good = [sentence(ids) for ids in ([1, 2, 3], [4], [5, 6, 7, 8, 9])]
    outputs = [t["name"] for t in _outputs_of(entries / "text")]
    requests = [InferenceRequest(tensors, outputs) for tensors, _ in good]
    answers = model.execute(requests)
    assert runs == [4]  # and one that fills the batch up, as in a server
    for (_, feed), answer in zip(good, answers, strict=True):
        scores, pooled = expected(entries, "text", feed)
        values = [answer.tensors[name] for name in outputs if ".lod." not in name]
        np.testing.assert_allclose(values[0][0], scores.array, atol=1e-5)
        np.testing.assert_allclose(values[1][0], pooled.array, atol=1e-5)
    bad = InferenceRequest(sentence([1, 99])[0], outputs)  # beyond the rows of the table
    lying = InferenceRequest({"ids": np.zeros([1, 2, 1], np.int64), "ids.lod.0": np.array([[0, 5]])}, outputs)
    two = InferenceRequest({"ids": np.zeros([2, 2, 1], np.int64), "ids.lod.0": np.array([[0, 2]] * 2)}, outputs)
    answers = model.execute([requests[0], bad, lying, two, requests[1]])
    assert [answer.failure is None for answer in answers] == [True, False, False, False, True]
    assert "ends at 5; expected 2" in answers[2].failure.message()
    assert "shape [2, 2, 1]; expected a dim of 1" in answers[3].failure.message()
    model.finalize()


def test_rows_run_together_and_what_depends_on_its_batch_does_not(entries, backend):
    random = np.random.default_rng(0)
    model = loaded(entries, "image")
    pictures = [random.standard_normal([n, 3, 8, 8]).astype(np.float32) for n in (1, 3)]
    (out,) = (t["name"] for t in _outputs_of(entries / "image"))
    answers = model.execute([InferenceRequest({"image": x}, [out]) for x in pictures])
    for x, answer in zip(pictures, answers, strict=True):
        np.testing.assert_allclose(answer.tensors[out], expected(entries, "image", x)[0].array, atol=1e-5)
    (wrong,) = model.execute([InferenceRequest({"image": np.zeros([1, 3, 9, 9], np.float32)}, [out])])
    assert "the model expects float32 of shape [-1, 3, 8, 8]" in wrong.failure.message()
    centred = loaded(entries, "centred")
    (out,) = (t["name"] for t in _outputs_of(entries / "centred"))
    rows = [random.standard_normal([2, 4]).astype(np.float32) for _ in range(2)]
    for x, answer in zip(rows, centred.execute([InferenceRequest({"x": x}, [out]) for x in rows]), strict=True):
        np.testing.assert_allclose(answer.tensors[out], x - x.mean(0, keepdims=True), atol=1e-5)
    for each in (model, centred):
        each.finalize()


def test_a_name_that_is_none_is_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match="can't be the name of a model"):
        triton.write(tmp_path, tmp_path, "../up")


def _outputs_of(entry: Path) -> list[dict]:
    import re

    return [{"name": n} for n in re.findall(r'output \[ \{ name: "([^"]+)"', (entry / "config.pbtxt").read_text())]


# Triton itself --------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def url(entries, tmp_path_factory):
    if PYTHON is None:
        pytest.skip("OPRACK_TRITON_PYTHON names no Python 3.11 with nvidia-pytriton, which Triton's server comes with")
    found = subprocess.run(
        [PYTHON, "-c", "import pytriton; print(pytriton.__path__[0])"], capture_output=True, text=True
    )
    home = Path(found.stdout.strip())
    folder = tmp_path_factory.mktemp("server")
    shutil.copytree(home / "tritonserver" / "backends" / "python", folder / "python")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    shutil.copy(
        home / "tritonserver" / "python_backend_stubs" / version / "triton_python_backend_stub", folder / "python"
    )
    (folder / "python" / "triton_python_backend_stub").chmod(0o755)
    paths = f"import site, sys\nsys.path.insert(0, {str(home.parent)!r})\n"
    paths += "".join(f"sys.path.append({p!r})\n" for p in sys.path if p)
    for module in entries.glob("*/1/model.py"):
        module.write_text(paths + triton.MODULE)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--allow-grpc", "false", "--allow-metrics", "false", "--http-address", "127.0.0.1")
    command = [str(home / "tritonserver" / "bin" / "tritonserver"), "--model-repository", str(entries)]
    command += ["--backend-directory", str(folder), "--http-port", str(port), *options]
    libraries = f"{Path(sys.base_prefix) / 'lib'}:{home.parent / 'nvidia_pytriton.libs'}"
    environ = os.environ | {"LD_LIBRARY_PATH": libraries, "PYTHONHOME": sys.base_prefix}
    with open(folder / "log", "w") as log, subprocess.Popen(command, env=environ, stdout=log, stderr=log) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            served.Served.until(lambda: process.poll() is not None or _ready(address))
            assert process.poll() is None, (folder / "log").read_text()[-3000:]
            yield address
        finally:
            process.terminate()


def _ready(address: str) -> bool:
    try:
        return urllib.request.urlopen(f"{address}/v2/health/ready", timeout=5).status == 200
    except (urllib.error.URLError, OSError):
        return False


def test_triton_answers_as_a_predictor_does(entries, url):
    outputs = [t["name"] for t in _outputs_of(entries / "text")]
    for ids in ([1, 2, 3], [4], [5, 6, 7, 8, 9]):
        tensors, feed = sentence(ids)
        rows = [served.row(name, array) for name, array in tensors.items()]
        data = json.dumps({"inputs": rows, "outputs": [{"name": name} for name in outputs]}).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{url}/v2/models/text/infer", data), timeout=30) as answer:
            found = served.arrays(json.load(answer))
        np.testing.assert_allclose(found[outputs[0]][0], expected(entries, "text", feed)[0].array, atol=1e-5)
