"""Runs the application on uvicorn."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import resource
import socket
import time
from importlib.util import find_spec

import uvicorn
from oprack.errors import InvalidArgumentError
from starlette.applications import Starlette

from oprack_serve import repository
from oprack_serve.access.tls import check_tls
from oprack_serve.app import make_app
from oprack_serve.edge import health
from oprack_serve.extensions.server_metadata import server_version
from oprack_serve.fronts import manager
from oprack_serve.http import KEEP_ALIVE, bounded_protocol, port_config
from oprack_serve.log import JsonLog, log_all
from oprack_serve.models import Models
from oprack_serve.settings import Settings

ACCEPTED_AT_ONCE, WAITING_IN_THE_SYSTEM = 4, 1024
"""Connections in one turn of the event loop: requests on others go on between the turns of a flood of new ones."""

KEPT_DESCRIPTORS = 256 + 16 * ACCEPTED_AT_ONCE
"""For models, workers, files, and connections that are closed soon: some turns of the loop go by until one is."""


_M_MMAP_THRESHOLD = -3


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, drain_delay: float, probes: health.HealthServer | None) -> None:
        super().__init__(config)
        self._drain_delay, self._probes = drain_delay, probes
        self.models: Models | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn does it, whose backlog is both: how many asyncio accepts at once, and how many wait for that."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(WAITING_IN_THE_SYSTEM)
        if self._probes is not None:
            await self._probes.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn does it, after whoever sends requests has seen that the server is not ready any more.

        Probes are answered until the last request is. The signal that asked for it does not end the process as well; a
        second Ctrl+C ends the delay.
        """
        if self.models is not None:
            self.models.draining = True
        end = time.monotonic() + self._drain_delay
        while time.monotonic() < end and not self.force_exit:
            await asyncio.sleep(0.05)
        if self.models is not None:
            self.models.on_stop()
            if self.models.fronts is not None:
                self.models.fronts.begin_stop()
        await super().shutdown(sockets)
        if self._probes is not None:
            await self._probes.stop()
        self._captured_signals.clear()

    def _log_started_message(self, listeners: object) -> None:
        """Said by `serve`, as a line of the log."""


def return_large_memory() -> None:
    """Have glibc map blocks of a megabyte and more by themselves: the system has them back when they are free.

    By itself it stops doing so for blocks of up to 32 MB once such ones were freed, and a large answer that is freed
    between others is then kept for ever.
    """
    with contextlib.suppress(OSError, AttributeError):  # other C libraries have no such threshold
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 1 << 20)


def _connections(settings: Settings, log: JsonLog) -> int:
    """How many connections the limit of descriptors allows, which is raised as far as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    kept = KEPT_DESCRIPTORS + (0 if settings.health_port is None else health.CONNECTIONS)
    if hard == resource.RLIM_INFINITY or settings.max_connections <= hard - kept:
        return settings.max_connections
    allowed = max(16, hard - kept)
    fix = f"raise it to {settings.max_connections + kept}, or start with --max-connections {allowed}"
    log("fewer connections", allowed=allowed, reason=f"the limit of descriptors (ulimit -Hn) is {hard}", fix=fix)
    return allowed


def _check_fronts(settings: Settings) -> None:
    """Raise InvalidArgumentError for what one process has to do, where several take requests."""
    alone = {"--allow-pipelines": settings.allow_pipelines, "--shared-memory": settings.shared_memory}
    given = [option for option, wanted in alone.items() if wanted]
    if settings.fronts > 1 and given:
        raise InvalidArgumentError(
            f"{given[0]} works in one process alone, and --fronts {settings.fronts} has {settings.fronts} take "
            f"requests; start without --fronts or without {given[0]}"
        )


def _check_extras(settings: Settings) -> None:
    """Raise InvalidArgumentError for what needs a package that is missing, OSError where the port of gRPC is taken."""
    if settings.otlp:
        _need("opentelemetry.exporter.otlp.proto.http", "--otlp", "otel")
    if settings.grpc_port is not None:
        _need("grpc", "--grpc-port", "grpc")
        _listen(settings.host, settings.grpc_port).close()


def _need(module: str, option: str, extra: str) -> None:
    try:
        found = find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise InvalidArgumentError(
            f"{option} needs {module}, which is not installed: pip install oprack-serve[{extra}]"
        )


def serve(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT: then finish what runs, refuse the rest, and return.

    Raises OSError when the address can't be listened at, InvalidArgumentError for a name that can't be in a URL.
    """
    return_large_memory()
    log = JsonLog(all_requests=settings.log == "all")
    log_all(log)
    if settings.model is not None:
        repository.single(settings.model, settings.name)
    _check_fronts(settings)
    _check_extras(settings)
    scheme = "https" if check_tls(settings.tls_cert, settings.tls_key) else "http"
    count, addresses = settings.fronts, (settings.host, settings.port)
    with contextlib.ExitStack() as listeners:
        shared = [listeners.enter_context(each) for each in _listen_together(*addresses, count)]
        ports = {"url": _url(scheme, shared[0])}
        probed = None
        if settings.health_port is not None:
            probed = listeners.enter_context(_listen(settings.host, settings.health_port))
            ports["health_url"] = _url(scheme, probed)
        others = None
        if count > 1:
            settings = manager.shares(settings)
            others = manager.Fronts(settings, shared[1:], log)
        _serve(settings, log, shared[0], probed, ports, others)
    log("stopped")
    log.flush(1.0)
    return 0


def _listen(host: str, port: int, shared: bool = False) -> socket.socket:
    """A socket that listens; shared: beside others of this port. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends without delay where the protocol is TCP's by name
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, port))
        listener.listen(WAITING_IN_THE_SYSTEM)
    except OSError:
        listener.close()
        raise
    return listener


def _listen_together(host: str, port: int, count: int) -> list[socket.socket]:
    """Sockets of one port, among which the system divides connections. Raises OSError."""
    first = _listen(host, port)
    if count == 1:
        return [first]
    # bound alone before: sockets that share a port would also share that of another server of the same user
    port = first.getsockname()[1]
    first.close()
    found: list[socket.socket] = []
    try:
        for _ in range(count):
            found.append(_listen(host, port, shared=True))
    except OSError:
        for each in found:
            each.close()
        raise
    return found


def _url(scheme: str, listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def uvicorn_config(app: Starlette, settings: Settings, log: JsonLog) -> uvicorn.Config:
    """How uvicorn runs a front."""
    return port_config(
        app,
        settings,
        bounded_protocol(settings.read_timeout, _connections(settings, log), lambda: app.state.direct),
        lifespan="on",
        loop="auto",  # uvloop where there are wheels of it
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(settings.grace)),
        backlog=ACCEPTED_AT_ONCE,
    )


def _serve(
    settings: Settings,
    log: JsonLog,
    listener: socket.socket,
    probed: socket.socket | None,
    ports: dict[str, str],
    others: manager.Fronts | None,
) -> None:
    def started(models: Models) -> None:
        server.models = models
        log("listening", **ports, version=server_version())

    app = make_app(settings, log, started, fronts=others)
    probes = None if probed is None else health.HealthServer(app.state.health, probed, settings)
    server = _Server(uvicorn_config(app, settings, log), settings.drain_delay, probes)
    server.run(sockets=[listener])
