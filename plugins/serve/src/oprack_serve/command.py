"""oprack serve MODEL [--name NAME] | oprack serve --models DIR, and what bounds the server."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oprack_serve.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `oprack serve`."""
    from oprack_ir.precisions import add_precisions

    from oprack_serve.settings import Settings

    add, default = parser.add_argument, Settings()
    add("model", nargs="?", type=Path, help="folder with __model__ or one .pdmodel; a .pdmodel file; or its prefix")
    add("--name", default="", help="name of MODEL in URLs (default: that of its folder or file)")
    add("--models", type=Path, metavar="DIR", help="serve every model below DIR: DIR/<name> or DIR/<name>/<version>")
    add("--host", default=default.host, help="address to listen at (default: %(default)s, this machine alone)")
    add(
        "--port",
        type=_number(0, 65535),
        default=default.port,
        help="port to listen at; 0: any free one (default: %(default)s)",
    )
    add(
        "--health-port",
        type=_number(0, 65535),
        metavar="PORT",
        help="a port for probes of health, which keeps room for them, and the only one for metrics; 0: any free one",
    )
    add(
        "--grpc-port",
        type=_number(0, 65535),
        metavar="PORT",
        help="serve gRPC as well, at this port; 0: any free one (Triton's is 8001; needs oprack-serve[grpc])",
    )
    add(
        "--workers",
        type=_number(1, 256),
        default=default.workers,
        metavar="K",
        help="batches that run at once; each model has as many processes (default: %(default)s)",
    )
    add(
        "--fronts",
        type=_number(1, 64),
        default=default.fronts,
        metavar="N",
        help="processes that take requests at the port, each with the same workers (default: %(default)s)",
    )
    add(
        "--threads",
        type=_number(0, 1024),
        default=default.threads,
        metavar="N",
        help="threads that one batch computes with (default: the CPUs divided by the workers)",
    )
    add(
        "--max-batch",
        type=_number(1, 1 << 20),
        default=default.max_batch,
        metavar="B",
        help="most rows or sequences in one batch; 1: requests are never joined (default: %(default)s)",
    )
    add(
        "--max-delay",
        type=_positive(0),
        default=default.max_delay * 1e3,
        metavar="MS",
        help="longest wait of a request for others to join it, though a worker is free (default: %(default)g)",
    )
    add(
        "--max-queue",
        type=_number(1, 1 << 20),
        default=default.max_queue,
        metavar="N",
        help="most requests that wait for a model; others are answered with 503 (default: %(default)s)",
    )
    add(
        "--max-body",
        type=_bytes,
        default=default.max_body,
        metavar="BYTES",
        help="largest body of a request; may end in K, M or G; larger ones are answered with 413 (default: 64M)",
    )
    add(
        "--max-inflight",
        type=_bytes,
        default=default.max_inflight,
        metavar="BYTES",
        help="most memory for the bodies and answers of all requests; beyond it the answer is 503 (default: 512M)",
    )
    add(
        "--max-connections",
        type=_number(1, 1 << 20),
        default=default.max_connections,
        metavar="N",
        help="most connections at once; beyond them, slow clients make room for others (default: %(default)s)",
    )
    add(
        "--memory-limit",
        type=_bytes,
        default=default.memory_limit,
        metavar="BYTES",
        help="most memory for the outputs of one op; beyond it the answer is 413; 0: no limit (default: 2G)",
    )
    add(
        "--worker-memory",
        type=_bytes,
        default=default.worker_memory,
        metavar="BYTES",
        help="memory of a worker, beside what it shares, beyond which another replaces it; 0: no limit (default: 2G)",
    )
    add(
        "--timeout",
        type=_positive(0.001),
        default=default.timeout,
        metavar="S",
        help="seconds until a request is answered with 504; a run that nobody awaits is ended (default: %(default)g)",
    )
    add(
        "--read-timeout",
        type=_positive(0.001),
        default=default.read_timeout,
        metavar="S",
        help="seconds that a client may take to send a request or to read its answer (default: %(default)g)",
    )
    add(
        "--drain-delay",
        type=_positive(0),
        default=default.drain_delay,
        metavar="S",
        help="seconds in which a stopped server takes requests though it says it is not ready (default: %(default)g)",
    )
    add(
        "--grace",
        type=_positive(0),
        default=default.grace,
        metavar="S",
        help="seconds for finishing requests when the server is stopped (default: %(default)g)",
    )
    add(
        "--poll",
        type=_positive(0),
        default=default.poll,
        metavar="S",
        help="seconds between looks for new and changed models; 0: never look (default: %(default)g)",
    )
    add(
        "--shared-memory",
        action="store_true",
        help="let clients on this machine, who are trusted, leave tensors in POSIX shared memory",
    )
    add("--tls-cert", type=Path, metavar="FILE", help="serve over TLS with this certificate, in PEM")
    add("--tls-key", type=Path, metavar="FILE", help="its private key")
    add(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="answer requests with a bearer token of this file alone, one on each line, but for health",
    )
    add(
        "--otlp",
        type=_url,
        metavar="URL",
        help="send OpenTelemetry traces to this collector, as http://127.0.0.1:4318 (needs oprack-serve[otel])",
    )
    add("--allow-trace", action="store_true", help="answer requests with parameter trace with the times of their ops")
    add(
        "--allow-pipelines",
        action="store_true",
        help="serve pipelines: run the Python code in folders with a pipeline.toml, with the rights of the server",
    )
    add(
        "--log",
        choices=("all", "failed"),
        default=default.log,
        help="requests that are lines of the log: all, or those that failed (default: %(default)s)",
    )
    add(
        "--cache",
        type=Path,
        metavar="DIR",
        help="keep rewritten models in DIR, so that the next start and each reload of the same model runs no pass",
    )
    add_precisions(parser)
    parser.set_defaults(run=run)


def _number(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r}; expected a number from {least} to {most}")
        return int(text)

    return number


def _positive(least: float) -> Callable[[str], float]:
    def positive(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not least <= value <= 1e6:
            raise argparse.ArgumentTypeError(f"{text!r}; expected a number from {least:g}")
        return value

    return positive


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f"{text!r}; expected a URL, such as http://127.0.0.1:4318")
    return text


def _bytes(text: str) -> int:
    number, unit = (text[:-1], text[-1:].upper()) if text[-1:].upper() in ("K", "M", "G") else (text, "")
    if not number.isascii() or not number.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r}; expected bytes, such as 1048576 or 64M")
    return int(number) << {"": 0, "K": 10, "M": 20, "G": 30}[unit]


def run(args: argparse.Namespace) -> int:
    """Serve until the process is told to stop."""
    from oprack_serve.server import serve

    return serve(settings_of(args))


def settings_of(args: argparse.Namespace) -> Settings:
    """What the options say. Raises InvalidArgumentError for options that exclude each other, and NotFoundError for a
    model or a folder that is not there.
    """
    from oprack.errors import InvalidArgumentError, NotFoundError

    from oprack_serve.settings import Settings

    if (args.model is None) == (args.models is None):
        raise InvalidArgumentError("oprack serve takes either a MODEL or --models DIR")
    if args.model is not None and not any(map(Path.exists, (args.model, Path(f"{args.model}.pdmodel")))):
        raise NotFoundError(
            f"there is no model at {str(args.model)!r}; expected a folder with __model__ or one .pdmodel, a .pdmodel "
            "file, or its path without that ending"
        )
    if args.models is not None and not args.models.is_dir():
        raise NotFoundError(
            f"--models {str(args.models)!r} is no folder; expected one that holds a folder for each model"
        )
    if args.name and args.model is None:
        raise InvalidArgumentError("--name is for a single MODEL; models of --models DIR are named by their folders")
    names = (
        *("model", "name", "models", "host", "port", "health_port", "grpc_port", "workers", "fronts", "threads"),
        *("max_batch", "max_queue", "max_body", "max_inflight", "max_connections", "memory_limit", "worker_memory"),
        *("timeout", "read_timeout", "drain_delay", "grace", "poll", "tls_cert", "tls_key", "token_file", "otlp"),
        *("allow_trace", "allow_pipelines", "shared_memory", "log", "cache", "int8", "bf16"),
    )
    return Settings(**{name: getattr(args, name) for name in names}, max_delay=args.max_delay / 1e3)
