"""Runs the application on uvicorn."""

from __future__ import annotations

import asyncio
import resource
import socket
import time
from importlib.util import find_spec

import uvicorn
from oprack.errors import InvalidArgumentError

from oprack_serve import repository
from oprack_serve.access.tls import check_tls
from oprack_serve.app import make_app, server_version
from oprack_serve.http import KEEP_ALIVE, bounded_protocol
from oprack_serve.log import JsonLog, log_all
from oprack_serve.models import Models
from oprack_serve.settings import Settings

ACCEPTED_AT_ONCE, WAITING_IN_THE_SYSTEM = 64, 1024
KEPT_DESCRIPTORS = 64 + 4 * ACCEPTED_AT_ONCE
"""For models, workers, files, and connections that are closed soon: four turns of the loop go by until one is."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, drain_delay: float) -> None:
        super().__init__(config)
        self._drain_delay = drain_delay
        self.models: Models | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn does it, whose backlog is both: how many asyncio accepts at once, and how many wait for that."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(WAITING_IN_THE_SYSTEM)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn does it, after whoever sends requests has seen that the server is not ready any more.

        The signal that asked for it does not end the process as well; a second Ctrl+C ends the delay.
        """
        if self.models is not None:
            self.models.draining = True
        end = time.monotonic() + self._drain_delay
        while time.monotonic() < end and not self.force_exit:
            await asyncio.sleep(0.05)
        if self.models is not None:
            self.models.on_stop()
        await super().shutdown(sockets)
        self._captured_signals.clear()

    def _log_started_message(self, listeners: object) -> None:
        """Said by `serve`, as a line of the log."""


def _connections(settings: Settings, log: JsonLog) -> int:
    """How many connections the limit of descriptors allows, which is raised as far as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard == resource.RLIM_INFINITY or settings.max_connections <= hard - KEPT_DESCRIPTORS:
        return settings.max_connections
    allowed = max(16, hard - KEPT_DESCRIPTORS)
    fix = f"raise it to {settings.max_connections + KEPT_DESCRIPTORS}, or start with --max-connections {allowed}"
    log("fewer connections", allowed=allowed, reason=f"the limit of descriptors (ulimit -Hn) is {hard}", fix=fix)
    return allowed


def _check_extras(settings: Settings) -> None:
    """Raise InvalidArgumentError for what needs a package that is missing, OSError where the port of gRPC is taken."""
    if settings.otlp:
        _need("opentelemetry.exporter.otlp.proto.http", "--otlp", "otel")
    if settings.grpc_port is not None:
        _need("grpc", "--grpc-port", "grpc")
        _listener(settings.host, settings.grpc_port).close()


def _need(module: str, option: str, extra: str) -> None:
    try:
        found = find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise InvalidArgumentError(
            f"{option} needs {module}, which is not installed: pip install oprack-serve[{extra}]"
        )


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends without delay where the protocol is TCP's by name
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(WAITING_IN_THE_SYSTEM)
    except OSError:
        listener.close()
        raise
    return listener


def serve(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT: then finish what runs, refuse the rest, and return.

    Raises OSError when the address can't be listened at, InvalidArgumentError for a name that can't be in a URL.
    """
    log = JsonLog(all_requests=settings.log == "all")
    log_all(log)
    if settings.model is not None:
        repository.single(settings.model, settings.name)
    _check_extras(settings)
    scheme = "https" if check_tls(settings.tls_cert, settings.tls_key) else "http"

    def started(models: Models) -> None:
        server.models = models
        log("listening", url=url, version=server_version())

    app = make_app(settings, log, started)
    listener = _listener(settings.host, settings.port)
    host, port = listener.getsockname()[:2]
    url = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
    config = uvicorn.Config(
        app,
        http=bounded_protocol(settings.read_timeout, _connections(settings, log)),
        ws="none",
        lifespan="on",
        loop="auto",  # uvloop where it is installed
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(settings.grace)),
        backlog=ACCEPTED_AT_ONCE,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    server = _Server(config, settings.drain_delay)
    server.run(sockets=[listener])
    log("stopped")
    log.flush(1.0)
    return 0
