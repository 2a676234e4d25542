"""A real server on a free port: the protocol, joined requests, versions, limits and errors."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import served
from oprack.tensor import LoDTensor
from served import arrays, row

random = np.random.default_rng(11)


def picture(count=1):
    return random.standard_normal((count, 3, 8, 8)).astype(np.float32)


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


# What it says of itself -----------------------------------------------------------------------------------------------
def test_health_metadata_and_index(server):
    assert server.get("/v2")[1]["name"] == "oprack"
    assert server.get("/v2/health/live") == (200, {"live": True})
    assert server.get("/v2/health/ready") == (200, {"ready": True})
    assert server.get("/v2/models/image/ready") == (200, {"name": "image", "ready": True})
    status, found = server.get("/v2/models/text")
    assert status == 200 and found["versions"] == ["1"] and found["parameters"]["batching"] == "by LoD"
    assert found["inputs"] == [
        {"name": "ids", "datatype": "INT64", "shape": [-1, 1]},
        {"name": "ids.lod.0", "datatype": "INT64", "shape": [-1]},
    ]
    assert [o["shape"] for o in found["outputs"]] == [[-1, 5], [-1], [-1, 3]]
    index = {(r["name"], r["version"]): r for r in server.post("/v2/repository/index", {})[1]}
    assert {key for key, r in index.items() if r["state"] == "READY"} == {
        ("image", "1"), ("text", "1"), ("centred", "1"), ("slow", "1"), ("scaled", "1"), ("scaled", "2"),
    }  # fmt: skip
    assert index["broken", "1"]["state"] == "UNAVAILABLE" and "CorruptModelError" in index["broken", "1"]["reason"]


def test_a_model_that_cannot_be_loaded_is_reported_and_the_others_go_on(server):
    assert "CorruptModelError" in server.event("model failed", model="broken")["reason"]
    status, answer = server.infer("broken", [row("x", np.zeros([1, 2], np.float32))])
    assert status == 503 and "could not be loaded: CorruptModelError" in answer["error"]


# Inference ------------------------------------------------------------------------------------------------------------
def test_a_picture_gets_the_predictors_numbers(server, models):
    x = picture(3)
    status, answer = server.infer("image", [row("image", x)], id="one")
    (expected,) = served.predict(models / "image", x)
    assert status == 200 and (answer["id"], answer["model_name"], answer["model_version"]) == ("one", "image", "1")
    (found,) = arrays(answer).values()
    close(found, expected.array)


def test_sequences_get_the_predictors_numbers_and_lod(server, models):
    ids = np.array([[4], [9], [2], [30], [1]])
    expected = served.predict(models / "text", LoDTensor(ids, [[0, 2, 5]]))
    status, answer = server.infer("text", [row("ids", ids, lod=[[0, 2, 5]])])
    assert status == 200
    for found, right in zip(arrays(answer).values(), expected, strict=True):
        close(found, right.array)
    lods = [json.loads(o.get("parameters", {}).get("lod", "[]")) for o in answer["outputs"]]
    assert lods == [[[0, 2, 5]], []]


def test_tritonclient_works_unmodified(server, models):
    triton = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed")
    client = triton.InferenceServerClient(f"{server.host}:{server.port}")
    try:
        assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("text", "1")
        assert client.get_model_metadata("image")["inputs"][0]["shape"] == [-1, 3, 8, 8]
        x = picture(2)
        image = triton.InferInput("image", list(x.shape), "FP32")
        image.set_data_from_numpy(x)
        answer = client.infer("image", [image], request_id="7")
        output = answer.get_response()["outputs"][0]["name"]
        close(answer.as_numpy(output), served.predict(models / "image", x)[0].array)
        texts = np.array([[4], [9], [2], [30], [1]])
        ids, offsets = triton.InferInput("ids", [5, 1], "INT64"), triton.InferInput("ids.lod.0", [3], "INT64")
        ids.set_data_from_numpy(texts)
        offsets.set_data_from_numpy(np.array([0, 2, 5]))
        names = [o["name"] for o in client.get_model_metadata("text")["outputs"]]
        wanted = [triton.InferRequestedOutput(name, binary_data=True) for name in names]
        answer = client.infer("text", [ids, offsets], outputs=wanted)
        expected = served.predict(models / "text", LoDTensor(texts, [[0, 2, 5]]))
        close(answer.as_numpy(names[0]), expected[0].array)
        assert answer.as_numpy(names[1]).tolist() == [0, 2, 5]
        close(answer.as_numpy(names[2]), expected[1].array)
        with pytest.raises(Exception, match="no input 'imge'"):
            client.infer("image", [triton.InferInput("imge", [1], "FP32").set_data_from_numpy(np.zeros(1, np.float32))])
    finally:
        client.close()


def test_versions_are_in_the_path_and_the_newest_is_the_default(server):
    x = np.array([[1, 2]], np.float32)
    for version, factor in (("", 20), ("1", 10), ("2", 20)):
        status, answer = server.infer("scaled", [row("x", x)], version)
        (found,) = arrays(answer).values()
        assert status == 200 and answer["model_version"] == (version or "2")
        np.testing.assert_array_equal(found, x * factor)
    assert server.get("/v2/models/scaled")[1]["versions"] == ["1", "2"]


# Batches --------------------------------------------------------------------------------------------------------------
def test_requests_of_all_lengths_are_joined_and_get_their_own_numbers(server, models):
    texts = [random.integers(0, 50, (n, 1)) for n in [1, 7, 3, 12, 2, 5, 9, 4] * 2]
    expected = [served.predict(models / "text", LoDTensor(t, [[0, len(t)]])) for t in texts]
    before = len(server.events)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda t: server.infer("text", [row("ids", t, lod=[[0, len(t)]])]), texts))
    for (status, answer), right in zip(answers, expected, strict=True):
        assert status == 200
        for found, value in zip(arrays(answer).values(), right, strict=True):
            close(found, value.array)

    def lines() -> list[dict]:
        return [e for e in server.events[before:] if e["event"] == "request" and e["model"] == "text"]

    server.until(lambda: len(lines()) == len(answers))
    assert max(line["batch_requests"] for line in lines()) > 1
    assert server.metric("oprack_batch_requests_sum", model="text") > server.metric(
        "oprack_batch_requests_count", model="text"
    )


def test_what_cannot_be_joined_runs_alone(server, models):
    """Pictures with a wrong number of entries beside good ones, and a model whose rows depend on each other."""
    xs = [random.standard_normal((n, 4)).astype(np.float32) for n in (2, 3, 2, 4)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda x: server.infer("centred", [row("x", x)]), xs))
    for (status, answer), x in zip(answers, xs, strict=True):
        (found,) = arrays(answer).values()
        assert status == 200
        close(found, x - x.mean(0, keepdims=True))
    assert server.get("/v2/models/centred")[1]["parameters"]["batching"].startswith("none: output")


def test_a_bad_request_in_a_batch_harms_only_itself(server, models):
    """An id outside of the vocabulary fails in the op; those joined with it get their numbers."""
    good = np.array([[3], [4]])
    (right, _) = served.predict(models / "text", LoDTensor(good, [[0, 2]]))
    texts = [good, np.array([[999]]), good, good]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda t: server.infer("text", [row("ids", t, lod=[[0, len(t)]])]), texts))
    assert [status == 200 for status, _ in answers] == [True, False, True, True]
    assert 400 <= answers[1][0] <= 500 and "lookup_table" in answers[1][1]["error"]
    for _, answer in (answers[0], *answers[2:]):
        close(next(iter(arrays(answer).values())), right.array)


# Errors and limits ----------------------------------------------------------------------------------------------------
def test_names_are_no_paths(server):
    for name in ("..", "%2e%2e", "..%2f..%2fetc", "image%2f..", "nothing", "%00", "a" * 5000, ".hidden", "image%0a"):
        status, body, _ = server.request("GET", f"/v2/models/{name}")
        assert status == 404, (name, body)
        status, body, _ = server.request("POST", f"/v2/models/{name}/infer", "{}")
        assert status == 404, (name, body)
    assert server.request("GET", "/v2/models/image/versions/..")[0] == 404
    assert server.get("/v2/models/image/versions/9")[0] == 404
    assert "nothing" not in server.request("GET", "/metrics")[1].decode()


def test_wrong_methods_and_encodings(server):
    assert server.request("GET", "/v2/models/image/infer")[0] == 405
    assert server.request("DELETE", "/v2/models/image")[0] == 405
    assert server.request("POST", "/v2/models/image/infer", b"x", {"Content-Encoding": "br"})[0] == 415
    for length in ("-1", "x", "9" * 30, "1_0"):
        headers = {"Inference-Header-Content-Length": length}
        assert server.request("POST", "/v2/models/image/infer", b"{}", headers)[0] == 400


def test_wrong_inputs_are_400_with_the_reason(server):
    status, answer = server.infer("image", [row("image", np.zeros([1, 3, 8, 9], np.float32))])
    assert status == 400 and "shape [1, 3, 8, 9]; expected [-1, 3, 8, 8]" in answer["error"]
    assert server.post("/v2/models/image/infer", b"[" * 200_000)[0] == 400
    assert server.post("/v2/models/image/infer", b"\xff")[0] == 400


def test_a_large_body_is_413_before_it_is_sent_and_while_it_is(server):
    before = len(server.events)
    with socket.create_connection((server.host, server.port), 10) as sock:
        sock.sendall(b"POST /v2/models/image/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n")
        assert sock.recv(65536).startswith(b"HTTP/1.1 413")
    with socket.create_connection((server.host, server.port), 10) as sock:
        sock.sendall(b"POST /v2/models/image/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        answer = b""
        try:
            for _ in range(40):
                sock.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
            answer = sock.recv(65536)
        except ConnectionError:
            pass
        assert not answer or answer.startswith(b"HTTP/1.1 413")
    first = server.event("request", status=413, after=before)
    assert server.event("request", status=413, after=server.events.index(first, before) + 1)


def test_slow_and_broken_clients_harm_nobody(server):
    """Heads and bodies that never end are cut off; other requests are answered meanwhile."""
    head = b"POST /v2/models/image/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n"
    starts = [b"", b"POST /v2", head, head + b"\r\n", head + b"\r\n{", b"\x16\x03\x01\x02\x00" * 20]
    socks = [socket.create_connection((server.host, server.port), 10) for _ in range(60)]
    for i, sock in enumerate(socks):
        sock.sendall(starts[i % len(starts)])
    try:
        began = time.monotonic()
        assert server.infer("image", [row("image", picture())])[0] == 200
        assert time.monotonic() - began < 1.4
        answers = []
        for sock in socks:
            try:
                answers.append(sock.recv(65536))
            except ConnectionError:
                answers.append(b"")
    finally:
        for sock in socks:
            sock.close()
    assert {a[:12] for a in answers} <= {b"", b"HTTP/1.1 408", b"HTTP/1.1 400"} and any(b" 408" in a for a in answers)
    with socket.create_connection((server.host, server.port), 10) as sock:
        try:
            for i in range(40):
                sock.sendall(b"GET /v2 HTTP/1.1\r\n" * (i == 0) + b"X-%d: " % i + b"y" * 4000 + b"\r\n")
                time.sleep(0.002)
            answer = sock.recv(65536)
        except ConnectionError:
            answer = b""
        assert not answer or answer.startswith(b"HTTP/1.1 400")


def test_a_clients_own_timeout_ends_its_waiting_and_no_worker(server):
    workers, before = server.workers("slow"), len(server.events)
    status, answer = server.infer("slow", [row("n", [8_000])], parameters={"timeout": 1_000})
    assert status == 504 and "not answered in its time" in answer["error"]
    status, answer = server.infer("slow", [row("n", [4])])
    assert status == 200 and answer["outputs"][0]["data"] == [6]
    assert server.workers("slow") == workers and "worker ended" not in {e["event"] for e in server.events[before:]}


def test_a_request_over_its_time_is_504_and_a_run_over_the_servers_is_ended(server):
    (worker,) = server.workers("slow")
    began = time.monotonic()
    status, answer = server.infer("slow", [row("n", [10_000_000])], parameters={"timeout": 300_000})
    assert status == 504 and time.monotonic() - began < 3 and "not answered in its time" in answer["error"]
    server.event("worker ended", model="slow", pid=worker, status=-9)
    assert time.monotonic() - began > 5
    status, answer = server.infer("slow", [row("n", [4])])
    assert status == 200 and answer["outputs"][0]["data"] == [6]
    assert server.metric("oprack_worker_restarts_total", model="slow") >= 1


def test_a_client_that_leaves_takes_its_request_back(server):
    body = json.dumps({"inputs": [row("n", [40_000])]}).encode()
    head = b"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
    socks = [socket.create_connection((server.host, server.port), 10) for _ in range(4)]
    for sock in socks:
        sock.sendall(head + body)
    server.until(lambda: server.metric("oprack_queue_length", model="slow") == 3)
    for sock in socks:
        sock.close()
    server.until(lambda: server.metric("oprack_queue_length", model="slow") == 0, 2)
    assert server.event("request", model="slow", status=499)["error"] == "the client left"


def test_a_full_queue_is_503(server):
    def ask(_):
        return server.infer("slow", [row("n", [30_000_000])], parameters={"timeout": 500_000})[0]

    with ThreadPoolExecutor(60) as pool:
        statuses = list(pool.map(ask, range(60)))
    assert set(statuses) == {503, 504} and statuses.count(503) >= 10
    assert server.infer("slow", [row("n", [3])])[0] == 200


def test_a_killed_worker_is_replaced_and_its_request_runs_again(server):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(server.infer("slow", [row("n", [60_000])])))
    (worker,) = server.workers("slow")
    thread.start()
    server.until(lambda: server.metric("oprack_batches_running", model="slow") == 1)
    os.kill(worker, signal.SIGKILL)
    thread.join(30)
    ((status, answer),) = answers
    assert status == 200 and answer["outputs"][0]["data"] == [60_000 * 59_999 // 2]
    assert server.workers("slow") != [worker]


# Seen from outside ----------------------------------------------------------------------------------------------------
def test_every_request_is_a_line_of_the_log_and_a_count(server):
    before, count = len(server.events), server.metric("oprack_requests_total", model="image", status="200")
    server.infer("image", [row("image", picture())], id='a"\n{}')
    line = server.event("request", after=before, model="image", id='a"\n{}')
    assert line["status"] == 200 and line["batch_entries"] == 1
    assert set(line["stages_ms"]) == {"read", "decode", "queue", "run", "encode", "write"}
    assert server.metric("oprack_requests_total", model="image", status="200") == count + 1
    assert server.metric("oprack_stage_seconds_count", model="image", stage="run") >= count + 1


def test_a_trace_shows_the_stages_and_the_ops(server):
    status, answer = server.infer("text", [row("ids", [[1], [2]], lod=[[0, 2]])], parameters={"trace": True})
    trace = json.loads(answer["parameters"]["trace"])
    assert status == 200 and trace["otherData"]["batch"]["requests"] == 1
    names = {e["name"] for e in trace["traceEvents"] if e.get("cat") == "op"}
    assert any("lookup_table" in n or "embedding" in n for n in names) and "sequence_pool" in names
    stages = {e["name"]: e for e in trace["traceEvents"] if e.get("cat") == "stage"}
    assert list(stages) == ["read", "decode", "queue", "run"] and all(e["dur"] >= 0 for e in stages.values())


def test_nothing_was_printed_but_lines_of_json(server):
    assert "".join(server.other) == ""
