"""The application for Ray Serve, on a Ray of this machine alone; without Ray these tests are skipped."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import served
from oprack.errors import InvalidArgumentError

pytest.importorskip("ray.serve", reason="Ray Serve is not installed: pip install oprack-serve[ray]")
pytestmark = [pytest.mark.filterwarnings("ignore")]  # Ray's own


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The address of one replica, which serves the models `text` and `centred`."""
    import ray
    from oprack_serve.engines.ray import build
    from ray import serve

    folder = tmp_path_factory.mktemp("models")
    for name in ("text", "centred"):
        served.save(folder / name, getattr(served, name))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        serve.run(build({"models": str(folder), "max_delay": 20, "poll": "0", "max_replicas": 1}))
        yield f"http://127.0.0.1:{port}"
    finally:
        serve.shutdown()
        ray.shutdown()


def call(url: str, path: str, value=None) -> tuple[int, dict]:
    data = None if value is None else json.dumps(value).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, data), timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_replica_is_the_whole_server(url, tmp_path):
    assert call(url, "/v2/health/ready") == (200, {"ready": True})
    assert call(url, "/v2/models/text")[1]["parameters"]["batching"] == "by LoD"
    served.save(tmp_path / "text", served.text)
    sentences = [np.arange(1 + i % 7, dtype=np.int64).reshape(-1, 1) for i in range(24)]

    def infer(ids):
        row = served.row("ids", ids, lod=[[0, len(ids)]])
        return call(url, "/v2/models/text/infer", {"inputs": [row]})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(infer, sentences))
    for ids, (status, answer) in zip(sentences, answers, strict=True):
        assert status == 200, answer
        expected = served.predict(tmp_path / "text", served.LoDTensor(ids, [[0, len(ids)]]))
        for found, right in zip(served.arrays(answer).values(), expected, strict=True):
            np.testing.assert_allclose(found, right.array, atol=1e-5)
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as page:
        lines = page.read().decode().splitlines()
    (runs,) = (float(x.split()[-1]) for x in lines if x.startswith('oprack_batch_requests_count{model="text"'))
    assert runs < len(sentences)  # the lanes of the replica joined them


def test_errors_are_those_of_the_server(url):
    status, answer = call(url, "/v2/models/text/infer", {"inputs": []})
    assert status == 400 and "inputs" in answer["error"]
    assert call(url, "/v2/models/nothing")[0] == 404


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({}, "either a MODEL or --models DIR"),
        ({"models": "/", "port": 1}, "option port is Ray's"),
        ({"models": "/", "worker": 1}, "unrecognized arguments: --worker"),
        ({"models": "/", "workers": "many"}, "'many'; expected a number from 1"),
        ({"models": "/", "max_replicas": "all"}, "max_replicas = 'all'"),
    ],
)
def test_wrong_options_are_named(arguments, words):
    from oprack_serve.engines.ray import build

    with pytest.raises(InvalidArgumentError, match=words):
        build(arguments)
