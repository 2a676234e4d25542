"""Extensions of the protocol, by the clients of Triton for both protocols."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import served
from oprack_serve import answers, protocol, wire
from oprack_serve.app import make_app
from oprack_serve.errors import RequestError
from oprack_serve.extensions import bytes_tensors, shared_memory
from oprack_serve.log import JsonLog
from oprack_serve.protocol import Limits
from oprack_serve.settings import Settings
from oprack_serve.signature import Signature, Tensor, TensorSpec

http = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed")
triton = pytest.importorskip("tritonclient.grpc", reason="tritonclient's gRPC client can't be imported")
messages = pytest.importorskip("oprack_serve.grpc.messages")
random = np.random.default_rng(5)


@pytest.fixture(scope="module")
def running(models) -> Iterator[served.Served]:
    options = ("--timeout", "20", "--max-batch", "16", "--max-body", "1M", "--shared-memory")
    running = served.Served("--models", str(models), "--poll", "0", "--grpc-port", "0", *options)
    running.grpc = running.event("listening", after=1)["url"].removeprefix("grpc://")
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def over_http(running) -> Iterator[http.InferenceServerClient]:
    with http.InferenceServerClient(f"{running.host}:{running.port}") as client:
        yield client


@pytest.fixture(scope="module")
def over_grpc(running) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(running.grpc) as client:
        yield client


def tensor(kind, name: str, array):
    array = np.asarray(array)
    names = {"float32": "FP32", "int64": "INT64"}
    return kind.InferInput(name, list(array.shape), names[array.dtype.name]).set_data_from_numpy(array)


# Configuration and statistics -----------------------------------------------------------------------------------------
def test_a_configuration_has_dims_without_the_batch_where_there_is_one(over_http, over_grpc):
    found = over_http.get_model_config("image")
    assert (found["name"], found["backend"], found["max_batch_size"]) == ("image", "oprack", 16)
    picture = {"name": "image", "data_type": "TYPE_FP32", "dims": [3, 8, 8], "format": "FORMAT_NCHW"}
    assert found["input"] == [picture]
    assert [o["dims"] for o in found["output"]] == [[4]]
    assert found["instance_group"] == [{"name": "image", "kind": "KIND_CPU", "count": 1}]
    assert found["dynamic_batching"] == {"max_queue_delay_microseconds": 0}
    config = over_grpc.get_model_config("image").config
    assert (config.name, config.max_batch_size, list(config.input[0].dims)) == ("image", 16, [3, 8, 8])
    assert config.input[0].data_type == triton.model_config_pb2.TYPE_FP32
    assert config.input[0].format == triton.model_config_pb2.ModelInput.FORMAT_NCHW
    assert config.WhichOneof("scheduling_choice") == "dynamic_batching"
    assert config.instance_group[0].count == 1 and config.version_policy.WhichOneof("policy_choice") == "all"


def test_sequences_and_models_that_are_not_joined_have_whole_dims(over_http, over_grpc):
    found = over_http.get_model_config("text", "1")
    assert found["max_batch_size"] == 0 and found["parameters"]["batching"] == {"string_value": "by LoD"}
    assert {row["format"] for row in found["input"]} == {"FORMAT_NONE"}
    assert [(row["name"], row["dims"]) for row in found["input"]] == [("ids", [-1, 1]), ("ids.lod.0", [-1])]
    found = over_http.get_model_config("centred")
    assert found["max_batch_size"] == 0 and "dynamic_batching" not in found
    assert list(over_grpc.get_model_config("centred").config.input[0].dims) == [-1, 4]
    with pytest.raises(http.InferenceServerException, match="Request for unknown model: there is no model 'nobody'"):
        over_http.get_model_config("nobody")


def test_statistics_count_requests_entries_and_batches(over_http, over_grpc):
    def counts(version: str) -> dict:
        (found,) = over_http.get_inference_statistics("scaled", version)["model_stats"]
        return found

    before = counts("1")
    for count in (1, 3, 3):
        over_http.infer("scaled", [tensor(http, "x", np.ones([count, 2], np.float32))], "1")
    over_grpc.infer("scaled", [tensor(triton, "x", np.ones([5, 2], np.float32))], "1")
    with pytest.raises(http.InferenceServerException):
        over_http.infer("scaled", [tensor(http, "x", np.ones([1, 3], np.float32))], "1")
    after = counts("1")
    assert after["inference_count"] - before["inference_count"] == 12
    assert after["execution_count"] - before["execution_count"] == 4
    for part, least in (("success", 4), ("fail", 1), ("queue", 4), ("compute_input", 4), ("compute_infer", 4)):
        now, then = after["inference_stats"][part], before["inference_stats"][part]
        assert now["count"] - then["count"] == least, part
        assert now["ns"] > then["ns"], part
    assert after["inference_stats"]["success"]["ns"] >= after["inference_stats"]["compute_infer"]["ns"]
    assert {row["batch_size"]: row["compute_infer"]["count"] for row in after["batch_stats"]} == {1: 1, 3: 2, 5: 1}
    assert after["last_inference"] > before["last_inference"]
    (same,) = over_grpc.get_inference_statistics("scaled", "1").model_stats
    assert (same.inference_count, same.execution_count) == (after["inference_count"], after["execution_count"])
    assert same.inference_stats.fail.ns == after["inference_stats"]["fail"]["ns"]


def test_statistics_of_all_versions_and_all_models(over_http, over_grpc):
    rows = over_http.get_inference_statistics("scaled")["model_stats"]
    assert [row["version"] for row in rows] == ["1", "2"]
    names = {(row["name"], row["version"]) for row in over_http.get_inference_statistics()["model_stats"]}
    assert names >= {("image", "1"), ("text", "1"), ("scaled", "2")}
    assert {(row.name, row.version) for row in over_grpc.get_inference_statistics().model_stats} == names


# OpenAPI --------------------------------------------------------------------------------------------------------------
def test_the_document_has_every_route_and_says_what_is_answered(running):
    document = running.get("/openapi.json")[1]
    assert document["openapi"] == "3.1.0"
    app = make_app(Settings(), JsonLog(descriptor=1))
    routes = {(route.path, method.lower()) for route in app.routes for method in route.methods - {"HEAD"}}
    described = {(path, method) for path, row in document["paths"].items() for method in row if method != "parameters"}
    assert described == routes
    assert document["paths"]["/v2/models/{name}"]["parameters"][0]["schema"]["enum"] == [
        *("centred", "image", "scaled", "slow", "text"),
    ]
    x = [served.row("x", np.ones([1, 2], np.float32))]
    paths = {"{name}": "scaled", "{version}": "1"}
    for path, row in document["paths"].items():
        if "systemsharedmemory/region" in path or path == "/metrics":
            continue
        (method,) = row.keys() - {"parameters"}
        real = path
        for key, value in paths.items():
            real = real.replace(key, value)
        body = {"inputs": x} if path.endswith("infer") else {}
        answer = running.get(real) if method == "get" else running.post(real, body)
        assert answer[0] == 200, (path, answer)
        schema = row[method]["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.Draft202012Validator(schema | {"components": document["components"]}).validate(answer[1])
    schema = {"$ref": "#/components/schemas/InferRequest", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate({"inputs": x})
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate({"inputs": [{"name": "x"}]})


# BYTES and classification ---------------------------------------------------------------------------------------------
ELEMENTS = [b"one", b"", "zwölf".encode(), b"\xff\x00"]


def test_elements_of_bytes_go_as_tritonclient_writes_them():
    from tritonclient.utils import serialize_byte_tensor

    array = np.array(ELEMENTS, object).reshape(2, 2)
    data = serialize_byte_tensor(array).item()
    assert bytes_tensors.to_binary(array) == data
    found = bytes_tensors.from_binary("x", memoryview(data), (2, 2), 4)
    assert found.shape == (2, 2) and found.reshape(-1).tolist() == ELEMENTS
    (same,) = wire.unpack(*split(wire.pack({}, [array])))[1]
    assert same.shape == (2, 2) and same.reshape(-1).tolist() == ELEMENTS


def split(pieces: list) -> tuple[bytes, memoryview]:
    """Text and body of a message."""
    data = b"".join(pieces)
    size, _ = wire._SIZES.unpack_from(data)
    return data[wire._SIZES.size : wire._SIZES.size + size], memoryview(data)[wire._SIZES.size + size :]


@pytest.mark.parametrize(
    ("data", "count", "match"),
    [
        (b"\1\0\0\0a\1\0\0\0", 2, "end within element 1 of 2"),
        (b"\1\0\0\0a\1\0", 1, "2 bytes are left"),
        (b"\xff\xff\xff\xffa", 1, "end within element 0 of 1"),
        (b"\0\0\0\0", 1 << 40, "too few for 1099511627776 elements"),
    ],
)
def test_damaged_elements_are_refused(data, count, match):
    with pytest.raises(RequestError, match=match):
        bytes_tensors.from_binary("x", memoryview(data), (count,), count)


def test_strings_come_in_json_and_by_grpc():
    signature = Signature((TensorSpec("text", "object", (-1,)),), (TensorSpec("y", "object", (-1,)),))
    texts = ["one", "", "zwölf"]
    head = {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [3], "data": texts}]}
    found, inputs = protocol.decode(signature, memoryview(json.dumps(head).encode()), None, Limits())
    assert inputs["text"].array.tolist() == [text.encode() for text in texts]
    message = triton.service_pb2.ModelInferRequest()
    row = message.inputs.add(name="text", datatype="BYTES", shape=[3])
    row.contents.bytes_contents.extend(text.encode() for text in texts)
    found, inputs = messages.Request(message.SerializeToString()).decode(signature, Limits())
    assert inputs["text"].array.tolist() == [text.encode() for text in texts]
    outputs = {"y": Tensor(inputs["text"].array, [])}
    (_, binary), _ = answers.encode(found, outputs, "m", "1", {})  # as gRPC has it
    assert binary == bytes_tensors.to_binary(outputs["y"].array)
    found.outputs = [("y", False)]
    (answer,), _ = answers.encode(found, outputs, "m", "1", {})
    assert json.loads(answer)["outputs"] == [{"name": "y", "datatype": "BYTES", "shape": [3], "data": texts}]


def test_the_largest_classes(over_http, over_grpc, models):
    x = random.standard_normal((3, 3, 8, 8)).astype(np.float32)
    (expected,) = served.predict(models / "image", x)
    for kind, client in ((http, over_http), (triton, over_grpc)):
        (output,) = [o["name"] if kind is http else o.name for o in outputs_of(client, "image")]
        wanted = [kind.InferRequestedOutput(output, class_count=2)]
        found = client.infer("image", [tensor(kind, "image", x)], outputs=wanted).as_numpy(output)
        assert found.shape == (3, 2)
        for row, values in zip(found, expected.array, strict=True):
            order = np.argsort(-values)[:2]
            assert [int(text.decode().split(":")[1]) for text in row] == order.tolist()
            close = [float(text.decode().split(":")[0]) for text in row]
            np.testing.assert_allclose(close, values[order], atol=2e-5)
    with pytest.raises(http.InferenceServerException, match="expected 0 to 1000 classes"):
        over_http.infer(
            "image", [tensor(http, "image", x)], outputs=[http.InferRequestedOutput(output, class_count=5000)]
        )


def outputs_of(client, model: str, version: str = "1"):
    found = client.get_model_metadata(model, version)
    return found["outputs"] if isinstance(found, dict) else found.outputs


# Compression ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_bodies_are_compressed_both_ways(running, over_http, over_grpc, algorithm):
    x = np.arange(4000, dtype=np.float32).reshape(-1, 2)
    for binary in (True, False):
        (output,) = outputs_of(over_http, "scaled")
        wanted = [http.InferRequestedOutput(output["name"], binary_data=binary)]
        answer = over_http.infer(
            "scaled",
            [tensor(http, "x", x)],
            "1",
            wanted,
            request_compression_algorithm=algorithm,
            response_compression_algorithm=algorithm,
        )
        np.testing.assert_array_equal(answer.as_numpy(output["name"]), x * 10)
    answer = over_grpc.infer("scaled", [tensor(triton, "x", x)], "1", compression_algorithm=algorithm)
    np.testing.assert_array_equal(answer.as_numpy(output["name"]), x * 10)


def test_small_answers_and_clients_that_do_not_ask_get_plain_ones(running):
    path, small = "/v2/models/scaled/versions/1/infer", served.row("x", np.ones([1, 2], np.float32))
    large = served.row("x", np.ones([400, 2], np.float32))
    for row, accepted, encoding in (
        (small, "gzip", None),
        (large, "gzip;q=0, br", None),
        (large, "", None),
        (large, "br, deflate;q=0.5", "deflate"),
        (large, "gzip", "gzip"),
    ):
        headers = {"Accept-Encoding": accepted} if accepted else {}
        status, _, headers = running.request("POST", path, json.dumps({"inputs": [row]}), headers)
        assert (status, headers.get("content-encoding")) == (200, encoding)


def test_what_is_decompressed_is_bounded(running):
    path = "/v2/models/scaled/infer"
    for data, encoding, status, match in (
        (gzip.compress(bytes(50 << 20)), "gzip", 413, "more than 1048576 bytes when it is decompressed"),
        (zlib.compress(bytes(2 << 20)), "deflate", 413, "more than 1048576 bytes"),
        (gzip.compress(b"{}")[:-9], "gzip", 400, "cut off"),
        (gzip.compress(b"{}") + b"x", "gzip", 400, "something follows"),
        (b"{}", "gzip", 400, "no gzip"),
        (b"{}", "br", 415, "expected gzip, deflate or identity"),
    ):
        found, body, _ = running.request("POST", path, data, {"Content-Encoding": encoding})
        assert (found, match in body.decode()) == (status, True), body


# Shared memory --------------------------------------------------------------------------------------------------------
def test_tensors_in_shared_memory(over_http, over_grpc):
    from tritonclient.utils import shared_memory as shm

    x = random.standard_normal((4, 2)).astype(np.float32)
    name = f"/oprack_test_{os.getpid()}"
    handle = shm.create_shared_memory_region("mine", name, 256)
    try:
        shm.set_shared_memory_region(handle, [x], offset=16)
        for kind, client in ((http, over_http), (triton, over_grpc)):
            client.unregister_system_shared_memory()
            client.unregister_cuda_shared_memory()  # as Triton's examples begin; there is none to forget
            client.register_system_shared_memory("mine", name, 256)
            status = client.get_system_shared_memory_status()
            (row,) = status if kind is http else status.regions.values()
            assert (row["byte_size"] if kind is http else row.byte_size) == 256
            output = next(o["name"] if kind is http else o.name for o in outputs_of(client, "scaled"))
            wanted = kind.InferRequestedOutput(output)
            wanted.set_shared_memory("mine", 32, offset=128)
            given = kind.InferInput("x", [4, 2], "FP32")
            given.set_shared_memory("mine", 32, offset=16)
            answer = client.infer("scaled", [given], "1", outputs=[wanted])
            np.testing.assert_array_equal(shm.get_contents_as_numpy(handle, np.float32, [4, 2], offset=128), x * 10)
            (row,) = answer.get_response()["outputs"] if kind is http else answer.get_response().outputs
            assert "data" not in row if kind is http else not any(answer.get_response().raw_output_contents)
            given.set_shared_memory("mine", 32, offset=240)
            with pytest.raises(Exception, match="32 bytes at 240 are not all within region 'mine'"):
                client.infer("scaled", [given], "1")
            given.set_shared_memory("mine", 32, offset=16)
            wanted.set_shared_memory("mine", 31, offset=128)
            with pytest.raises(Exception, match="an output has 32 bytes; its shared_memory_byte_size is 31"):
                client.infer("scaled", [given], "1", outputs=[wanted])
            with pytest.raises(Exception, match="is registered already"):
                client.register_system_shared_memory("mine", name, 256)
            client.unregister_system_shared_memory("mine")
            with pytest.raises(Exception, match="there is no shared memory region 'mine'"):
                client.infer("scaled", [given], "1")
    finally:
        shm.destroy_shared_memory_region(handle)


def test_an_object_that_its_client_cuts_off_ends_no_process(over_http):
    key = f"oprack_cut_{os.getpid()}"
    path = Path("/dev/shm") / key
    path.write_bytes(bytes(1 << 16))
    try:
        over_http.register_system_shared_memory("cut", "/" + key, 1 << 16)
        given = http.InferInput("x", [8192, 2], "FP32")
        given.set_shared_memory("cut", 1 << 16)
        wanted = http.InferRequestedOutput(outputs_of(over_http, "scaled", "2")[0]["name"])
        wanted.set_shared_memory("cut", 1 << 16)
        over_http.infer("scaled", [given], outputs=[wanted])
        os.truncate(path, 100)
        with pytest.raises(http.InferenceServerException, match="is smaller than it was"):
            over_http.infer("scaled", [given])
        with pytest.raises(http.InferenceServerException, match="is smaller than it was"):
            over_http.infer("scaled", [tensor(http, "x", np.ones([8192, 2], np.float32))], outputs=[wanted])
        assert path.stat().st_size == 100
    finally:
        path.unlink()
        over_http.unregister_system_shared_memory()


@pytest.mark.parametrize(
    ("key", "offset", "size", "match"),
    [
        ("/../etc/passwd", 0, 1, "expected the name of a POSIX shared memory object"),
        ("../../etc/passwd", 0, 1, "expected the name"),
        ("/.hidden", 0, 1, "expected the name"),
        ("/no_such_object", 0, 1, "can't be opened: No such file"),
        ("/small", 0, 11, "has 10 bytes; the region ends at 11"),
        ("/small", 10, 1, "the region ends at 11"),
        ("/small", -1, 5, "expected offset and byte_size"),
        ("/small", 0, 0, "expected offset and byte_size"),
        ("/small", 0, True, "expected offset and byte_size"),
        ("/link", 0, 1, "can't be opened: Too many levels of symbolic links"),
        ("/folder", 0, 1, "can't be opened: Is a directory"),
        (7, 0, 1, "expected the name"),
    ],
)
def test_a_key_is_no_path_and_sizes_are_checked(tmp_path, monkeypatch, key, offset, size, match):
    monkeypatch.setattr(shared_memory, "FOLDER", str(tmp_path))
    (tmp_path / "small").write_bytes(bytes(10))
    (tmp_path / "link").symlink_to(tmp_path / "small")
    (tmp_path / "folder").mkdir()
    regions = shared_memory.Regions(allowed=True)
    with pytest.raises(RequestError, match=match):
        regions.register("mine", key, offset, size)
    assert regions.status() == []
    with pytest.raises(RequestError, match="start the server with --shared-memory"):
        shared_memory.Regions(allowed=False).register("mine", key, offset, size)


def test_large_json_sees_regions_too(running, over_http):
    """It is decoded by another process."""
    key = f"oprack_large_{os.getpid()}"
    path = Path("/dev/shm") / key
    path.write_bytes(np.array([3, 4], np.float32).tobytes())
    try:
        over_http.register_system_shared_memory("large", "/" + key, 8)
        place = {"shared_memory_region": "large", "shared_memory_byte_size": 8}
        row = {"name": "x", "datatype": "FP32", "shape": [1, 2], "parameters": place}
        status, answer = running.infer("scaled", [row], "1", parameters={"padding": "x" * 100_000})
        assert status == 200 and answer["outputs"][0]["data"] == [30, 40]
    finally:
        path.unlink()
        over_http.unregister_system_shared_memory("large")
