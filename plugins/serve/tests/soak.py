"""Load with everything that goes wrong: clients that leave, lie, dawdle and read nothing; processes that are killed.

    python plugins/serve/tests/soak.py [--seconds 600] [--clients 8] [--fronts 1]

Good clients ask for tags of sequences and for pictures of 5,000 sizes, one after the other, as binary data and as JSON;
every answer is compared with a predictor's or with a formula. Bad connections close early, announce what does not come,
send bodies that are too large, damaged or no HTTP, ids beyond the vocabulary, single bytes or nothing, or many requests
of which they read no answer. Meanwhile workers and hosts are killed, models are replaced, and the folder of models is
away for moments. The server may have few descriptors.

It fails on a wrong answer, on a good request without one or with another one than 200 (or, when its second worker was
killed as well, 500), on memory that grows, on requests that are left in the queue, descriptors and processes that are
left, and on a server that does not end well. Times of good requests are printed beside those before all this began.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import served
from oprack import ParamAttr, layers
from oprack.initializer import Constant
from oprack.tensor import LoDTensor

OPTIONS = ("--poll", "0.2", "--max-delay", "3", "--max-body", "1M", "--read-timeout", "2", "--workers", "2")
DESCRIPTORS = 600
CACHE = 8 << 20
SIZES = [(h, w) for h in range(16, 116) for w in range(16, 66)]
WEIGHT = 0.1


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
    """One server under load for some seconds, a sixth of them with good clients alone."""

    def __init__(self, folder: Path, seconds: float, clients: int, fronts: int = 1) -> None:
        self.folder, self.seconds, self.clients = folder / "models", seconds, clients
        self.end = self.begin = 0.0
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.times: dict[str, list[float]] = {"quiet": [], "attacked": []}
        # resident bytes: of the server; of the host and workers of "steady", which nobody kills; of those of "pictures"
        self.memory: dict[str, list[int]] = {"server": [], "host": [], "worker 1": [], "worker 2": [], "pictures": []}
        for name, model in (("text", served.text), ("steady", served.text), ("image", served.image)):
            served.save(self.folder / name, model)
        served.save(self.folder / "pictures", pictures)
        chance = np.random.default_rng(2)
        self.cases = []
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
        options = ("--models", str(self.folder), "--fronts", str(fronts), *OPTIONS)
        self.server = served.Served(*options, under=limited, environ={"OPRACK_CACHE_LIMIT": str(CACHE)})
        self.descriptors = self._descriptors()

    @property
    def going(self) -> bool:
        """Whether the time is not over; on a busy machine a short one goes on until something was killed."""
        now = time.monotonic()
        return now < self.end or (now < self.end + 60 and not self.counts["workers killed"])

    def _descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.server.process.pid}/fd"))

    # Good clients -----------------------------------------------------------------------------------------------------
    def ask(self, seed: int) -> None:
        choose = random.Random(seed)
        while self.going:
            model, tensor, right = choose.choice(self.cases)
            answer = self._answer(model, lambda: self.server.infer(model, [tensor]))  # noqa: B023
            if answer is not None:
                self._compare(model, list(served.arrays(answer).values()), right)

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

    def _answer(self, model: str, ask):
        """What a good request got, None when that was no answer."""
        self.counts["good requests"] += 1
        start = time.monotonic()
        try:
            status, answer = ask()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.wrong.append(f"{model}: a request got no answer: {type(error).__name__}: {error}")
            return None
        self.times["quiet" if start < self.begin else "attacked"].append(time.monotonic() - start)
        self.counts[f"answered {status}"] += 1
        if status == 200:
            return answer
        if status != 500 or "ended" not in answer["error"]:
            self.wrong.append(f"{model}: {status}: {answer}")
        return None

    def _compare(self, model: str, found: list[np.ndarray], right: list[np.ndarray]) -> None:
        for one, value in zip(found, right, strict=True):
            if one.shape != value.shape or not np.allclose(one, value, rtol=1e-3, atol=1e-5):
                self.wrong.append(f"{model}: {one} instead of {value}")

    # Bad ones ---------------------------------------------------------------------------------------------------------
    def annoy(self, seed: int) -> None:
        choose = random.Random(seed)
        while self.going:
            if time.monotonic() > self.begin:
                try:
                    with socket.create_connection((self.server.host, self.server.port), 5) as sock:
                        self._annoy(sock, choose)
                except OSError:
                    self.counts["bad connection cut"] += 1
            time.sleep(0.02)

    def _annoy(self, sock: socket.socket, choose: random.Random) -> None:
        bad = {
            **dict.fromkeys(("leave", "half", "announced", "slow"), self._cut),
            **dict.fromkeys(("large", "trailers"), self._endless),
            **{
                "flip": self._flip,
                "nonsense": self._nonsense,
                "ids": self._ids,
                "deaf": self._deaf,
                "idle": self._idle,
            },
        }
        what = choose.choice(list(bad))
        self.counts[f"bad: {what}"] += 1
        bad[what](sock, choose, what)

    @staticmethod
    def _request(model: str, tensor: dict, size: int = 0) -> tuple[bytes, bytes]:
        """Head and body; size: what the head says of the body."""
        body = json.dumps({"inputs": [tensor]}).encode()
        head = f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {size or len(body)}\r\n\r\n"
        return head.encode(), body

    def _cut(self, sock: socket.socket, choose: random.Random, what: str) -> None:
        """A request that is good as far as it goes."""
        head, body = self._request(*choose.choice(self.cases)[:2], 10**7 if what == "announced" else 0)
        if what == "slow":
            for i in range(10):
                sock.sendall((head + body)[i : i + 1])
                time.sleep(0.02)
            return
        sock.sendall(head + body[: len(body) // 2 if what == "half" else len(body)])
        if what == "announced":
            sock.recv(65536)

    def _flip(self, sock: socket.socket, choose: random.Random, _: str) -> None:
        """A request with some other bytes."""
        head, body = self._request(*choose.choice(self.cases)[:2])
        damaged = bytearray(body)
        for _ in range(choose.randint(1, 8)):
            damaged[choose.randrange(len(damaged))] = choose.randrange(256)
        sock.sendall(head + damaged)
        sock.recv(65536)

    @staticmethod
    def _nonsense(sock: socket.socket, choose: random.Random, _: str) -> None:
        sock.sendall(choose.randbytes(choose.randint(1, 400)))

    def _endless(self, sock: socket.socket, choose: random.Random, what: str) -> None:
        """A body in chunks, or trailers behind it, that go on after the server has had enough."""
        _, body = self._request(*choose.choice(self.cases)[:2])
        sock.sendall(b"POST /v2/models/text/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        if what == "trailers":
            sock.sendall(b"%x\r\n%s\r\n0\r\n" % (len(body), body))
        for _ in range(30):
            sock.sendall(b"a:\r\n" * 4000 if what == "trailers" else b"10000\r\n" + bytes(65536) + b"\r\n")

    def _ids(self, sock: socket.socket, *_: object) -> None:
        """Ids beyond the vocabulary, of which only the run finds out."""
        head, body = self._request("text", served.row("ids", np.full((3, 1), 10**9), lod=[[0, 3]]))
        sock.sendall(head + body)
        if not sock.recv(65536).startswith((b"HTTP/1.1 400", b"HTTP/1.1 500")):
            self.wrong.append("ids beyond the vocabulary were not refused")

    def _deaf(self, sock: socket.socket, *_: object) -> None:
        """Many requests with large answers, of which none is read."""
        head, body = self._request("pictures", served.row("x", np.ones((1, 3, 60, 60), np.float32)))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall((head + body) * 5)
        time.sleep(0.3)

    def _idle(self, *_: object) -> None:
        """Connections that say nothing."""
        held = [socket.create_connection((self.server.host, self.server.port), 5) for _ in range(120)]
        time.sleep(0.2)
        for sock in held:
            sock.close()

    # What happens to the server ---------------------------------------------------------------------------------------
    def disturb(self) -> None:
        turns = [self._kill_worker, self._replace_model, self._kill_worker, self._take_folder_away, self._kill_host]
        turn = 0
        while self.going:
            time.sleep(min(2.0, self.seconds / 8))
            if time.monotonic() > self.begin:
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
        if self.server.workers("steady") != workers:
            self.wrong.append("workers that nobody killed were replaced")

    def run(self) -> list[str]:
        """What was wrong; [] when nothing was."""
        self.begin = time.monotonic() + self.seconds / 6
        self.end = time.monotonic() + self.seconds
        work = [threading.Thread(target=self.ask, args=(i,)) for i in range(max(1, self.clients - 2))]
        work += [threading.Thread(target=self.ask_sizes, args=(50 + i,)) for i in range(2)]
        work += [threading.Thread(target=self.annoy, args=(100 + i,)) for i in range(3)]
        work += [threading.Thread(target=self.disturb), threading.Thread(target=self.watch)]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        wrong = list(self.wrong)
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
        for phase, times in soak.times.items():
            p50, p99 = np.percentile(times, [50, 99]) * 1e3
            print(f"good requests, {phase}: p50 {p50:.1f} ms, p99 {p99:.1f} ms")
        print("\n".join(wrong[:20]) or "nothing was wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
