"""Load with everything that goes wrong: clients that leave, lie, dawdle and read nothing; processes that are killed.

    python plugins/serve/tests/soak.py [--seconds 600] [--clients 8] [--fronts 1]

Good clients ask for tags of sequences and for pictures of 5,000 sizes, one after the other, as binary data, as JSON and
over gRPC; every answer is compared with a predictor's or with a formula. A process of bad ones (`attacks.py`) leaves
early, announces what does not come, sends bodies that are too large, damaged or nothing known, ids beyond the
vocabulary, single bytes or nothing on more connections than there are descriptors, or many requests of which it reads
no answer. Meanwhile workers and hosts are killed, models are replaced, and the folder of models is away for moments.
Each minute begins with some seconds in which good clients are alone.

It fails on a wrong answer, on a good request without one or with another one than 200 (or, when its second worker was
killed as well, 500), on memory that grows, on requests that are left in the queue, descriptors and processes that are
left, and on a server that does not end well. A long one also fails where good requests under attack take more than
twice their quiet time, at the 99th percentile: a ratio of times that were taken in turns, so what else the machine does
is in both.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import served
import tritonclient.grpc as triton
from oprack import ParamAttr, layers
from oprack.initializer import Constant
from oprack.tensor import LoDTensor

OPTIONS = ("--poll", "0.2", "--max-delay", "3", "--max-body", "1M", "--read-timeout", "2", "--workers", "2")
DESCRIPTORS = 1024
CACHE = 8 << 20
SIZES = [(h, w) for h in range(16, 116) for w in range(16, 66)]
WEIGHT = 0.1
CYCLE = 60.0
"""Seconds of a turn, of which these parts are quiet, attacked, and neither, until what was killed is there again."""

QUIET, ATTACKED, SETTLING = 0.25, 0.7, 0.05
NEW_CONNECTION = 8
"""Of so many requests of a client, one comes by a new connection."""

THINK = 0.04
"""Most seconds between two requests of a client: a server without a moment's rest has no quiet time to compare with."""

PAUSE = 5.0
"""Seconds between kills."""

MOST_TIMES = 2.0

STOPPED, AFTERWARDS = 1.0, 3.0
"""A thread that sleeps for less and wakes up so many seconds late was stopped, and with it the server and its clients:
a machine that was suspended, or whoever measures beside it. What a request was promised then counts for nothing, nor
does what it finds within some seconds afterwards, when all timers are over; a number that is wrong still is."""


def pictures():
    """[N, 3, H, W] -> the means of four alike channels, and the channels: sums of 3 x 3 x 3 elements, 0 for less."""
    x = layers.data("x", [None, 3, None, None])
    weight = ParamAttr(initializer=Constant(WEIGHT))
    channels = layers.conv2d(x, 4, 3, act="relu", param_attr=weight, bias_attr=False)
    return ["x"], [layers.reduce_mean(channels, dim=[2, 3]), channels]


def channel_of(x: np.ndarray) -> np.ndarray:
    """One channel of the model's second output, by its formula."""
    h, w = x.shape[2] - 2, x.shape[3] - 2
    summed = x.astype(np.float64).sum(1)
    windows = sum(summed[:, i : i + h, j : j + w] for i in range(3) for j in range(3))
    return np.maximum(WEIGHT * windows, 0.0)


class Soak:
    """One server under load for some seconds, a quarter of them with good clients alone."""

    def __init__(self, folder: Path, seconds: float, clients: int, fronts: int = 1) -> None:
        self.folder, self.seconds, self.clients = folder / "models", seconds, clients
        self.end, self.phase = 0.0, "quiet"
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.failed: list[tuple[float, float, str]] = []  # from when to when, and what
        self.stops: list[tuple[float, float]] = []
        self.times: dict[str, list[tuple[float, float]]] = {"quiet": [], "attacked": [], "settling": []}
        # resident bytes: of the server; of the host and workers of "steady", which nobody kills; of those of "pictures"
        self.memory: dict[str, list[int]] = {"server": [], "host": [], "worker 1": [], "worker 2": [], "pictures": []}
        for name, model in (("text", served.text), ("steady", served.text), ("image", served.image)):
            served.save(self.folder / name, model)
        served.save(self.folder / "pictures", pictures)
        chance = np.random.default_rng(2)
        # model, its input, and what a predictor answers
        self.cases: list[tuple[str, dict, list[np.ndarray]]] = []
        for n in (1, 2, 3, 5, 8, 13, 21):
            ids = chance.integers(0, 50, (n, 1))
            lod = [[0, n // 2, n]]
            right = [v.array for v in served.predict(self.folder / "text", LoDTensor(ids, lod))]
            self.cases += [(model, served.row("ids", ids, lod=lod), right) for model in ("text", "steady")]
        for n in (1, 2, 3):
            x = chance.standard_normal((n, 3, 8, 8)).astype(np.float32)
            right = [v.array for v in served.predict(self.folder / "image", x)]
            self.cases.append(("image", served.row("image", x), right))
        self.sizes = SIZES.copy()
        random.Random(0).shuffle(self.sizes)
        self.next_size = 0
        limited = ("sh", "-c", f'ulimit -n {DESCRIPTORS} && exec "$@"', "sh")
        options = ("--models", str(self.folder), "--fronts", str(fronts), "--grpc-port", "0", *OPTIONS)
        self.server = served.Served(*options, under=limited, environ={"OPRACK_CACHE_LIMIT": str(CACHE)})
        first = self.server.events.index(self.server.event("listening"))
        self.grpc = self.server.event("listening", after=first + 1)["url"].removeprefix("grpc://")
        self.descriptors = self._descriptors()
        self.bad = self._start_attacks()

    @property
    def going(self) -> bool:
        """Whether the time is not over; on a busy machine a short one goes on until something was killed."""
        now = time.monotonic()
        return now < self.end or (now < self.end + 60 and not self.counts["workers killed"])

    def _descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.server.process.pid}/fd"))

    # Good clients -----------------------------------------------------------------------------------------------------
    def ask(self, seed: int) -> None:
        """By a connection that is kept, as pools of clients have, and now and then by a new one."""
        choose, kept = random.Random(seed), self._connection()
        while self.going:
            model, tensor, right = choose.choice(self.cases)
            if not choose.randrange(NEW_CONNECTION):
                kept.close()
            answer = self._answer(model, lambda: post(kept, model, [tensor]))  # noqa: B023
            if answer is None:
                kept.close()
            else:
                self._compare(model, list(served.arrays(answer).values()), right)
        kept.close()

    def ask_over_grpc(self, seed: int) -> None:
        choose = random.Random(seed)
        with triton.InferenceServerClient(self.grpc) as client:
            while self.going:
                model, tensor, right = choose.choice(self.cases)
                found = self._answer(f"{model} over gRPC", lambda: _over_grpc(client, model, tensor))  # noqa: B023
                if found is not None:
                    self._compare(model, found, right)

    def ask_sizes(self, seed: int) -> None:
        """Pictures, each of a size that was not there before, until all were."""
        chance = np.random.default_rng(seed)
        while self.going:
            number, self.next_size = self.next_size, self.next_size + 1
            x = chance.standard_normal((1, 3, *self.sizes[number % len(SIZES)])).astype(np.float32)
            as_json = number % 8 == 0
            channel = channel_of(x)
            right = [channel.mean((1, 2))[:, None].repeat(4, 1), channel[:, None].repeat(4, 1)]
            ask = self._json_of_picture if as_json else self._binary_picture
            found = self._answer("pictures", lambda: ask(x))  # noqa: B023
            self.counts["sizes of pictures"] = min(number + 1, len(SIZES))
            if found is not None:
                self._compare("pictures", list(served.arrays(found).values()) if as_json else found, right)

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.server.host, self.server.port, timeout=60)

    def _json_of_picture(self, x: np.ndarray) -> tuple[int, object]:
        return self.server.infer("pictures", [served.row("x", x)])

    def _binary_picture(self, x: np.ndarray) -> tuple[int, object]:
        row = {"name": "x", "shape": x.shape, "datatype": "FP32", "parameters": {"binary_data_size": x.nbytes}}
        head = json.dumps({"inputs": [row], "parameters": {"binary_data_output": True}}).encode()
        path, headers = "/v2/models/pictures/infer", {"Inference-Header-Content-Length": str(len(head))}
        status, body, headers = self.server.request("POST", path, head + x.tobytes(), headers)
        if status != 200:
            return status, json.loads(body)
        at, found = int(headers["inference-header-content-length"]), []
        for output in json.loads(body[:at])["outputs"]:
            count = int(np.prod(output["shape"]))
            found.append(np.frombuffer(body, np.float32, count, at).reshape(output["shape"]))
            at += 4 * count
        return status, found

    def _answer(self, model: str, ask: Callable[[], tuple[int, Any]]) -> Any:
        """What a good request got, None when that was no answer."""
        time.sleep(random.random() * THINK)
        self.counts["good requests"] += 1
        phase, start = self.phase, time.monotonic()
        try:
            status, answer = ask()
        except (OSError, http.client.HTTPException, ValueError, triton.InferenceServerException) as error:
            self._fail(start, f"{model}: a request got no answer: {type(error).__name__}: {error}")
            return None
        if self.phase == phase:
            self.times[phase].append((start, time.monotonic()))
        self.counts[f"answered {status}"] += 1
        if status == 200:
            return answer
        if status != 500 or "ended" not in answer["error"]:
            self._fail(start, f"{model}: {status}: {answer}")
        return None

    def _fail(self, start: float, what: str) -> None:
        self.failed.append((start, time.monotonic(), what))

    def _compare(self, model: str, found: list[np.ndarray], right: list[np.ndarray]) -> None:
        for one, value in zip(found, right, strict=True):
            if one.shape != value.shape or not np.allclose(one, value, rtol=1e-3, atol=1e-5):
                self.wrong.append(f"{model}: {one} instead of {value}")

    # Bad ones ---------------------------------------------------------------------------------------------------------
    def _start_attacks(self) -> subprocess.Popen:
        requests = [(model, json.dumps({"inputs": [tensor]})) for model, tensor, _ in self.cases]
        ids = served.row("ids", np.full((3, 1), 10**9), lod=[[0, 3]])
        picture = served.row("x", np.ones((1, 3, 60, 60), np.float32))
        in_a_hurry = {"inputs": [picture], "parameters": {"timeout": 1000}}
        messages = [triton_request(*case[:2]) for case in self.cases]
        target = {
            "host": self.server.host,
            "port": self.server.port,
            "grpc_port": int(self.grpc.rpartition(":")[2]),
            "requests": requests,
            "bad_ids": ("text", json.dumps({"inputs": [ids]})),
            "large": ("pictures", json.dumps({"inputs": [picture]})),
            "impatient": ("pictures", json.dumps(in_a_hurry)),
            "messages": [base64.b64encode(message).decode() for message in messages],
            "seed": 100,
        }
        command = [sys.executable, str(Path(__file__).with_name("attacks.py"))]
        bad = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        bad.stdin.write(json.dumps(target) + "\n")
        bad.stdin.flush()
        assert bad.stdout.readline() == "ready\n"
        return bad

    def attack_in_turns(self) -> None:
        """Quiet, attacked, and settling, in each turn."""
        cycle = min(CYCLE, self.seconds)
        while self.going:
            for phase, seconds in (
                ("quiet", cycle * QUIET),
                ("attacked", cycle * ATTACKED),
                ("settling", cycle * SETTLING),
            ):
                self.phase = phase
                self.bad.stdin.write("true\n" if phase == "attacked" else "false\n")
                self.bad.stdin.flush()
                self._sleep(seconds)

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while self.going and time.monotonic() < end:
            time.sleep(0.05)

    def _end_attacks(self) -> None:
        told, _ = self.bad.communicate(timeout=60)
        found = json.loads(told)
        self.counts.update(found["counts"])
        self.failed += [(moment, moment, what) for moment, what in found["wrong"]]

    # What happens to the server ---------------------------------------------------------------------------------------
    def disturb(self) -> None:
        turns = [self._kill_worker, self._replace_model, self._kill_worker, self._take_folder_away, self._kill_host]
        turn = 0
        while self.going:
            self._sleep(min(PAUSE, self.seconds / 8))
            if self.phase == "attacked":
                turns[turn % len(turns)]()
                turn += 1

    def _kill_worker(self) -> None:
        for pid in self.server.workers("text")[:1]:
            os.kill(pid, signal.SIGKILL)
            self.counts["workers killed"] += 1

    def _kill_host(self) -> None:
        for pid in self.server.hosts("text")[:1]:
            os.kill(pid, signal.SIGKILL)
            self.counts["hosts killed"] += 1

    def _replace_model(self) -> None:
        new, target = self.folder / ".new", self.folder / "image"
        shutil.copytree(target, new)
        target.rename(self.folder / ".old")
        new.rename(target)
        shutil.rmtree(self.folder / ".old")
        self.counts["reloads asked for"] += 1

    def _take_folder_away(self) -> None:
        """For some looks of the server's."""
        away = self.folder.with_name("away")
        self.folder.rename(away)
        time.sleep(0.7)
        away.rename(self.folder)
        self.counts["folder away"] += 1

    def watch(self) -> None:
        workers = self.server.workers("steady")
        pids = [self.server.process.pid, self.server.hosts("steady")[0], *workers]
        while self.going:
            time.sleep(min(5.0, self.seconds / 10))
            for row, pid in zip(self.memory.values(), pids, strict=False):
                row.append(resident(pid))
            self.memory["pictures"].append(sum(map(resident, self.server.workers("pictures"))))
        if self.server.workers("steady") != workers and not self.stops:  # a run that was stopped may outlast its time
            self.wrong.append("workers that nobody killed were replaced")

    def see_stops(self) -> None:
        """Note when everything stood still."""
        while self.going:
            before = time.monotonic()
            time.sleep(0.1)
            now = time.monotonic()
            if now > before + STOPPED:
                self.stops.append((before, now))

    def _excused(self, start: float, end: float) -> bool:
        return any(end >= stopped and start <= went_on + AFTERWARDS for stopped, went_on in self.stops)

    def seconds_of(self, phase: str) -> list[float]:
        """Of each good request that was answered in such a phase."""
        return [end - start for start, end in self.times[phase] if not self._excused(start, end)]

    def _not_excused(self) -> list[str]:
        """What failed, but for what failed since everything stood still."""
        found = []
        for start, end, what in self.failed:
            if self._excused(start, end):
                self.counts["failed by a stop"] += 1
            else:
                found.append(what)
        return found

    def run(self) -> list[str]:
        """What was wrong; [] when nothing was."""
        self.end = time.monotonic() + self.seconds
        work = [threading.Thread(target=self.ask, args=(i,)) for i in range(max(1, self.clients - 3))]
        work += [threading.Thread(target=self.ask_over_grpc, args=(40,))]
        work += [threading.Thread(target=self.ask_sizes, args=(50 + i,)) for i in range(2)]
        beside = (self.attack_in_turns, self.disturb, self.watch, self.see_stops)
        work += [threading.Thread(target=each) for each in beside]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        self._end_attacks()
        wrong = self.wrong + self._not_excused()
        self.counts["seconds stopped"] = round(sum(b - a for a, b in self.stops))
        self.counts["reloads done"] = int(self.server.metric("oprack_model_reloads_total"))
        if self.server.metric("oprack_queue_length"):
            wrong.append("requests are left in the queue")
        wrong += self._grown()
        time.sleep(2.5)  # the patience of the server with those that read nothing
        if self._descriptors() > self.descriptors + 20:
            wrong.append(f"descriptors grew from {self.descriptors} to {self._descriptors()}")
        below = [pid for pid in served.children(self.server.process.pid) for pid in (pid, *served.children(pid))]
        if self.server.stop() != 0:
            wrong.append("the server did not end well")
        if any(os.path.exists(f"/proc/{pid}") for pid in below):
            wrong.append("processes are left")
        return wrong

    def _grown(self) -> list[str]:
        found = []
        for who, row in self.memory.items():
            third = len(row) // 3
            # plans of new sizes are kept up to a limit, which is reached within the first half
            early, last = row[: 2 * third + 1 if who == "pictures" else third + 1], row[-third - 1 :]
            if max(last) > max(early) + (32 << 20):
                found.append(f"{who}: memory grew from {max(early) >> 20} to {max(last) >> 20} MiB")
        return found


def resident(pid: int) -> int:
    """Bytes of a process that are in memory; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _over_grpc(client: triton.InferenceServerClient, model: str, tensor: dict) -> tuple[int, Any]:
    """Status and arrays of an inference."""
    inputs, parameters = grpc_input(tensor)
    try:
        answer = client.infer(model, inputs, parameters=parameters)
    except triton.InferenceServerException as error:
        if error.status() != "StatusCode.INTERNAL":
            raise
        return 500, {"error": error.message()}
    return 200, [answer.as_numpy(output.name) for output in answer.get_response().outputs]


def post(connection: http.client.HTTPConnection, model: str, inputs: list[dict]) -> tuple[int, dict]:
    """An inference in JSON."""
    connection.request("POST", f"/v2/models/{model}/infer", json.dumps({"inputs": inputs}))
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def grpc_input(tensor: dict) -> tuple[list[triton.InferInput], dict[str, str]]:
    """What `served.row` made, for Triton's client."""
    array = served.arrays({"outputs": [tensor]})[tensor["name"]]
    given = triton.InferInput(tensor["name"], list(array.shape), tensor["datatype"])
    lod = tensor.get("parameters", {}).get("lod")
    return [given.set_data_from_numpy(array)], {f"{tensor['name']}.lod": json.dumps(lod)} if lod else {}


def triton_request(model: str, tensor: dict) -> bytes:
    """A message of ModelInfer."""
    (given,), parameters = grpc_input(tensor)
    request = triton.service_pb2.ModelInferRequest(model_name=model)
    request.inputs.append(given._get_tensor())
    request.raw_input_contents.append(given._get_content())
    for name, text in parameters.items():
        request.parameters[name].string_param = text
    return request.SerializeToString()


def main() -> int:
    parser = argparse.ArgumentParser(description="Load with everything that goes wrong.")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--fronts", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), options.seconds, options.clients, options.fronts)
        wrong = soak.run()
        for what, count in sorted(soak.counts.items()):
            print(f"{what:<24}{count:>8}")
        for who, row in soak.memory.items():
            print(f"{who}, resident MiB:", *(m >> 20 for m in row[:: max(1, len(row) // 12)]))
        p99 = {}
        for phase in ("quiet", "attacked"):
            seconds = soak.seconds_of(phase)
            p50, p99[phase] = np.percentile(seconds, [50, 99]) * 1e3
            print(f"good requests, {phase}: p50 {p50:.1f} ms, p99 {p99[phase]:.1f} ms, of {len(seconds)}")
        if options.seconds >= CYCLE and p99["attacked"] > MOST_TIMES * p99["quiet"]:
            wrong.append(f"p99 of good requests is {p99['attacked'] / p99['quiet']:.1f} times the quiet one")
        print("\n".join(wrong[:20]) or "nothing was wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
