"""Real models behind `oprack serve`: Triton's client gets from LAC and PP-OCRv4 what a predictor answers.

Requests are sent many at once, so that the server joins them; sentences have all lengths, and some are empty.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import model_cases as mc
import numpy as np
import pytest
import served
from oprack import LoDTensor, inference
from test_real_models import ocr_folder

triton = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed")

AT_ONCE = 16
TOLERANCE = 1e-4


@dataclass
class Running:
    """A server of the models in `folder`, and a client that sends AT_ONCE requests at once."""

    folder: Path
    server: served.Served
    client: triton.InferenceServerClient


def serving(folder: Path) -> Iterator[Running]:
    server = served.Served("--models", str(folder), "--poll", "0", "--max-delay", "20")
    client = triton.InferenceServerClient(f"{server.host}:{server.port}", concurrency=AT_ONCE, network_timeout=120)
    try:
        yield Running(folder, server, client)
    finally:
        client.close()
        assert server.stop() == 0


@pytest.fixture(scope="module")
def lac(lac_models, tmp_path_factory) -> Iterator[Running]:
    """LAC alone."""
    folder = tmp_path_factory.mktemp("lac")
    shutil.copytree(lac_models / "lac_model" / "model", folder / "lac")
    yield from serving(folder)


@pytest.fixture(scope="module")
def ocr(tmp_path_factory) -> Iterator[Running]:
    """The three models of PP-OCRv4."""
    folder = tmp_path_factory.mktemp("ocr")
    for model in mc.OCR_FOLDERS:
        shutil.copytree(ocr_folder(model), folder / model)
        (folder / model / "serve.toml").write_text("max_batch = 4\n")
    yield from serving(folder)


class Reference:
    """A predictor in this process."""

    def __init__(self, model: Path) -> None:
        config = inference.Config(str(model))
        config.disable_gpu()
        self._predictor = inference.create_predictor(config)

    def __call__(self, value) -> tuple[np.ndarray, list[list[int]]]:
        (name,) = self._predictor.get_input_names()
        self._predictor.get_input_handle(name).share_external_data(value)
        self._predictor.run()
        (out,) = self._predictor.get_output_names()
        handle = self._predictor.get_output_handle(out)
        return handle.copy_to_cpu().copy(), handle.lod()


def batches_of(running: Running, model: str, count: int) -> list[int]:
    """With how many requests each of the last `count` answers of a model shared its batch, once all are logged."""

    def lines() -> list[dict]:
        return [e for e in running.server.events if e["event"] == "request" and e["model"] == model]

    running.server.until(lambda: len(lines()) >= count)
    return [line["batch_requests"] for line in lines()[-count:]]


# LAC ------------------------------------------------------------------------------------------------------------------
def sentences(folder: Path) -> list[tuple[np.ndarray, list[list[int]]]]:
    """Requests: the recorded batches, each sentence alone, and an empty one before and behind others.

    The first takes long enough for others to meet behind it.
    """
    vocabulary = mc.Vocabulary.load(folder)
    cases = [
        mc.LacCase(mc.SENTENCES * 64),
        *mc.LAC_CASES.values(),
        *(mc.LacCase((sentence,)) for sentence in mc.SENTENCES),
        *(mc.LacCase(pair) for pair in itertools.permutations(("", *mc.SENTENCES[:3]), 2)),
        mc.LacCase(("".join(mc.SENTENCES) * 4,)),
    ]
    return [(vocabulary.encode(case), case.lod) for case in cases]


@pytest.mark.parametrize("way", ["tensor", "parameter"])
def test_lac_gets_the_predictors_tags_whatever_it_is_joined_with(lac, lac_models, way):
    requests = sentences(lac_models / "lac_model" / "model") * 2
    (out,) = (o["name"] for o in lac.client.get_model_metadata("lac")["outputs"] if ".lod." not in o["name"])
    wanted = [triton.InferRequestedOutput(out)]
    if way == "tensor":
        wanted.append(triton.InferRequestedOutput(f"{out}.lod.0"))
    sent = []
    for ids, lod in requests:
        words = triton.InferInput("words", list(ids.shape), "INT64")
        words.set_data_from_numpy(ids)
        inputs, parameters = [words], None
        if way == "tensor":
            offsets = triton.InferInput("words.lod.0", [len(lod[0])], "INT64")
            offsets.set_data_from_numpy(np.array(lod[0], np.int64))
            inputs.append(offsets)
        else:
            parameters = {"words.lod": json.dumps(lod)}
        sent.append(lac.client.async_infer("lac", inputs, outputs=wanted, parameters=parameters))
    predictor = Reference(lac.folder / "lac")
    for (ids, lod), request in zip(requests, sent, strict=True):
        answer = request.get_result()
        tags, right = predictor(LoDTensor(ids, lod))
        np.testing.assert_array_equal(answer.as_numpy(out), tags)
        if way == "tensor":
            assert answer.as_numpy(f"{out}.lod.0").tolist() == right[0]
        else:
            assert json.loads(answer.get_output(out)["parameters"]["lod"]) == right
    assert max(batches_of(lac, "lac", len(requests))) > 1
    assert lac.client.get_model_metadata("lac")["parameters"]["batching"] == "by LoD"


# PP-OCRv4 -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("model", list(mc.OCR_FOLDERS))
def test_a_picture_gets_the_predictors_numbers_whatever_it_is_joined_with(ocr, model):
    """Two sizes of picture, which can't be joined with each other; the others meet behind the first request."""
    wide, small = mc.images(model, 6), mc.images(model, 32)
    pictures = [small, *(wide[i : i + 1] for i in range(6)), wide[:2], small[:1]]
    (out,) = (o["name"] for o in ocr.client.get_model_metadata(model)["outputs"])
    sent = []
    for x in pictures:
        image = triton.InferInput("x", list(x.shape), "FP32")
        image.set_data_from_numpy(x)
        sent.append(ocr.client.async_infer(model, [image]))
    predictor = Reference(ocr.folder / model)
    for x, request in zip(pictures, sent, strict=True):
        np.testing.assert_allclose(request.get_result().as_numpy(out), predictor(x)[0], rtol=0, atol=TOLERANCE)
    joined = batches_of(ocr, model, len(pictures))
    batching = ocr.client.get_model_metadata(model)["parameters"]["batching"]
    assert (max(joined) > 1) == (not batching.startswith("none")), (batching, joined)
