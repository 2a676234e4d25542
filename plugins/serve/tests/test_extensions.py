"""Extensions of the protocol, by the clients of Triton for both protocols."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import served

http = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed")
triton = pytest.importorskip("tritonclient.grpc", reason="tritonclient's gRPC client can't be imported")
random = np.random.default_rng(5)


@pytest.fixture(scope="module")
def running(models) -> Iterator[served.Served]:
    options = ("--timeout", "20", "--max-batch", "16", "--max-body", "1M")
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
    assert found["input"] == [{"name": "image", "data_type": "TYPE_FP32", "dims": [3, 8, 8]}]
    assert [o["dims"] for o in found["output"]] == [[4]]
    assert found["instance_group"] == [{"name": "image", "kind": "KIND_CPU", "count": 1}]
    assert found["dynamic_batching"] == {"max_queue_delay_microseconds": 0}
    config = over_grpc.get_model_config("image").config
    assert (config.name, config.max_batch_size, list(config.input[0].dims)) == ("image", 16, [3, 8, 8])
    assert config.input[0].data_type == triton.model_config_pb2.TYPE_FP32
    assert config.WhichOneof("scheduling_choice") == "dynamic_batching"
    assert config.instance_group[0].count == 1 and config.version_policy.WhichOneof("policy_choice") == "all"


def test_sequences_and_models_that_are_not_joined_have_whole_dims(over_http, over_grpc):
    found = over_http.get_model_config("text", "1")
    assert found["max_batch_size"] == 0 and found["parameters"]["batching"] == {"string_value": "by LoD"}
    assert [(row["name"], row["dims"]) for row in found["input"]] == [("ids", [-1, 1]), ("ids.lod.0", [-1])]
    found = over_http.get_model_config("centred")
    assert found["max_batch_size"] == 0 and "dynamic_batching" not in found
    assert list(over_grpc.get_model_config("centred").config.input[0].dims) == [-1, 4]
    with pytest.raises(http.InferenceServerException, match="there is no model 'nobody'"):
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
