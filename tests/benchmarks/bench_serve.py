"""Load on `oprack serve` over loopback: requests per second and latencies, joined and not joined.

    python tests/benchmarks/bench_serve.py --lac DIR --rec DIR [--rec-onnx FILE] [--seconds 4] [--out FILE]

DIR are model folders, of Baidu's LAC and of PP-OCRv4's recognition. FILE is recognition as an ONNX model: then ONNX
Runtime of the peers' environment takes the predictor's place behind the same server (onnx_server.py). LAC has no ONNX
model: its ops on sequences with LoD, lookup_table to crf_decoding, have no counterparts there.

Every measurement is bounded in time; clients are coroutines of one process, each with one connection on which it sends
the next request when it has its answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from onnx_server import OnnxPredictor
from oprack import LoDTensor, inference


# Requests -------------------------------------------------------------------------------------------------------------
def request_bytes(model: str, inputs: list[tuple[str, np.ndarray, list[list[int]]]]) -> bytes:
    """A whole HTTP request with binary tensors."""
    names = {"int64": "INT64", "float32": "FP32"}
    rows = []
    for name, array, lod in inputs:
        row = {"name": name, "shape": array.shape, "datatype": names[array.dtype.name]}
        row["parameters"] = {"binary_data_size": array.nbytes} | ({"lod": lod} if lod else {})
        rows.append(row)
    head = json.dumps({"inputs": rows, "parameters": {"binary_data_output": True}}).encode()
    body = head + b"".join(array.tobytes() for _, array, _ in inputs)
    start = f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    return f"{start}Inference-Header-Content-Length: {len(head)}\r\n\r\n".encode() + body


def sentences(count: int, seed: int = 0) -> list[np.ndarray]:
    """Ids of characters; lengths as those of sentences: many short, few long."""
    random = np.random.default_rng(seed)
    lengths = np.clip(random.lognormal(2.8, 0.7, count), 2, 120).astype(int)
    return [random.integers(1, 5000, (n, 1)).astype(np.int64) for n in lengths]


def lac_requests(texts: list[np.ndarray]) -> list[bytes]:
    return [request_bytes("lac", [("words", ids, [[0, len(ids)]])]) for ids in texts]


def padded(texts: list[np.ndarray]) -> list[np.ndarray]:
    """All as long as the longest of 32, as a batch without LoD would have them."""
    longest = [max(len(t) for t in texts[i - i % 32 : i - i % 32 + 32]) for i in range(len(texts))]
    return [np.pad(t, ((0, n - len(t)), (0, 0))) for t, n in zip(texts, longest, strict=True)]


def pictures(count: int) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    return [random.standard_normal((1, 3, 48, 320)).astype(np.float32) for _ in range(count)]


# Load -----------------------------------------------------------------------------------------------------------------
async def client(host: str, port: int, requests: list[bytes], first: int, end: float, times: list[float]) -> int:
    """Send requests one after the other until `end`; returns how many were not answered with 200."""
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 22)
    bad, i = 0, first
    while time.perf_counter() < end:
        start = time.perf_counter()
        writer.write(requests[i % len(requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next(int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        bad += not head.startswith(b"HTTP/1.1 200")
        times.append(time.perf_counter() - start)
        i += 1
    writer.close()
    return bad


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and of all that it started."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(cpu_seconds(int(c)) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


async def load(at: tuple[str, int], requests: list[bytes], clients: int, seconds: float) -> dict[str, float]:
    url, pid = at
    host, port = url.removeprefix("http://").rsplit(":", 1)
    for span in (min(1.0, seconds), seconds):  # the first is not counted: new shapes, new connections
        times: list[float] = []
        start, cpu = time.perf_counter(), cpu_seconds(pid)
        step = max(1, len(requests) // clients)
        work = [client(host, int(port), requests, k * step, start + span, times) for k in range(clients)]
        bad = sum(await asyncio.gather(*work))
        wall, cpu = time.perf_counter() - start, cpu_seconds(pid) - cpu
    p50, p99 = np.percentile(times, [50, 99]) * 1e3
    return {"rps": len(times) / wall, "p50": p50, "p99": p99, "bad": bad, "cpu": cpu * 1e3 / len(times)}


OPRACK = ("-m", "oprack", "serve")
ROOT = Path(__file__).parents[2]
PEERS = ROOT / f".venv-peers/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


@contextmanager
def server(start: tuple[str, ...], model: Path, name: str, *options: str) -> Iterator[tuple[str, int]]:
    """URL and process of the server, when it is ready; its log after that goes nowhere."""
    command = [sys.executable, *start, str(model), "--name", name, "--port", "0", "--poll", "0"]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    url = ""
    for line in process.stderr:
        event = json.loads(line) if line.startswith("{") else {}
        url = event.get("url", url)
        if event.get("event") == "model ready":
            break
    drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
    process.stderr.close()
    try:
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(30)
        drain.wait(10)


# Without a server -----------------------------------------------------------------------------------------------------
def predictor_of(model: Path) -> inference.Predictor:
    config = inference.Config(str(model))
    config.set_cpu_math_library_num_threads(1)
    return inference.create_predictor(config)


def plain_loop(
    predictor: inference.Predictor | OnnxPredictor, feeds: list[LoDTensor], seconds: float
) -> dict[str, float]:
    """One predictor, one request at a time, no HTTP."""
    handle = predictor.get_input_handle(predictor.get_input_names()[0])
    for span in (min(1.0, seconds), seconds):
        times: list[float] = []
        cpu, end, i = time.process_time(), time.perf_counter() + span, 0
        while (start := time.perf_counter()) < end:
            handle.share_external_data(feeds[i % len(feeds)])
            predictor.run()
            times.append(time.perf_counter() - start)
            i += 1
    p50, p99 = np.percentile(times, [50, 99]) * 1e3
    cpu = time.process_time() - cpu
    return {"rps": len(times) / sum(times), "p50": p50, "p99": p99, "bad": 0, "cpu": cpu * 1e3 / len(times)}


def main() -> int:
    parser = argparse.ArgumentParser(description="Load on oprack serve over loopback.")
    parser.add_argument("--lac", type=Path, required=True)
    parser.add_argument("--rec", type=Path, required=True)
    parser.add_argument("--rec-onnx", type=Path)
    parser.add_argument("--peers", type=Path, default=PEERS, help="site-packages that have ONNX Runtime")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--clients", default="1,8,32,64")
    parser.add_argument("--workers", default="1")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--models", default="lac,rec")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    texts, images = sentences(512), pictures(16)
    mean, long = np.mean([len(t) for t in texts]), np.mean([len(t) for t in padded(texts)])
    lines = [
        f"{os.cpu_count()} CPUs, shared by clients, server and workers; {options.seconds:g} s each",
        "CPU ms: of server and workers, for each request",
        f"LAC: 512 sentences of {min(map(len, texts))} to {max(map(len, texts))} characters, {mean:.1f} in the mean, "
        f"{long:.1f} padded to the longest of 32",
        f"{options.workers} workers of {options.threads} threads",
        "PP-OCRv4 recognition: float32 [1, 3, 48, 320], binary",
        "",
        f"{'model':<6}{'how':<34}{'clients':>8}{'req/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'CPU ms':>9}{'errors':>8}",
    ]

    def say(model: str, how: str, clients: int, row: dict[str, float]) -> None:
        times = "".join(f"{row[key]:>9.2f}" for key in ("p50", "p99", "cpu"))
        text = f"{model:<6}{how:<34}{clients:>8}{row['rps']:>9.1f}{times}{row['bad']:>8}"
        lines.append(text)
        print(text, flush=True)

    print("\n".join(lines))
    counts = [int(c) for c in options.clients.split(",")]
    workers = ("--workers", options.workers, "--threads", options.threads)
    if "lac" in options.models:
        feeds = [LoDTensor(t, [[0, len(t)]]) for t in texts]
        say("lac", "a predictor in a loop, no HTTP", 1, plain_loop(predictor_of(options.lac), feeds, options.seconds))
        cases = [
            ("joined by LoD", lac_requests(texts), ()),
            ("not joined", lac_requests(texts), ("--max-batch", "1")),
            ("joined, padded by the clients", lac_requests(padded(texts)), ()),
        ]
        for how, requests, more in cases:
            with server(OPRACK, options.lac, "lac", *workers, *more) as at:
                for clients in counts:
                    say("lac", how, clients, asyncio.run(load(at, requests, clients, options.seconds)))
    if "rec" in options.models:
        feeds = [LoDTensor(x) for x in images]
        say("rec", "a predictor in a loop, no HTTP", 1, plain_loop(predictor_of(options.rec), feeds, options.seconds))
        requests = [request_bytes("rec", [("x", x, [])]) for x in images]
        engines = [("", OPRACK)]
        if options.rec_onnx is not None and (options.peers / "onnxruntime").is_dir():
            onnx, peers = str(options.rec_onnx), str(options.peers)
            sys.path.append(peers)
            session = OnnxPredictor(onnx, int(options.threads), ["x"], ["out"])
            say("rec", "ONNX Runtime in a loop, no HTTP", 1, plain_loop(session, feeds, options.seconds))
            engines.append(("ONNX Runtime, ", (str(Path(__file__).with_name("onnx_server.py")), onnx, peers)))
        for engine, start in engines:
            for how, size in (("joined to 8", "8"), ("not joined", "1")):
                with server(start, options.rec, "rec", *workers, "--max-batch", size) as at:
                    for clients in counts:
                        row = asyncio.run(load(at, requests, clients, options.seconds))
                        say("rec", engine + how, clients, row)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
