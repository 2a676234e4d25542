"""The embedder of examples/serving: vectors of texts of any lengths, which the server joins by LoD."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import served
import tritonclient.http as http
from oprack.inference import Config, create_predictor
from oprack.tensor import LoDTensor
from tokenizers import Tokenizer

TEXTS = [
    "An op is a class.",
    "rows",
    "",
    "Sequences of any length run without padding. " * 30,
    "LoD",
    "A text of 8 words, more or less.",
]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    from serving import collect

    folder = tmp_path_factory.mktemp("embedder")
    collect.collect_embedder(folder)
    return folder


@pytest.fixture(scope="module")
def server(models) -> Iterator[served.Served]:
    running = served.Served(
        "--models", str(models), "--allow-pipelines", "--poll", "0", "--max-delay", "50", wait=False
    )
    running.until(lambda: running.get("/v2/health/ready")[0] == 200, 120)
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def alone(models) -> list[np.ndarray]:
    """The vector of each text, by a predictor that sees that text alone."""
    tokenizer = Tokenizer.from_file(str(models / "embedder" / "tokenizer.json"))
    predictor, found = create_predictor(Config(str(models / "encoder" / "model"))), []
    for text in TEXTS:
        ids = np.array(tokenizer.encode(text).ids, np.int64)
        predictor.get_input_handle("tokens").share_external_data(LoDTensor(ids, [[0, len(ids)]]))
        predictor.run()
        mean = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()[0]
        found.append(mean / max(np.linalg.norm(mean), 1e-12))
    return found


def vectors_of(server: served.Served, texts: list[str]) -> np.ndarray:
    """By Triton's client."""
    client = http.InferenceServerClient(f"127.0.0.1:{server.port}")
    given = http.InferInput("text", [len(texts)], "BYTES")
    given.set_data_from_numpy(np.array([t.encode() for t in texts], object))
    return client.infer("embedder", [given]).as_numpy("vectors")


def test_texts_of_one_request(server, alone) -> None:
    found = vectors_of(server, TEXTS)
    assert found.shape == (len(TEXTS), 64)
    np.testing.assert_allclose(found, alone, rtol=1e-4, atol=1e-5)
    assert not found[TEXTS.index("")].any()
    np.testing.assert_allclose(np.linalg.norm(np.delete(found, TEXTS.index(""), 0), axis=1), 1, rtol=1e-5)


def test_requests_are_joined_and_none_sees_another(server, alone) -> None:
    full = [i for i, text in enumerate(TEXTS) if text]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: vectors_of(server, [TEXTS[i]])[0], full * 8))
    for i, vector in zip(full * 8, found, strict=True):
        np.testing.assert_allclose(vector, alone[i], rtol=1e-4, atol=1e-5)
    (stats,) = server.get("/v2/models/encoder/stats")[1]["model_stats"]
    assert stats["execution_count"] < stats["inference_count"]


def test_text_that_is_none_is_refused(server) -> None:
    headers = {"Inference-Header-Content-Length": "0"}
    status, body, _ = server.request("POST", "/v2/models/embedder/infer", b"\xff\xfe", headers)
    assert status == 400 and b"not in UTF-8" in body
