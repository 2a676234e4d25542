"""Pipelines: functions and models in a row, over a real server; expected numbers come from predictors and formulas."""

from __future__ import annotations

import base64
import io
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import served
from oprack.errors import InvalidArgumentError, MemoryLimitError
from oprack_serve.pipelines import decode_picture, definition

PIL = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

TOML = """
[inputs.sentence]
datatype = "BYTES"
shape = [1]
[outputs.words]
datatype = "BYTES"
shape = [-1]
[outputs.scores]
datatype = "FP32"
shape = [-1, 5]
lod_level = 1
[[stages]]
function = "split"
inputs = ["sentence"]
outputs = ["ids", "each"]
[[stages]]
model = "text"
inputs = ["ids"]
outputs = ["scores", "pooled"]
[[stages]]
model = "text"
inputs = ["each"]
outputs = ["one_by_one"]
[[stages]]
function = "name"
inputs = ["sentence", "scores", "one_by_one"]
outputs = ["words"]
"""

MODULE = """
import os, time
import numpy as np
from oprack import LoDTensor
from oprack.errors import InvalidArgumentError

def split(sentence):
    words = sentence[0].decode().split()
    if words[:1] == ["bad"]:
        raise InvalidArgumentError(f"{words[0]!r} is no word")
    if words[:1] == ["broken"]:
        return words[0][99]
    if words[:1] == ["hangs"]:
        time.sleep(60)
    if words[:1] == ["dies"]:
        os._exit(3)
    if words[:1] == ["large"]:
        return np.zeros([1, 1], np.int64), [np.zeros([1, 1 << 20], np.float32)] * 8
    if words[:1] == ["misfit"]:
        return np.zeros([2, 1], np.float32), []
    ids = np.array([len(word) for word in words], np.int64).reshape(-1, 1)
    sentences = LoDTensor(ids, [[0, len(ids)]])
    return sentences, [LoDTensor(row.reshape(1, 1), [[0, 1]]) for row in ids]

def name(sentence, scores, one_by_one):
    assert np.allclose(scores.array, np.concatenate([s.array for s in one_by_one] or [scores.array]), atol=1e-5)
    words = sentence[0].decode().split()
    return np.array([f"{word}{len(one_by_one)}" for word in words], object)
"""


def write(folder: Path, toml: str = TOML, module: str = MODULE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pipeline.toml").write_text(toml)
    (folder / "pipeline.py").write_text(module)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The model `text`, and pipelines over it: one that works, and some that can't."""
    found = tmp_path_factory.mktemp("pipelines")
    served.save(found / "text", served.text)
    write(found / "words")
    write(found / "unknown_model", TOML.replace('model = "text"', 'model = "texts"'))
    write(found / "too_many", TOML.replace('["scores", "pooled"]', '["scores", "pooled", "third"]'))
    write(found / "no_function", module=MODULE.replace("def name", "def names"))
    write(found / "no_module", module="import nothing_that_is_installed\n")
    write(found / "of_a_pipeline", TOML.replace('model = "text"', 'model = "words"'))
    return found


@pytest.fixture(scope="module")
def server(folder):
    options = ("--allow-pipelines", "--poll", "0", "--max-delay", "5", "--timeout", "6", "--max-inflight", "16M")
    running = served.Served("--models", str(folder), *options, "--allow-trace", "--workers", "2")
    yield running
    assert running.stop() == 0


def text(name: str, *values: str) -> dict:
    return {"name": name, "shape": [len(values)], "datatype": "BYTES", "data": list(values)}


def test_text_goes_in_and_text_comes_out(server, folder):
    status, answer = server.infer("words", [text("sentence", "这是 a pipeline")])
    assert status == 200, answer
    words, scores = answer["outputs"]
    assert words == {"name": "words", "datatype": "BYTES", "shape": [3], "data": ["这是3", "a3", "pipeline3"]}
    ids = served.LoDTensor(np.array([[2], [1], [8]], np.int64), [[0, 3]])
    np.testing.assert_allclose(
        served.arrays({"outputs": [scores]})["scores"], served.predict(folder / "text", ids)[0].array, atol=1e-5
    )
    assert scores["parameters"] == {"lod": "[[0, 3]]"}


def test_a_body_without_json_is_the_only_input(server):
    headers = {"Inference-Header-Content-Length": "0", "Content-Type": "text/plain"}
    status, body, _ = server.request("POST", "/v2/models/words/infer", "两 words".encode(), headers)
    assert status == 200 and '"data":["两2","words2"]'.encode() in body, body
    status, body, _ = server.request("POST", "/v2/models/text/infer", b"no bytes", headers)
    assert status == 400 and b"the only input where that is one element of BYTES; the model has 'ids' (INT64" in body


def test_bytes_as_binary_data(server):
    triton = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed")
    client = triton.InferenceServerClient(f"{server.host}:{server.port}")
    sentence = triton.InferInput("sentence", [1], "BYTES")
    sentence.set_data_from_numpy(np.array([b"one two"], object))
    answer = client.infer("words", [sentence])
    assert answer.as_numpy("words").tolist() == [b"one2", b"two2"]
    client.close()


def test_stages_of_several_requests_share_batches(server):
    before = server.metric("oprack_batch_requests_count", model="text")
    sentences = [" ".join(["word"] * (1 + i % 7)) for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda s: server.infer("words", [text("sentence", s)]), sentences))
    for sentence, (status, answer) in zip(sentences, answers, strict=True):
        count = len(sentence.split())
        assert status == 200 and answer["outputs"][0]["data"] == [f"word{count}"] * count
    runs = server.metric("oprack_batch_requests_count", model="text") - before
    asked = 40 + sum(len(s.split()) for s in sentences)
    assert runs < asked / 2, (runs, asked)


@pytest.mark.parametrize(
    "sentence, status, words",
    [
        ("bad", 400, "pipeline 'words', stage 1 (function 'split'): 'bad' is no word"),
        ("broken", 500, "pipeline 'words', stage 1 (function 'split'): pipeline.py:12: IndexError"),
        (
            "misfit",
            500,
            "stage 2 (model 'text'): input 'ids' is given float32 of shape [2, 1] with 0 levels of LoD; expected INT64",
        ),
        ("dies", 500, "stage 1 (function 'split'): the worker process that ran this request ended"),
        ("large", 503, "stage 1 (function 'split'): other requests and answers fill the memory"),
    ],
)
def test_errors_name_the_pipeline_the_stage_and_the_file(server, sentence, status, words):
    found, answer = server.infer("words", [text("sentence", sentence)])
    assert (found, words in answer["error"]) == (status, True), answer
    assert server.infer("words", [text("sentence", "still here")])[0] == 200


def test_a_function_that_hangs_is_ended_and_its_neighbours_are_answered(server):
    with ThreadPoolExecutor(4) as pool:
        hung = pool.submit(server.infer, "words", [text("sentence", "hangs")])
        others = [pool.submit(server.infer, "words", [text("sentence", "a b")]) for _ in range(3)]
        assert [other.result()[0] for other in others] == [200] * 3
        assert hung.result()[0] == 504
    server.event("worker ended", model="words", status=-9)


def test_a_client_that_leaves_ends_its_stages(server):
    import socket as sockets

    body = b'{"inputs":[{"name":"sentence","shape":[1],"datatype":"BYTES","data":["hangs"]}]}'
    with sockets.create_connection((server.host, server.port)) as sock:
        sock.sendall(
            b"POST /v2/models/words/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        time.sleep(0.3)
    server.event("request", model="words", status=499)


def test_the_trace_and_the_metadata_show_the_stages(server):
    import json

    status, answer = server.infer("words", [text("sentence", "a")], parameters={"trace": True})
    names = [e["name"] for e in json.loads(answer["parameters"]["trace"])["traceEvents"]]
    assert status == 200 and {"stage 1 (function 'split')", "stage 3 (model 'text')"} <= set(names)
    _, found = server.get("/v2/models/words")
    assert found["inputs"] == [{"name": "sentence", "datatype": "BYTES", "shape": [1]}]
    assert found["parameters"]["stages"].startswith("stage 1 (function 'split'); stage 2 (model 'text')")


def test_what_can_not_be_served_says_why(server, folder):
    rows = {row["name"]: row["reason"] for row in server.post("/v2/repository/index", {})[1]}
    assert "stage 2 (model 'texts'): Request for unknown model: there is no model 'texts'" in rows["unknown_model"]
    assert str(folder / "unknown_model" / "pipeline.toml") in rows["unknown_model"]
    assert "stage 2 (model 'text'): it has 3 outputs; the model has 2" in rows["too_many"]
    assert "stage 4 (function 'name'): there is no function 'name' in the module" in rows["no_function"]
    assert "pipeline.py:1: ModuleNotFoundError: No module named 'nothing_that_is_installed'" in rows["no_module"]
    assert "'words' is a pipeline; expected a model" in rows["of_a_pipeline"] or "being loaded" in rows["of_a_pipeline"]
    assert rows["words"] == rows["text"] == ""
    assert not list(folder.glob("*/__pycache__"))  # it would be a change of the model


def test_code_of_folders_runs_where_the_server_was_told_to_alone(folder, tmp_path):
    write(tmp_path / "words", module=f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    served.save(tmp_path / "text", served.text)
    running = served.Served("--models", str(tmp_path), "--poll", "0")
    reason = running.event("model failed", model="words")["reason"]
    assert "--allow-pipelines" in reason and not (tmp_path / "ran").exists()
    assert running.stop() == 0


def test_a_changed_module_takes_the_place_of_the_old_one(tmp_path):
    toml = (
        TOML.split("[outputs.scores]")[0] + '[[stages]]\nfunction = "f"\ninputs = ["sentence"]\noutputs = ["words"]\n'
    )
    write(tmp_path / "p", toml, "def f(s):\n    return s[0] + b'1'\n")
    running = served.Served("--models", str(tmp_path), "--allow-pipelines", "--poll", "0.1")
    assert running.infer("p", [text("sentence", "v")])[1]["outputs"][0]["data"] == ["v1"]
    write(tmp_path / "p", toml, "def f(s):\n    return s[0] + b'2'\n")
    running.until(lambda: running.infer("p", [text("sentence", "v")])[1]["outputs"][0]["data"] == ["v2"])
    assert running.stop() == 0


# The file -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "old, new, words",
    [
        ("[inputs.sentence]", "[inputs]\n[input.sentence]", "the file has input; expected inputs, module, outputs"),
        ('datatype = "BYTES"', 'datatype = "STRING"', "inputs.sentence.datatype = 'STRING'; expected one of BOOL"),
        ("shape = [1]", "shape = [-2]", "inputs.sentence.shape = [-2]"),
        (
            'function = "split"',
            'function = "split"\nmodel = "text"',
            "stage 1; expected either function = NAME or",
        ),
        (
            'inputs = ["ids"]',
            'inputs = ["idz"]',
            "stage 2: inputs has 'idz'; expected values that are there by then:",
        ),
        ('outputs = ["words"]', 'outputs = ["ids"]', "stage 4: outputs has 'ids', which is there already"),
        ("[outputs.words]", "[outputs.texts]", "outputs.texts; expected the name of an input or of a stage's output"),
        ('model = "text"', 'model = "../text"', "stage 2 names '../text'"),
        ('model = "text"', 'model = "text"\nversion = 2', "stage 2: version = 2; expected a string"),
        (
            "[inputs.sentence]",
            'module = "../x.py"\n[inputs.sentence]',
            "module = '../x.py'; expected the name of a",
        ),
        ("[inputs.sentence]", 'module = "x.py"\n[inputs.sentence]', "module = 'x.py'; there is no such file beside it"),
        ("[[stages]]", "[[stages]", "Expected"),
    ],
)
def test_a_wrong_file_is_named_with_its_key(tmp_path, old, new, words):
    write(tmp_path, TOML.replace(old, new, 1))
    with pytest.raises(InvalidArgumentError) as caught:
        definition.load(tmp_path)
    assert str(tmp_path / "pipeline.toml") in str(caught.value) and words in str(caught.value)


def test_a_module_that_a_link_leads_out_of_the_folder_to_is_refused(tmp_path):
    write(tmp_path / "p")
    (tmp_path / "outside.py").write_text(MODULE)
    (tmp_path / "p" / "pipeline.py").unlink()
    (tmp_path / "p" / "pipeline.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(InvalidArgumentError, match="no such file beside it"):
        definition.load(tmp_path / "p")


# Pictures -------------------------------------------------------------------------------------------------------------
def file_of(picture, kind: str) -> bytes:
    out = io.BytesIO()
    picture.save(out, kind)
    return out.getvalue()


def test_pictures_are_bounded_by_their_heads():
    small = PIL.new("RGB", (30, 20), (1, 2, 3))
    for kind in ("JPEG", "PNG", "WEBP", "BMP"):
        assert decode_picture(file_of(small, kind)).size == (30, 20)
    bomb = file_of(PIL.new("1", (20_000, 20_000)), "PNG")
    assert len(bomb) < 100_000
    with pytest.raises(MemoryLimitError, match=r"20000 x 20000 pixels; at most 16777216|too large"):
        decode_picture(bomb)
    with pytest.raises(MemoryLimitError, match="30 x 20 pixels; at most 599"):
        decode_picture(file_of(small, "PNG"), max_pixels=599)


@pytest.mark.parametrize("kind", ["nothing", "text", "cut", "gif", "noise"])
def test_what_is_no_picture_is_the_clients_mistake(kind):
    whole = file_of(PIL.effect_noise((64, 64), 90).convert("RGB"), "JPEG")
    data = {
        "nothing": b"",
        "text": b"no picture",
        "cut": whole[: len(whole) // 2],
        "gif": base64.b64decode("R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs="),
        "noise": whole[:10] + os.urandom(500),
    }[kind]
    with pytest.raises(InvalidArgumentError, match="picture"):
        decode_picture(data)
