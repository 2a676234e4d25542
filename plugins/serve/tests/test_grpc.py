"""gRPC beside HTTP: the unmodified client of Triton, limits, deadlines, streams, and requests that are damaged."""

from __future__ import annotations

import queue
import struct
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
import served
from oprack.tensor import LoDTensor
from oprack_serve.errors import RequestError
from oprack_serve.grpc import messages
from oprack_serve.protocol import Limits
from oprack_serve.signature import Signature, TensorSpec

grpc = pytest.importorskip("grpc", reason="grpcio is not installed")
triton = pytest.importorskip("tritonclient.grpc", reason="tritonclient's gRPC client can't be imported")
service_pb2 = triton.service_pb2
METHODS = "/inference.GRPCInferenceService/"
Code = grpc.StatusCode
random = np.random.default_rng(5)


@pytest.fixture(scope="module")
def running(models) -> Iterator[served.Served]:
    options = ("--max-delay", "20", "--timeout", "5", "--read-timeout", "2", "--max-body", "1M", "--max-inflight", "4M")
    running = served.Served("--models", str(models), "--poll", "0", "--grpc-port", "0", "--allow-trace", *options)
    running.grpc = running.event("listening", after=1)["url"].removeprefix("grpc://")
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def client(running) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(running.grpc) as client:
        yield client


@pytest.fixture(scope="module")
def channel(running) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(running.grpc) as channel:
        yield channel


def tensor(name: str, array) -> triton.InferInput:
    array = np.asarray(array)
    names = {"float32": "FP32", "int64": "INT64"}
    return triton.InferInput(name, list(array.shape), names[array.dtype.name]).set_data_from_numpy(array)


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def refused(code, match: str, call, *args, **kwargs) -> None:
    """The call ends with that code and a message like that."""
    with pytest.raises(Exception) as caught:
        call(*args, **kwargs)
    error = caught.value
    found = error.code() if isinstance(error, grpc.RpcError) else error.status()
    text = error.details() if isinstance(error, grpc.RpcError) else error.message()
    assert str(found) == str(code) and match in text, (found, text)


# Triton's client ------------------------------------------------------------------------------------------------------
def test_what_it_says_of_itself(client):
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("text", "1")
    assert client.get_server_metadata(as_json=True)["name"] == "oprack"
    found = client.get_model_metadata("text", as_json=True)
    assert found["versions"] == ["1"] and found["inputs"] == [
        {"name": "ids", "datatype": "INT64", "shape": ["-1", "1"]},
        {"name": "ids.lod.0", "datatype": "INT64", "shape": ["-1"]},
    ]
    index = {(r["name"], r["version"]): r for r in client.get_model_repository_index(as_json=True)["models"]}
    assert index["scaled", "2"]["state"] == "READY" and "CorruptModelError" in index["broken", "1"]["reason"]
    refused(Code.NOT_FOUND, "there is no model 'nobody'", client.get_model_metadata, "nobody")
    refused(Code.UNAVAILABLE, "could not be loaded", client.is_model_ready, "broken")


def test_a_picture_and_sequences_get_the_predictors_numbers(client, models):
    x = random.standard_normal((2, 3, 8, 8)).astype(np.float32)
    answer = client.infer("image", [tensor("image", x)], request_id="7")
    assert (answer.get_response().id, answer.get_response().model_version) == ("7", "1")
    (expected,) = served.predict(models / "image", x)
    close(answer.as_numpy(answer.get_response().outputs[0].name), expected.array)

    ids = np.array([[4], [9], [2], [30], [1]])
    expected = served.predict(models / "text", LoDTensor(ids, [[0, 2, 5]]))
    names = [o.name for o in client.get_model_metadata("text").outputs]
    wanted = [triton.InferRequestedOutput(name) for name in names]
    answer = client.infer("text", [tensor("ids", ids), tensor("ids.lod.0", [0, 2, 5])], outputs=wanted)
    close(answer.as_numpy(names[0]), expected[0].array)
    assert answer.as_numpy(names[1]).tolist() == [0, 2, 5]
    close(answer.as_numpy(names[2]), expected[1].array)
    answer = client.infer("text", [tensor("ids", ids)], parameters={"ids.lod": "[[0, 2, 5]]"})
    assert answer.get_output(names[0]).parameters["lod"].string_param == "[[0, 2, 5]]"


def test_shared_memory_is_refused_unless_the_server_was_told(running, client):
    """By both protocols: each call that would open, list or forget an object, and tensors that say they are in one."""
    region = "/v2/systemsharedmemory/region/mine"
    for answer in (
        running.post(f"{region}/register", {"key": "/mine", "offset": 0, "byte_size": 8}),
        running.get(f"{region}/status"),
        running.post(f"{region}/unregister", {}),
        running.post("/v2/cudasharedmemory/unregister", {}),
    ):
        assert answer[0] == 400 and "start the server with --shared-memory" in answer[1]["error"], answer
    place = {"shared_memory_region": "mine", "shared_memory_byte_size": 8}
    given = {"name": "x", "datatype": "FP32", "shape": [1, 2], "parameters": place}
    status, answer = running.infer("scaled", [given])
    assert status == 400 and "start the server with --shared-memory" in answer["error"]
    output = client.get_model_metadata("scaled").outputs[0].name
    x = served.row("x", np.ones([1, 2], np.float32))
    status, answer = running.infer("scaled", [x], outputs=[{"name": output, "parameters": place}])
    assert status == 400 and "start the server with --shared-memory" in answer["error"]
    elsewhere = triton.InferInput("x", [1, 2], "FP32")
    elsewhere.set_shared_memory("mine", 8)
    wanted = triton.InferRequestedOutput(output)
    wanted.set_shared_memory("mine", 8)
    for call, *arguments in (
        (client.register_system_shared_memory, "mine", "/mine", 8),
        (client.get_system_shared_memory_status,),
        (client.unregister_system_shared_memory,),
        (client.unregister_cuda_shared_memory,),
        (client.infer, "scaled", [elsewhere]),
        (client.infer, "scaled", [tensor("x", np.ones([1, 2], np.float32))], "", [wanted]),
    ):
        refused(Code.INVALID_ARGUMENT, "start the server with --shared-memory", call, *arguments)


def test_versions(client):
    x = np.array([[1, 2]], np.float32)
    for version, factor in (("", 20), ("1", 10), ("2", 20)):
        answer = client.infer("scaled", [tensor("x", x)], version)
        np.testing.assert_array_equal(answer.as_numpy(answer.get_response().outputs[0].name), x * factor)


def test_requests_of_both_protocols_share_a_batch(running, client):
    found: queue.Queue = queue.Queue()
    x = np.array([[1, 2]], np.float32)
    # they wait for the slot that this one has
    first = threading.Thread(target=client.infer, args=("slow", [tensor("n", [20_000])]))
    first.start()
    running.until(lambda: running.metric("oprack_batches_running", model="slow") == 1)
    over_http = threading.Thread(
        target=running.infer, args=("scaled", [served.row("x", x)]), kwargs={"id": "over http"}
    )
    over_http.start()
    client.async_infer(
        "scaled", [tensor("x", x)], lambda result, error: found.put((result, error)), request_id="over grpc"
    )
    result, error = found.get(timeout=20)
    assert error is None and result.as_numpy(result.get_response().outputs[0].name).tolist() == [[20, 40]]
    first.join()
    over_http.join()
    rows = [running.event("request", id=f"over {protocol}") for protocol in ("grpc", "http")]
    assert [e.get("protocol") for e in rows] == ["grpc", None]
    assert len({e["batch"] for e in rows}) == 1 and {e["batch_requests"] for e in rows} == {2}
    assert running.metric("oprack_requests_total", model="scaled", status="200") >= 2


def test_a_stream_answers_in_order_and_goes_on_after_an_error(client):
    found: queue.Queue = queue.Queue()
    client.start_stream(lambda result, error: found.put((result, error)))
    for n in range(40):
        inputs = [tensor("x" if n != 17 else "y", np.full((1 + n % 3, 2), n, np.float32))]
        client.async_stream_infer("scaled", inputs, request_id=str(n))
    for n in range(40):
        result, error = found.get(timeout=20)
        if n == 17:
            assert "no input 'y'" in str(error)
            continue
        assert error is None and result.get_response().id == str(n)
        assert result.get_response().parameters["triton_final_response"].bool_param
        values = result.as_numpy(result.get_response().outputs[0].name)
        assert values.tolist() == [[20 * n] * 2] * (1 + n % 3)
    client.stop_stream()


def test_errors_have_their_codes(running, client):
    x = np.ones([1, 2], np.float32)
    refused(Code.NOT_FOUND, "there is no model 'nobody'", client.infer, "nobody", [tensor("x", x)])
    refused(Code.NOT_FOUND, "version '9'", client.infer, "scaled", [tensor("x", x)], "9")
    refused(Code.UNAVAILABLE, "could not be loaded", client.infer, "broken", [tensor("x", x)])
    refused(Code.INVALID_ARGUMENT, "no input 'y'", client.infer, "scaled", [tensor("y", x)])
    refused(Code.INVALID_ARGUMENT, "shape [1, 3]", client.infer, "scaled", [tensor("x", np.ones([1, 3], np.float32))])
    large = np.ones([1 << 18, 2], np.float32)
    refused(Code.RESOURCE_EXHAUSTED, "1048576", client.infer, "scaled", [tensor("x", large)])
    refused(
        Code.DEADLINE_EXCEEDED,
        "not answered in its time",
        client.infer,
        "slow",
        [tensor("n", [10**7])],
        timeout=300_000,
    )
    refused(Code.UNIMPLEMENTED, "there is no method", client.load_model, "scaled")


def test_a_deadline_of_the_client_takes_its_request_out_of_the_queue(running, client):
    n = [tensor("n", [10**7])]
    refused(Code.DEADLINE_EXCEEDED, "", client.infer, "slow", n, request_id="impatient", client_timeout=0.4)
    row = running.event("request", id="impatient")
    assert (row["status"], row["protocol"]) == (499, "grpc") and row["ms"] < 4000
    running.until(lambda: running.metric("oprack_batches_running", model="slow") == 0)
    x = np.ones([1, 2], np.float32)
    assert client.infer("scaled", [tensor("x", x)]) is not None


# Messages that no client of others makes ------------------------------------------------------------------------------
def request(**fields):
    """A request to `scaled`, of two numbers as they are typed."""
    message = service_pb2.ModelInferRequest(model_name="scaled")
    row = message.inputs.add(name="x", datatype="FP32", shape=[1, 2])
    row.contents.fp32_contents.extend([1.5, -2.0])
    for key, value in fields.items():
        setattr(message, key, value)
    return message


def test_typed_contents(channel):
    infer = channel.unary_unary(METHODS + "ModelInfer", None, service_pb2.ModelInferResponse.FromString)
    answer = infer(request().SerializeToString())
    assert np.frombuffer(answer.raw_output_contents[0], np.float32).tolist() == [30.0, -40.0]
    message = request()
    message.raw_input_contents.append(b"\0" * 8)
    refused(Code.INVALID_ARGUMENT, "expected one of them", infer, message.SerializeToString())
    message = request()
    message.inputs[0].contents.int_contents.append(3)
    refused(Code.INVALID_ARGUMENT, "expected contents in field fp32_contents", infer, message.SerializeToString())
    message = request()
    message.inputs[0].ClearField("contents")
    refused(Code.INVALID_ARGUMENT, "takes 8 bytes", infer, message.SerializeToString())


@pytest.mark.parametrize(
    ("data", "code", "match"),
    [
        (b"\xff" * 40, Code.INVALID_ARGUMENT, "no ModelInferRequest"),
        (b"\x3a\xff\xff\xff\x7f", Code.INVALID_ARGUMENT, "cut off"),
        (b"\x0a\x02\xff\xfe", Code.INVALID_ARGUMENT, "no ModelInferRequest"),
        (b"\x2a\x00" * 100_000, Code.RESOURCE_EXHAUSTED, "8192 fields"),
        (b"\x3a\x00" * 100_000, Code.RESOURCE_EXHAUSTED, "8192 fields"),
        (b"\x2a\xc0\x9a\x0c" + b"\x22\x00" * 100_000, Code.RESOURCE_EXHAUSTED, "8192 fields"),
        (b"", Code.NOT_FOUND, "no model ''"),
    ],
)  # fmt: skip
def test_damaged_messages_get_an_error_and_no_memory(channel, data, code, match):
    infer = channel.unary_unary(METHODS + "ModelInfer")
    refused(code, match, infer, data)


def test_small_methods_take_small_messages(channel):
    live = channel.unary_unary(METHODS + "ServerLive", None, service_pb2.ServerLiveResponse.FromString)
    assert live(b"").live
    refused(Code.RESOURCE_EXHAUSTED, "at most 65536", live, b"\x0a\x80\x80\x04" + bytes(65536))
    refused(Code.INVALID_ARGUMENT, "no ModelRequest", channel.unary_unary(METHODS + "ModelReady"), b"\x0a\xff")


def test_slow_clients_hold_up_no_others(running, channel):
    """Streams that are open and say nothing have the places of all readers; a request gets one all the same."""
    stop = threading.Event()

    def nothing():
        stop.wait(20)
        yield from ()

    stream = channel.stream_stream(METHODS + "ModelStreamInfer")
    idle = [stream(nothing()) for _ in range(8)]
    try:
        time.sleep(0.3)
        live = channel.unary_unary(METHODS + "ServerLive", None, service_pb2.ServerLiveResponse.FromString)
        for _ in range(3):
            assert live(b"", timeout=15).live
    finally:
        stop.set()
    ends = []
    for each in idle:
        try:
            list(each)
            ends.append(Code.OK)
        except grpc.RpcError as error:
            ends.append(error.code())
    assert Code.UNAVAILABLE in ends


# Decoding -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("datatype", ["BOOL", "UINT8", "INT8", "INT16", "INT32", "INT64", "FP32", "FP64"])
def test_numbers_are_decoded_as_protobuf_writes_them(datatype):
    dtype = np.dtype(messages.dtype_of(datatype))
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        values = np.concatenate([[limits.min, limits.max, 0, 1], random.integers(limits.min, limits.max, 70_000)])
        values = values.astype(dtype)
    else:
        values = (random.standard_normal(70_000) > 0).astype(dtype)
    message = service_pb2.ModelInferRequest(model_name="m")
    row = message.inputs.add(name="x", datatype=datatype, shape=[values.size])
    getattr(row.contents, messages._NUMBERS[datatype]).extend(values.tolist())
    signature = Signature((TensorSpec("x", dtype.name, (-1,)),), (TensorSpec("y", dtype.name, (-1,)),))
    found = messages.Request(message.SerializeToString()).decode(signature, Limits())[1]["x"].array
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize(
    ("packed", "match"),
    [(b"\x80", "cut off"), (b"\x80" * 10 + b"\1", "ten bytes"), (b"\x80\x80\x80\x80\x10", "out of the range of int32")],
)
def test_damaged_numbers(packed, match):
    with pytest.raises(RequestError, match=match):
        messages.varints("x", b"\1\2" + packed, np.dtype(np.int32))


def test_a_message_may_come_in_parts():
    message = request()
    first = service_pb2.ModelInferRequest(model_name="m")
    first.inputs.add(name="x", datatype="FP32", shape=[1, 2])
    part = b"\x32\x04" + struct.pack("<f", 1.5) + b"\x32\x04" + struct.pack("<f", -2.0)  # fp32_contents, twice
    row = first.inputs[0].SerializeToString() + b"\x2a" + bytes([len(part)]) + part
    data = b"\x0a\x01m" + b"\x2a" + bytes([len(row)]) + row
    signature = Signature((TensorSpec("x", "float32", (-1, 2)),), (TensorSpec("y", "float32", (-1, 2)),))
    _, whole = messages.Request(message.SerializeToString()).decode(signature, Limits())
    _, parts = messages.Request(data).decode(signature, Limits())
    assert parts["x"].array.tolist() == whole["x"].array.tolist() == [[1.5, -2.0]]
