"""Load on `oprack serve` over loopback: what joining requests gives, and where the time of a request goes.

    python tests/benchmarks/bench_serve.py [--lac DIR] [--rec DIR] [--rec-onnx FILE] [--models lac,rec,embedder]
        [--out FILE [--more]]

DIR are model folders, of Baidu's LAC and of PP-OCRv4's recognition. FILE is recognition as an ONNX model: then ONNX
Runtime of the peers' environment takes the predictor's place behind the same server (onnx_server.py). LAC has no ONNX
model: its ops on sequences with LoD, lookup_table to crf_decoding, have no counterparts there.

"Not joined" is the same server with `--max-batch 1`: the same code, processes and threads. Both run beside each other
and are loaded in turns, a median of several, so that what else the machine does meets both alike. Of LAC each answer is
compared with a predictor's.

The embedder is the example's with 4 layers of 256. Beside it is the plainest server of the same encoder, of which ONNX
Runtime computes padded batches (plain_server.py); tritonclient asks both for vectors of the same texts, which are
paragraphs of docs, and their answers are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import load
import numpy as np
from onnx_server import OnnxPredictor
from oprack import LoDTensor, inference
from oprack.packs import default_manager
from serve_parts import parts_of_a_request
from serve_requests import lac_requests, padded, pictures, request_bytes, sentences

ROOT = Path(__file__).parents[2]
DOWNLOADS = ROOT / ".downloads"
PEERS = ROOT / f".venv-peers/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
OPRACK = ("-m", "oprack", "serve")
BATCHES = (1, 8, 16, 32, 64)
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

Server = tuple[tuple[str, int], int]
"""Address and process."""


@contextmanager
def server(start: tuple[str, ...], *options: str, models: int = 1) -> Iterator[Server]:
    """A server whose models are ready, so many; its log after that goes to a process that throws it away."""
    command = [sys.executable, *start, *options, "--port", "0", "--poll", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    url = ""
    for line in process.stderr:
        event = json.loads(line) if line.startswith("{") else {}
        url = event.get("url", url)
        models -= event.get("event") == "model ready"
        if not models:
            break
    drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
    process.stderr.close()
    try:
        host, port = url.removeprefix("http://").rsplit(":", 1)
        yield (host, int(port)), process.pid
    finally:
        process.terminate()
        process.wait(30)
        drain.wait(10)


@contextmanager
def echo() -> Iterator[Server]:
    """A process that answers everything with fixed bytes, as long as LAC's answers: what sockets cost by themselves."""
    command = [sys.executable, "-c", "import serve_parts; serve_parts.echo()"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent)
    try:
        yield ("127.0.0.1", int(process.stdout.readline())), process.pid
    finally:
        process.terminate()
        process.wait(30)


# Without a server -----------------------------------------------------------------------------------------------------
def predictor_of(model: Path) -> inference.Predictor:
    return inference.create_predictor(inference.Config(str(model)))


def plain_loop(predictor: inference.Predictor | OnnxPredictor, feeds: list[LoDTensor], seconds: float) -> load.Load:
    """One predictor, one feed at a time, no HTTP."""
    handle = predictor.get_input_handle(predictor.get_input_names()[0])
    out = predictor.get_output_handle(predictor.get_output_names()[0])
    for span in (min(1.0, seconds), seconds):
        found, cpu, i = load.Load(), time.process_time(), 0
        begin = time.perf_counter()
        while (start := time.perf_counter()) < begin + span:
            handle.share_external_data(feeds[i % len(feeds)])
            predictor.run()
            out.copy_to_cpu()
            found.times.append(time.perf_counter() - start)
            i += 1
        found.wall, found.cpu = time.perf_counter() - begin, {"worker": time.process_time() - cpu}
    return found


def joined_feeds(texts: list[np.ndarray], batch: int) -> list[LoDTensor]:
    whole = [texts[i : i + batch] for i in range(0, len(texts) - batch + 1, batch)]
    return [LoDTensor(np.concatenate(some), [[0, *np.cumsum([len(t) for t in some]).tolist()]]) for some in whole]


def tags_of(predictor: inference.Predictor, texts: list[np.ndarray]) -> list[bytes]:
    """The bytes that each sentence's answer ends with."""
    found = []
    for ids in texts:
        predictor.get_input_handle(predictor.get_input_names()[0]).share_external_data(LoDTensor(ids, [[0, len(ids)]]))
        predictor.run()
        found.append(predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu().tobytes())
    return found


# Tables ---------------------------------------------------------------------------------------------------------------
class Report:
    """Lines as they come, for the screen and for a file."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, line: str = "") -> None:
        self.lines.append(line)
        print(line, flush=True)

    def head(self) -> None:
        cpu = "".join(f"{name:>9}" for name in ("server", "worker", "client"))
        self(f"{'':<40}{'clients':>8}{'req/s':>9}{'p50 ms':>9}{'p99 ms':>9} | CPU ms{cpu} | bad wrong")

    def row(self, how: str, clients: int, loads: Sequence[load.Load]) -> tuple[float, float]:
        """Medians of several loads; returns the requests per second, and for a second of CPU time of all processes."""
        middle: Callable[..., float] = statistics.median
        rate = middle(one.rate for one in loads)
        p50, p99 = (middle(one.percentile(q) for one in loads) for q in (50, 99))
        spent = [middle(one.each(one.cpu.get(n, 0.0)) for one in loads) for n in ("server", "worker")]
        spent.append(middle(one.each(one.own_cpu) for one in loads))
        cpu = "".join(f"{ms:>9.3f}" for ms in spent)
        bad, wrong = sum(one.bad for one in loads), sum(one.wrong for one in loads)
        self(f"{how:<40}{clients:>8}{rate:>9.1f}{p50:>9.2f}{p99:>9.2f} |       {cpu} |{bad:>4}{wrong:>6}")
        return rate, 1e3 / sum(spent)


def in_turns(
    report: Report,
    servers: dict[str, Server],
    requests: list[bytes],
    counts: list[int],
    options: argparse.Namespace,
    expected: list[bytes] | None = None,
) -> dict[tuple[str, int], tuple[float, float]]:
    """Load servers in turns; returns requests per second, and for a second of CPU time, by server and clients."""
    rates = {}
    for clients in counts:
        found: dict[str, list[load.Load]] = {how: [] for how in servers}
        for at, _ in servers.values():
            load.drive(at, requests, clients, options.seconds / 2)  # new shapes, new connections
        for _ in range(options.rounds):
            for how, (at, pid) in servers.items():
                time.sleep(options.rest)
                found[how].append(load.measured(pid, at, requests, clients, options.seconds, expected))
        for how, loads in found.items():
            rates[how, clients] = report.row(how, clients, loads)
    return rates


# Models ---------------------------------------------------------------------------------------------------------------
def lac(report: Report, options: argparse.Namespace) -> None:
    texts = sentences(512)
    lengths = [len(t) for t in texts]
    mean, long = np.mean(lengths), np.mean([len(t) for t in padded(texts)])
    report(f"LAC: 512 sentences of {min(lengths)} to {max(lengths)} characters, {mean:.1f} in the mean,")
    report(f"{long:.1f} padded to the longest of 32; binary tensors")
    report()
    predictor = predictor_of(options.lac)
    cpu = {}
    for batch in BATCHES:
        one = plain_loop(predictor, joined_feeds(texts, batch), options.seconds)
        cpu[batch] = one.each(one.cpu["worker"]) / batch
        report(f"a predictor alone, {batch:>2} sentences in a run: {cpu[batch]:.3f} CPU ms for each")
    report()
    report("parts of a request in the server, CPU ms for each, of 32 in a batch and of one:")
    for part, (joined, alone) in parts_of_a_request(texts[:32]).items():
        report(f"  {part:<40}{joined:>8.4f}{alone:>8.4f}")
    report()
    report.head()
    requests, expected = lac_requests(texts), tags_of(predictor, texts)
    workers = ("--workers", options.workers, "--threads", options.threads)
    with ExitStack() as stack:
        modes = {"joined by LoD": (), "not joined": ("--max-batch", "1")}
        servers = {
            how: stack.enter_context(server(OPRACK, str(options.lac), "--name", "lac", *workers, *m))
            for how, m in modes.items()
        }
        floor = {"no server: fixed bytes on an event loop": stack.enter_context(echo())}
        in_turns(report, floor, requests, [32], options)
        rates = in_turns(report, servers, requests, options.clients, options, expected)
        one_server = {"joined, padded by the clients": servers["joined by LoD"]}
        in_turns(report, one_server, lac_requests(padded(texts)), options.clients[1:], options)
    report()
    most = options.clients[-1]
    for clients in options.clients[1:]:
        joined, alone = rates["joined by LoD", clients], rates["not joined", clients]
        report(
            f"{clients} clients: joined {joined[0] / alone[0]:.2f} times the requests of not joined, "
            f"and for the same CPU time {joined[1] / alone[1]:.2f} times"
        )
    report(
        f"if HTTP and the hand-over cost nothing, one thread gives {1e3 / cpu[1]:.0f} sentences a second not joined,"
    )
    for batch in BATCHES[1:]:
        bound = 1e3 / cpu[batch]
        report(f"  {bound:.0f} joined by {batch} ({cpu[1] / cpu[batch]:.2f} times)")
    report(f"reached with {most} clients: {rates['joined by LoD', most][0]:.0f} and {rates['not joined', most][0]:.0f}")
    report()


def rec(report: Report, options: argparse.Namespace) -> None:
    report("PP-OCRv4 recognition: float32 [1, 3, 48, 320], binary tensors")
    report()
    report.head()
    images = pictures(16)
    feeds = [LoDTensor(x) for x in images]
    requests = [request_bytes("rec", [("x", x, [])]) for x in images]
    workers = ("--workers", options.workers, "--threads", options.threads)
    report.row("a predictor in a loop, no HTTP", 1, [plain_loop(predictor_of(options.rec), feeds, options.seconds)])
    engines = [("", OPRACK)]
    if options.rec_onnx is not None and options.rec_onnx.is_file() and (options.peers / "onnxruntime").is_dir():
        onnx, peers = str(options.rec_onnx), str(options.peers)
        sys.path.append(peers)
        session = OnnxPredictor(onnx, int(options.threads), ["x"], ["out"])
        report.row("ONNX Runtime in a loop, no HTTP", 1, [plain_loop(session, feeds, options.seconds)])
        engines.append(("ONNX Runtime, ", (str(Path(__file__).with_name("onnx_server.py")), onnx, peers)))
    for engine, start in engines:
        with ExitStack() as stack:
            servers = {}
            for how, size in ((f"{engine}joined to 8", "8"), (f"{engine}not joined", "1")):
                started = server(start, str(options.rec), "--name", "rec", *workers, "--max-batch", size)
                servers[how] = stack.enter_context(started)
            in_turns(report, servers, requests, options.clients[::2], options)
    report()


def embedder(report: Report, options: argparse.Namespace) -> None:
    import embedder_parts as parts

    texts = parts.paragraphs(512)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        models, onnx, tokenizer = parts.collect(Path(name))
        lengths = parts.lengths(tokenizer, texts)
        report(f"embedder: 512 paragraphs of docs, {min(lengths)} to {max(lengths)} tokens, {np.mean(lengths):.1f} in")
        report(f"the mean; of batches of 32, {parts.padding(lengths, 32):.0%} is padding; tritonclient over HTTP")
        report()
        report.head()
        workers = ("--workers", options.workers, "--threads", options.threads)
        served = server(OPRACK, "--models", str(models), "--allow-pipelines", *workers, models=2)
        servers = {"oprack serve": stack.enter_context(served)}
        plain = stack.enter_context(parts.plain_server(onnx, tokenizer, options.workers, options.threads))
        servers["ONNX Runtime, the plainest server"] = plain
        gaps, rates = [], {}
        for count, numbers in ((1, options.clients[:3]), (32, (1, 4))):
            requests = [texts[i : i + count] for i in range(0, len(texts), count)]
            answers = [[ask(r) for r in requests[:16]] for ask in (parts.asking(at) for at, _ in servers.values())]
            gaps += [np.abs(a - b).max() for a, b in zip(*answers, strict=True)]
            for clients in numbers:
                found: dict[str, list[load.Load]] = {how: [] for how in servers}
                for turn in range(options.rounds + 1):  # the first one is not counted
                    for how, (at, pid) in servers.items():
                        time.sleep(options.rest)
                        seconds = options.seconds if turn else options.seconds / 2
                        one = load.called(pid, partial(parts.asking, at), requests, clients, seconds)
                        found[how] += [one] if turn else []
                for how, loads in found.items():
                    rate, _ = report.row(f"{how}, {count} a request", clients, loads)
                    rates[how, count, clients] = rate * count
        report()
        report(f"largest difference of a vector's element, of vectors of length 1: {max(gaps):.1e}")
        for (how, count, clients), rate in rates.items():
            if how == "oprack serve":
                times = rate / rates["ONNX Runtime, the plainest server", count, clients]
                report(f"{count:>2} a request, {clients} clients: {rate:.0f} sentences a second, {times:.2f} times")
    report()


def main() -> int:
    parser = argparse.ArgumentParser(description="Load on oprack serve over loopback.")
    add = parser.add_argument
    add("--lac", type=Path, default=DOWNLOADS / "lac/lac_model/model")
    add("--rec", type=Path, default=DOWNLOADS / "ppocr/rec")
    add("--rec-onnx", type=Path, default=DOWNLOADS / "bench_models/ppocr/ch_PP-OCRv4_rec_infer.onnx")
    add("--peers", type=Path, default=PEERS, help="site-packages that have ONNX Runtime")
    add("--seconds", type=float, default=2.5)
    add("--rounds", type=int, default=3)
    add("--rest", type=float, default=0.5, help="seconds before each load")
    add("--clients", type=lambda text: [int(c) for c in text.split(",")], default=[1, 8, 32, 64])
    add("--workers", default="1")
    add("--threads", default="1")
    add("--models", default="lac,rec", help="some of lac, rec and embedder")
    add("--out", type=Path)
    add("--more", action="store_true", help="keep what FILE has, and write this behind it: some models now, some later")
    options = parser.parse_args()
    report = Report()
    if not options.more:
        report(
            f"{os.cpu_count()} CPUs, shared by clients, server and workers; median of {options.rounds} loads in turns"
        )
        report(
            f"{options.workers} workers of {options.threads} threads; CPU ms for each request, of all clients together"
        )
        report()
    with ExitStack() as stack:
        for library in default_manager().extensions.libraries().values():
            if not isinstance(library, Exception):
                stack.enter_context(library.limit_threads(1))
        for name, measure in (("lac", lac), ("rec", rec), ("embedder", embedder)):
            if name in options.models.split(","):
                measure(report, options)
    if options.out:
        with options.out.open("a" if options.more else "w", encoding="utf-8") as out:
            out.write("\n".join(report.lines) + "\n")
    return 0


if __name__ == "__main__":
    if not ONE_THREAD.items() <= os.environ.items():  # NumPy's library reads them when it is loaded
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ONE_THREAD)
    sys.exit(main())
