"""The pipelines of examples/serving: PP-OCR answers as rapidocr does, and LAC as its README says."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import model_cases as mc
import numpy as np
import pytest
import served

RAW = {"Inference-Header-Content-Length": "0"}
AT_ONCE = 4


@pytest.fixture(scope="module")
def server(tmp_path_factory, lac_models) -> Iterator[served.Served]:
    """All models and pipelines that the example collects."""
    from serving import collect

    folder = tmp_path_factory.mktemp("collected")
    collect.collect_lac(folder)
    try:
        collect.collect_ocr(folder)
    except collect.MissingError as error:
        pytest.skip(str(error))
    running = served.Served(
        "--models", str(folder), "--allow-pipelines", "--poll", "0", "--max-delay", "20", wait=False
    )
    running.until(lambda: running.get("/v2/health/ready")[0] == 200, 180)
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def rapidocr():
    """The package's own pipeline, its models run by oprack."""
    pytest.importorskip("cv2", reason="opencv is not installed")
    from ocr_demo import Reader

    return Reader()


def jpeg(picture) -> bytes:
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=95)
    return out.getvalue()


def page():
    from PIL import Image

    with Image.open(mc.PICTURE) as picture:
        return picture.convert("RGB")


def read(server: served.Served, data: bytes) -> dict[str, list]:
    """What one request with a file as its body is answered with."""
    status, body, _ = server.request("POST", "/v2/models/ocr/infer", data, RAW)
    assert status == 200, body
    return {row["name"]: row["data"] for row in json.loads(body)["outputs"]}


@pytest.mark.parametrize("change", ["as it is", "upside down", "one wide line", "gray"])
def test_a_jpeg_goes_in_and_the_lines_of_rapidocr_come_out(server, rapidocr, tmp_path, change):
    picture = {
        "as it is": lambda p: p,
        "upside down": lambda p: p.rotate(180),
        "one wide line": lambda p: p.crop((30, 90, 600, 130)),
        "gray": lambda p: p.convert("L"),
    }[change](page())
    (tmp_path / "page.jpg").write_bytes(jpeg(picture))
    expected = rapidocr.read(tmp_path / "page.jpg")
    found = read(server, jpeg(picture))
    assert len(expected) == (1 if change == "one wide line" else 9)
    assert found["text"] == [line["text"] for line in expected]
    np.testing.assert_allclose(found["score"], [line["score"] for line in expected], atol=1e-4)
    np.testing.assert_allclose(found["box"], np.ravel([line["box"] for line in expected]), atol=0.01)


def test_pages_that_come_at_once_share_the_batches_of_the_models(server):
    data = jpeg(page())
    alone = read(server, data)
    before = [server.metric(f"oprack_batch_requests_{what}", model="cls") for what in ("sum", "count")]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda _: read(server, data), range(AT_ONCE)))
    requests, runs = (
        server.metric(f"oprack_batch_requests_{what}", model="cls") - was
        for what, was in zip(("sum", "count"), before, strict=True)
    )
    assert requests == 2 * AT_ONCE and runs < requests  # nine lines are two inputs of cls
    for answer in answers:
        assert answer["text"] == alone["text"]
        np.testing.assert_allclose(answer["score"], alone["score"], atol=1e-4)


def test_a_page_without_text_has_no_lines(server):
    from PIL import Image

    assert read(server, jpeg(Image.new("RGB", (200, 100), "white"))) == {"text": [], "score": [], "box": []}


@pytest.mark.parametrize(
    "size, status, words",
    [((6000, 6000), 413, "6000 x 6000 pixels; at most 16000000"), ((40, 1900), 413, "too long and narrow")],
)
def test_what_a_picture_may_decode_to_is_bounded(server, size, status, words):
    from PIL import Image

    found, body, _ = server.request("POST", "/v2/models/ocr/infer", jpeg(Image.new("L", size)), RAW)
    assert found == status and words in body.decode() and "pipeline 'ocr', stage 1 (function 'read')" in body.decode()


def test_sentences_get_the_words_and_tags_that_lac_documents(server):
    """Those in the README of LAC 2.1.2, and an empty one."""
    answers = {
        "百度是一家高科技公司": "百度/ORG 是/v 一家/m 高科技/n 公司/n",
        "": "",
        "LAC是个优秀的分词工具": "LAC/nz 是/v 个/q 优秀/a 的/u 分词/n 工具/n",
    }
    row = {"name": "text", "shape": [len(answers)], "datatype": "BYTES", "data": list(answers)}
    status, answer = server.infer("tagger", [row])
    assert status == 200, answer
    words, tags = answer["outputs"]
    pairs = [f"{word}/{tag}" for word, tag in zip(words["data"], tags["data"], strict=True)]
    (offsets,) = json.loads(words["parameters"]["lod"])
    assert [" ".join(pairs[a:b]) for a, b in pairwise(offsets)] == list(answers.values())
