"""ONNX's own node tests, a sample of them; tools/score.py runs them all and writes docs/onnx_tests.md."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.backend.test.runner import Runner
from oprack_onnx import backend
from oprack_onnx.model import without_functions
from oprack_onnx.specialize import specialized

FILE = Path(__file__).parent / "data" / "node_tests.npz"


def _groups() -> list[list[tuple[str, int, int, float, float]]]:
    with np.load(FILE) as found:
        index = json.loads(bytes(found["index"]).decode())
    return [index[i : i + 40] for i in range(0, len(index), 40)]


@pytest.mark.parametrize("group", _groups(), ids=lambda group: group[0][0])
def test_models_of_one_op_answer_as_onnx(group):
    """A group of tests at a time: a file of arrays is read quickly, hundreds of parametrized tests are not."""
    wrong = []
    with np.load(FILE) as arrays:
        for name, inputs, outputs, rtol, atol in group:
            model = onnx.ModelProto.FromString(bytes(arrays[f"{name}/model"]))
            feeds = [arrays[f"{name}/in/{i}"] for i in range(inputs)]
            wanted = [arrays[f"{name}/out/{i}"] for i in range(outputs)]
            try:
                Runner.assert_similar_outputs(wanted, backend.run_model(model, feeds), rtol, atol)
            except Exception as error:
                wrong.append(f"{name}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)


def test_one_node_runs_by_itself():
    node = onnx.helper.make_node("Add", ["a", "b"], ["c"])
    (found,) = backend.run_node(node, [np.array([1.0, 2.0], "float32"), np.array(3.0, "float32")])
    assert found.tolist() == [4.0, 5.0]
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA")


def test_a_model_for_the_shapes_at_hand_answers_the_same():
    """A sixth of them, through what a session does with shapes that come again."""
    wrong = []
    with np.load(FILE) as arrays:
        for name, inputs, outputs, rtol, atol in [case for group in _groups() for case in group][::6]:
            model = without_functions(onnx.ModelProto.FromString(bytes(arrays[f"{name}/model"])))
            feeds = {i.name: arrays[f"{name}/in/{k}"] for k, i in zip(range(inputs), model.graph.input, strict=False)}
            made = specialized(model, {n: a.shape for n, a in feeds.items()}, {})
            try:
                found = backend.OprackRep(made).run([feeds[i.name] for i in made.graph.input])
                Runner.assert_similar_outputs([arrays[f"{name}/out/{i}"] for i in range(outputs)], found, rtol, atol)
            except Exception as error:
                wrong.append(f"{name}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)
