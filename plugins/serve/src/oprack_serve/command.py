"""oprack serve MODEL [--name NAME] | oprack serve --models DIR, and what bounds the server."""

from __future__ import annotations

import argparse
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `oprack serve`."""
    from oprack_serve.settings import Settings

    add, default = parser.add_argument, Settings()
    add("model", nargs="?", type=Path, help="directory with __model__ or one .pdmodel; a .pdmodel file; or its prefix")
    add("--name", default="", help="name of MODEL in URLs (default: that of its folder or file)")
    add("--models", type=Path, metavar="DIR", help="serve every model below DIR: DIR/<name> or DIR/<name>/<version>")
    add("--host", default=default.host, help="address to listen at (default: %(default)s, this machine alone)")
    add("--port", type=_number(0, 65535), default=default.port, help="default: %(default)s; 0: a free one")
    add(
        "--workers",
        type=_number(1, 256),
        default=default.workers,
        metavar="K",
        help="batches that run at once, each in a process (default: %(default)s)",
    )
    add(
        "--threads",
        type=_number(0, 1024),
        default=default.threads,
        metavar="N",
        help="threads of kernel libraries in a worker (default: the CPUs shared among the workers)",
    )
    add(
        "--max-batch",
        type=_number(1, 1 << 20),
        default=default.max_batch,
        metavar="B",
        help="rows or sequences of requests that are joined; 1: none are (default: %(default)s)",
    )
    add(
        "--max-delay",
        type=_positive(0),
        default=default.max_delay * 1e3,
        metavar="MS",
        help="milliseconds that a request waits for others (default: %(default)g)",
    )
    add(
        "--max-queue",
        type=_number(1, 1 << 20),
        default=default.max_queue,
        metavar="N",
        help="requests that may wait for a model; more get 503 (default: %(default)s)",
    )
    add(
        "--max-body",
        type=_bytes,
        default=default.max_body,
        metavar="BYTES",
        help="largest body; K, M and G are understood (default: 64M)",
    )
    add(
        "--max-inflight",
        type=_bytes,
        default=default.max_inflight,
        metavar="BYTES",
        help="bytes of all bodies at once (default: 512M)",
    )
    add(
        "--max-connections",
        type=_number(1, 1 << 20),
        default=default.max_connections,
        metavar="N",
        help="connections at once; more are closed (default: %(default)s)",
    )
    add(
        "--memory-limit",
        type=_bytes,
        default=default.memory_limit,
        metavar="BYTES",
        help="bytes that the outputs of one op may take, 0: no limit (default: 2G)",
    )
    add(
        "--timeout",
        type=_positive(0.001),
        default=default.timeout,
        metavar="S",
        help="seconds for a request; a batch that runs for nobody any more is ended (default: %(default)g)",
    )
    add(
        "--read-timeout",
        type=_positive(0.001),
        default=default.read_timeout,
        metavar="S",
        help="seconds for a client to send a request or take its answer (default: %(default)g)",
    )
    add(
        "--grace",
        type=_positive(0),
        default=default.grace,
        metavar="S",
        help="seconds to finish what runs when the server is stopped (default: %(default)g)",
    )
    add(
        "--poll",
        type=_positive(0),
        default=default.poll,
        metavar="S",
        help="seconds between looks for changed models, 0: never (default: %(default)g)",
    )
    add("--allow-trace", action="store_true", help="let clients ask for the trace of a request by parameter trace")
    parser.set_defaults(run=run)


def _number(least: int, most: int) -> object:
    def number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r}; expected a number from {least} to {most}")
        return int(text)

    return number


def _positive(least: float) -> object:
    def positive(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not least <= value <= 1e6:
            raise argparse.ArgumentTypeError(f"{text!r}; expected a number from {least:g}")
        return value

    return positive


def _bytes(text: str) -> int:
    number, unit = (text[:-1], text[-1:].upper()) if text[-1:].upper() in ("K", "M", "G") else (text, "")
    if not number.isascii() or not number.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r}; expected bytes, such as 1048576 or 64M")
    return int(number) << {"": 0, "K": 10, "M": 20, "G": 30}[unit]


def run(args: argparse.Namespace) -> int:
    """Serve until the process is told to stop."""
    from oprack.errors import InvalidArgumentError, NotFoundError

    from oprack_serve.server import serve
    from oprack_serve.settings import Settings

    if (args.model is None) == (args.models is None):
        raise InvalidArgumentError("oprack serve takes either a MODEL or --models DIR")
    if args.models is not None and not args.models.is_dir():
        raise NotFoundError(
            f"--models {str(args.models)!r} is no folder; expected one that holds a folder for each model"
        )
    if args.name and args.model is None:
        raise InvalidArgumentError("--name is for a single MODEL; models of --models DIR are named by their folders")
    names = (
        *("model", "name", "models", "host", "port", "workers", "threads", "max_batch", "max_queue", "max_body"),
        *("max_inflight", "max_connections", "memory_limit", "timeout", "read_timeout", "grace", "poll", "allow_trace"),
    )
    settings = Settings(**{name: getattr(args, name) for name in names}, max_delay=args.max_delay / 1e3)
    return serve(settings)
