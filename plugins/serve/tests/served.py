"""Models made by hand, and a real server on a free port."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from oprack import Executor, Program, Scope, inference, layers, program_guard
from oprack.io import save_inference_model
from oprack.tensor import LoDTensor


# Models ---------------------------------------------------------------------------------------------------------------
def save(path: Path, build) -> None:
    """Write the inference model that `build` appends: it returns (names of inputs, variables of outputs)."""
    main, startup = Program(), Program()
    with program_guard(main, startup):
        feeds, fetches = build()
    scope = Scope()
    Executor(seed=3).run(startup, scope=scope)
    path.mkdir(parents=True)
    save_inference_model(str(path / "model"), main, feeds, [v.name for v in fetches], scope)


def image():
    """[N, 3, 8, 8] -> [N, 4]."""
    x = layers.data("image", [None, 3, 8, 8])
    hidden = layers.conv2d(x, 4, 3, act="relu")
    return ["image"], [layers.fc(hidden, 4, act="softmax")]


def text():
    """Sequences of ids -> a row for each id, with the LoD of the ids, and a row for each sequence."""
    ids = layers.data("ids", [None, 1], "int64", lod_level=1)
    vectors = layers.embedding(ids, [50, 6])
    scores = layers.fc(vectors, 5)
    return ["ids"], [scores, layers.fc(layers.sequence_pool(vectors, "max"), 3)]


def centred():
    """[N, 4] -> [N, 4] less the mean of the batch: rows depend on each other."""
    x = layers.data("x", [None, 4])
    return ["x"], [x - layers.reduce_mean(x, dim=0, keep_dim=True)]


def wide():
    """[N, 1] -> [N, 30000]: answers are far larger than requests."""
    x = layers.data("x", [None, 1])
    return ["x"], [layers.expand(x, [1, 30_000]) * 2.0]


def slow():
    """[1], the rounds of a loop -> their sum; how long it takes is the client's to say."""
    n = layers.data("n", [1], "int64")
    zero = layers.fill_constant([1], "int64", 0)
    _, total = layers.while_loop(lambda i, s: i < n, lambda i, s: [i + 1, s + i], [zero, zero + 0])
    return ["n"], [total]


def scaled(factor: float):
    """x -> x * factor; for versions."""

    def build():
        x = layers.data("x", [None, 2])
        return ["x"], [x * factor]

    return build


def predict(path: Path, *feeds) -> list[LoDTensor]:
    """What a predictor of its own answers: arrays or LoDTensors in the order of the inputs."""
    predictor = inference.create_predictor(inference.Config(str(path)))
    for name, value in zip(predictor.get_input_names(), feeds, strict=True):
        predictor.get_input_handle(name).share_external_data(value)
    predictor.run()
    handles = [predictor.get_output_handle(n) for n in predictor.get_output_names()]
    return [LoDTensor(h.copy_to_cpu(), h.lod()) for h in handles]


# The server -----------------------------------------------------------------------------------------------------------
class Served:
    """`oprack serve` in a process of its own, with its log as it grows."""

    def __init__(
        self, *arguments: str, wait: bool = True, under: tuple[str, ...] = (), environ: dict[str, str] | None = None
    ) -> None:
        command = [*under, sys.executable, "-m", "oprack", "serve", "--port", "0", "--threads", "1", *arguments]
        every = os.environ | {"PYTHONWARNINGS": "default"} | (environ or {})
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=every)
        self.events: list[dict] = []
        self.other: list[str] = []
        self._new = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = self.event("listening")["url"]
        self.host, _, port = self.url.removeprefix("http://").rpartition(":")
        self.port = int(port)
        if wait:
            self.until(lambda: self.get("/v2/health/ready")[0] == 200)

    def _read(self) -> None:
        for line in self.process.stderr:
            with self._new:
                try:
                    self.events.append(json.loads(line))
                except ValueError:
                    self.other.append(line)
                self._new.notify_all()

    def event(self, name: str, seconds: float = 60.0, after: int = 0, **fields) -> dict:
        """The first line of the log of that event with these fields, once it is there."""

        def found() -> dict | None:
            rows = self.events[after:]
            return next((e for e in rows if e["event"] == name and fields.items() <= e.items()), None)

        with self._new:
            assert self._new.wait_for(lambda: found() or self.process.poll() is not None, seconds), (name, self.events)
            row = found()
        assert row is not None, (name, self.events, self.other)
        return row

    @staticmethod
    def until(true, seconds: float = 60.0) -> None:
        """Wait until `true()` is."""
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end
            time.sleep(0.02)

    def request(self, method: str, path: str, body=None, headers=None) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read(), {k.lower(): v for k, v in answer.getheaders()}
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, dict]:
        status, body, _ = self.request("GET", path)
        return status, json.loads(body)

    def post(self, path: str, value) -> tuple[int, dict]:
        """Status and JSON of a POST of JSON, or of bytes as they are."""
        status, body, _ = self.request("POST", path, value if isinstance(value, bytes) else json.dumps(value))
        return status, json.loads(body)

    def infer(self, model: str, inputs: list[dict], version: str = "", **more) -> tuple[int, dict]:
        """An inference in JSON."""
        path = f"/v2/models/{model}" + (f"/versions/{version}" if version else "")
        return self.post(f"{path}/infer", {"inputs": inputs} | more)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels."""
        total = 0.0
        for line in self.request("GET", "/metrics")[1].decode().splitlines():
            if line.startswith((name + "{", name + " ")) and all(f'{k}="{v}"' in line for k, v in labels.items()):
                total += float(line.rpartition(" ")[2])
        return total

    def hosts(self, model: str) -> list[int]:
        """Process ids of the hosts that were started for a model."""
        started = children(self.process.pid)
        return [h for h in started if f"/{model}" in Path(f"/proc/{h}/cmdline").read_text().replace("\0", " ")]

    def workers(self, model: str) -> list[int]:
        """Process ids of a model's workers: children of its hosts."""
        return [pid for host in self.hosts(model) for pid in children(host)]

    def stop(self, how: int = signal.SIGTERM) -> int:
        """Stop it; returns the exit code."""
        self.process.send_signal(how)
        code = self.process.wait(60)
        self._reader.join(10)
        self.process.stderr.close()
        return code


def children(pid: int) -> list[int]:
    """Processes that a process started."""
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def row(name: str, array, **parameters) -> dict:
    """An input in JSON."""
    names = {"float32": "FP32", "int64": "INT64", "bool": "BOOL", "float64": "FP64"}
    array = np.asarray(array)
    found = {"name": name, "shape": list(array.shape), "datatype": names[array.dtype.name], "data": array.tolist()}
    return found | ({"parameters": parameters} if parameters else {})


def arrays(answer: dict) -> dict[str, np.ndarray]:
    """Outputs of an answer in JSON, by name."""
    names = {"FP32": np.float32, "INT64": np.int64}
    return {o["name"]: np.array(o["data"], names[o["datatype"]]).reshape(o["shape"]) for o in answer["outputs"]}
