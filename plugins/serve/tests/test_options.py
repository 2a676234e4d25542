"""`serve.toml`: what it sets for a model, for all of its versions or for one, and what it is refused for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import served
from oprack.errors import InvalidArgumentError
from oprack_serve import host
from oprack_serve.host import load
from oprack_serve.options.model_options import read_options
from served import Served

OPTIONS = """
max_queue = 7
workers = 1
threads = 1
max_delay_ms = 1.5
device = "cpu"
precision = ["bfloat16"]
passes = false
labels = ["left"]
versions = { latest = 2 }
"""


def test_options_for_all_versions_and_for_one(tmp_path):
    for version in ("1", "2", "10"):
        served.save(tmp_path / "scaled" / version, served.scaled(float(version)))
    (tmp_path / "scaled" / "serve.toml").write_text(OPTIONS)
    (tmp_path / "scaled" / "2" / "serve.toml").write_text("max_queue = 9\n")
    server = Served("--models", str(tmp_path), "--workers", "2", "--poll", "0.1")
    found = server.get("/v2/models/scaled/config")[1]
    assert found["version_policy"] == {"latest": {"num_versions": 2}}
    assert found["instance_group"][0]["count"] == 1 and len(server.workers("scaled")) == 2  # one of each version
    assert found["dynamic_batching"] == {"max_queue_delay_microseconds": 1500}
    values = {key: value["string_value"] for key, value in found["parameters"].items()}
    assert (values["max_queue"], values["precision"], values["passes"]) == ("7", '["bfloat16"]', "false")
    assert server.get("/v2/models/scaled/versions/2/config")[1]["parameters"]["max_queue"]["string_value"] == "9"
    assert server.get("/v2/models/scaled")[1]["versions"] == ["2", "10"]
    wanted = {"name": found["output"][0]["name"], "parameters": {"classification": 2}}
    answer = server.infer("scaled", [served.row("x", np.array([[1, 2]], np.float32))], outputs=[wanted])[1]
    assert answer["outputs"][0]["data"] == ["20.000000:1", "10.000000:0:left"]
    # the policy is looked at as the models are
    (tmp_path / "scaled" / "serve.toml").write_text("versions = [1]\n")
    server.until(lambda: server.get("/v2/models/scaled")[1].get("versions") == ["1"])
    assert server.stop() == 0


def test_precision_and_passes_reach_the_predictor(tmp_path):
    """A program that no pass rewrote runs its ops as they are written; bfloat16 is asked of the predictor."""
    served.save(tmp_path / "image", served.image)
    path = str(tmp_path / "image")
    config = load(path, 0, "", read_options([]).of_predictor())[0]._config
    assert config.ir_optim() and config.precisions() == {}
    (tmp_path / "serve.toml").write_text('passes = false\nprecision = ["int8", "bfloat16"]\nwithout_passes = []\n')
    config = load(path, 0, "", read_options([tmp_path / "serve.toml"]).of_predictor())[0]._config
    assert not config.ir_optim() and set(config.precisions()) == {"bfloat16", "int8"}
    (name, *_) = config.pass_builder().all_passes()
    options = {"without_passes": [name]}
    assert name not in load(path, 0, "", options)[0]._config.pass_builder().all_passes()


def test_a_model_is_loaded_by_a_nicer_thread_beside_others_that_serve(monkeypatch):
    """The main thread, which forks the workers, stays as it is."""

    def niceness(*_):
        return os.getpriority(os.PRIO_PROCESS, 0)

    monkeypatch.setattr(host, "load", niceness)
    own = niceness()
    assert host._loaded(True, "model") == min(19, own + host.BEHIND)
    assert host._loaded(False, "model") == own == niceness()


def test_the_file_nearest_to_a_version_says_its_precision_and_options_where_none_does(tmp_path):
    """A version's file, its model's, then --int8 and --bf16; each model's process gets what its configuration says."""
    for folder in ("own/1", "own/2", "free"):
        served.save(tmp_path / folder, served.scaled(2.0))
    (tmp_path / "own" / "serve.toml").write_text('precision = "int8"\n')
    (tmp_path / "own" / "2" / "serve.toml").write_text('precision = "float32"\n')
    server = Served("--models", str(tmp_path), "--poll", "0", "--bf16")
    expected = {"own/versions/1": ["int8"], "own/versions/2": [], "free": ["bfloat16"]}
    for path, precision in expected.items():
        parameters = server.get(f"/v2/models/{path}/config")[1]["parameters"]
        assert json.loads(parameters["precision"]["string_value"]) == precision, path
        (pid,) = server.hosts(path.replace("/versions", ""))
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        (options,) = (word for word in words if word.startswith("{"))
        assert json.loads(options)["precision"] == precision, path
    assert server.stop() == 0


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("max_batch = 0", "max_batch = 0; expected a number from 1"),
        ("max_queue = true", "max_queue = True; expected a number from 1"),
        ("max_delay_ms = -1", "expected milliseconds, 0 to 10000"),
        ("workers = 300", "expected a number from 1 to 256"),
        ("device = 'gpu:0'", "device = 'gpu:0'; expected 'cpu': workers are forked"),
        ("precision = 'fp16'", "expected 'float32', 'bfloat16', 'int8' or"),
        ("precision = []", "expected 'float32', 'bfloat16', 'int8' or"),
        ("passes = 'no'", "expected true or false"),
        ("without_passes = 'fuse'", "expected a list of names"),
        ("labels = [1]", "expected a list of names"),
        ("versions = 'newest'", "expected 'all', 'latest', { latest = 2 } or a list"),
        ("versions = [0]", "expected 'all', 'latest', { latest = 2 } or a list"),
        ("versions = { latest = 0 }", "expected 'all', 'latest', { latest = 2 } or a list"),
        ("examples = 3", "expected tables"),
        ("[[examples]]\nx = 'y'", "example of 'x'; expected a shape"),
        ("max_batch = ", "Invalid value"),
        ("max_bach = 1", "max_bach; expected max_batch"),
    ],
)
def test_options_that_can_not_be_are_named(tmp_path, text, match):
    (tmp_path / "serve.toml").write_text(text)
    with pytest.raises(InvalidArgumentError) as caught:
        read_options([tmp_path / "serve.toml"])
    assert match in str(caught.value) and str(tmp_path / "serve.toml") in str(caught.value)
