"""Load with everything that goes wrong: clients that leave, lie and dawdle, killed workers, models that change.

    python plugins/serve/tests/soak.py [--seconds 600] [--clients 8]

Every answer is compared with a predictor's. It fails on a wrong answer, on a good request without an answer or with
another one than 200 (or, when its second worker was killed as well, 500), on memory that grows, on requests that are
left in the queue, and on a server that does not end well. Bad connections close early, announce what does not come,
send bodies that are too large, damaged or no HTTP, or many requests of which they read no answer.
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
from oprack.tensor import LoDTensor

OPTIONS = ("--poll", "0.2", "--max-delay", "3", "--max-body", "1M", "--read-timeout", "2", "--workers", "2")


class Soak:
    """One server under load for some seconds."""

    def __init__(self, folder: Path, seconds: float, clients: int) -> None:
        self.folder, self.seconds, self.clients = folder, seconds, clients
        self.end = 0.0
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        # resident bytes: of the server, and of the host and the workers of "steady", which nobody kills or replaces
        self.memory: dict[str, list[int]] = {"server": [], "host": [], "worker 1": [], "worker 2": []}
        served.save(folder / "text", served.text)
        served.save(folder / "steady", served.text)
        served.save(folder / "image", served.image)
        chance = np.random.default_rng(2)
        self.cases = []
        for n in (1, 2, 3, 5, 8, 13, 21):
            ids = chance.integers(0, 50, (n, 1))
            lod = [[0, n // 2, n]]
            right = [v.array for v in served.predict(folder / "text", LoDTensor(ids, lod))]
            self.cases += [(model, served.row("ids", ids, lod=lod), right) for model in ("text", "steady")]
        for n in (1, 2, 3):
            x = chance.standard_normal((n, 3, 8, 8)).astype(np.float32)
            right = [v.array for v in served.predict(folder / "image", x)]
            self.cases.append(("image", served.row("image", x), right))
        self.server = served.Served("--models", str(folder), *OPTIONS)

    @property
    def going(self) -> bool:
        return time.monotonic() < self.end

    # Good clients -----------------------------------------------------------------------------------------------------
    def ask(self, seed: int) -> None:
        choose = random.Random(seed)
        while self.going:
            model, tensor, right = choose.choice(self.cases)
            self.counts["good requests"] += 1
            try:
                status, answer = self.server.infer(model, [tensor])
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.wrong.append(f"a request got no answer: {type(error).__name__}: {error}")
                continue
            self.counts[f"answered {status}"] += 1
            if status == 500 and "ended" in answer["error"]:
                continue
            if status != 200:
                self.wrong.append(f"{status}: {answer}")
                continue
            for found, value in zip(served.arrays(answer).values(), right, strict=True):
                if not np.allclose(found, value, rtol=1e-3, atol=1e-5):
                    self.wrong.append(f"{model}: {found} instead of {value}")

    # Bad ones ---------------------------------------------------------------------------------------------------------
    def annoy(self, seed: int) -> None:
        choose = random.Random(seed)
        while self.going:
            try:
                with socket.create_connection((self.server.host, self.server.port), 5) as sock:
                    self._annoy(sock, choose)
            except OSError:
                self.counts["bad connection cut"] += 1
            time.sleep(0.02)

    def _annoy(self, sock: socket.socket, choose: random.Random) -> None:
        model, tensor, _ = choose.choice(self.cases)
        body = json.dumps({"inputs": [tensor]}).encode()
        what = choose.choice(["leave", "half", "flip", "nonsense", "announced", "large", "slow", "deaf"])
        self.counts[f"bad: {what}"] += 1
        size = 10**7 if what == "announced" else len(body)
        head = f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode()
        if what == "flip":
            damaged = bytearray(body)
            for _ in range(choose.randint(1, 8)):
                damaged[choose.randrange(len(damaged))] = choose.randrange(256)
            body = bytes(damaged)
        if what == "nonsense":
            sock.sendall(choose.randbytes(choose.randint(1, 400)))
        elif what == "deaf":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall((head + body) * 50)
        elif what == "large":
            sock.sendall(b"POST /v2/models/text/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(30):
                sock.sendall(b"10000\r\n" + bytes(65536) + b"\r\n")
        elif what == "slow":
            for i in range(10):
                sock.sendall((head + body)[i : i + 1])
                time.sleep(0.02)
        else:
            sock.sendall(head + body[: len(body) // 2 if what == "half" else len(body)])
        if what in ("flip", "announced"):
            sock.recv(65536)

    # What happens to the server ---------------------------------------------------------------------------------------
    def disturb(self) -> None:
        turn = 0
        while self.going:
            time.sleep(min(2.0, self.seconds / 8))
            turn += 1
            if turn % 4 == 0:
                new, target = self.folder / ".new", self.folder / "image"
                shutil.copytree(target, new)
                target.rename(self.folder / ".old")
                new.rename(target)
                shutil.rmtree(self.folder / ".old")
                self.counts["reloads asked for"] += 1
            else:
                for pid in self.server.workers("text")[:1]:
                    os.kill(pid, signal.SIGKILL)
                    self.counts["workers killed"] += 1

    def watch(self) -> None:
        workers = self.server.workers("steady")
        pids = [self.server.process.pid, self.server.hosts("steady")[0], *workers]
        while self.going:
            time.sleep(min(5.0, self.seconds / 10))
            for row, pid in zip(self.memory.values(), pids, strict=True):
                row.append(resident(pid))
        if self.server.workers("steady") != workers:
            self.wrong.append("workers that nobody killed were replaced")

    def run(self) -> list[str]:
        """What was wrong; [] when nothing was."""
        self.end = time.monotonic() + self.seconds
        work = [threading.Thread(target=self.ask, args=(i,)) for i in range(self.clients)]
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
        for who, row in self.memory.items():
            third = len(row) // 3
            first, last = max(row[: third + 1]), max(row[-third - 1 :])
            if last > first + (32 << 20):
                wrong.append(f"{who}: memory grew from {first >> 20} to {last >> 20} MiB")
        if self.server.stop() != 0:
            wrong.append("the server did not end well")
        return wrong


def resident(pid: int) -> int:
    """Bytes of a process that are in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    parser = argparse.ArgumentParser(description="Load with everything that goes wrong.")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--clients", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), options.seconds, options.clients)
        wrong = soak.run()
        for what, count in sorted(soak.counts.items()):
            print(f"{what:<24}{count:>8}")
        for who, row in soak.memory.items():
            print(f"{who}, resident MiB:", *(m >> 20 for m in row[:: max(1, len(row) // 12)]))
        print("\n".join(wrong[:20]) or "nothing was wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
