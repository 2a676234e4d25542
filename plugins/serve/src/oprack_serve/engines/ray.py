"""Ray Serve: replicas of the server's application, in as many processes and on as many machines as Ray has.

    pip install "oprack-serve[ray]"
    serve run oprack_serve.engines.ray:build models=/srv/models workers=2 max_replicas=8

Each replica is the whole application of `oprack serve`: its protocol, lanes that join requests, limits, reloading, and
processes for models. Ray does what is between replicas: it listens, sends requests to those that have few, starts and
ends replicas by the load, and replaces those that are ill. A replica gets requests when its models are warmed up.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from oprack.errors import InvalidArgumentError
from ray import serve
from starlette.applications import Starlette

from oprack_serve.app import make_app
from oprack_serve.command import configure, settings_of
from oprack_serve.log import JsonLog
from oprack_serve.models import Models
from oprack_serve.settings import Settings

OF_RAY = ("host", "port", "max_connections", "drain_delay")
"""Options that are Ray's to decide."""
REPLICAS = {"min_replicas": 1, "max_replicas": 1, "target_ongoing_requests": 32}


def build(arguments: Mapping[str, Any]) -> serve.Application:
    """The application for `serve run` and `serve.run`.

    Args:
        arguments: Options of `oprack serve` by their names with underscores, and `model` for a single one. Beside them
            `min_replicas`, `max_replicas` (1 each) and `target_ongoing_requests` (32), by which Ray chooses how many
            replicas there are.

    Returns:
        The application. A replica takes as many CPUs as its workers have threads.

    Raises:
        InvalidArgumentError: An option is unknown or Ray's own, or a value is not what it takes.
    """
    replicas = {name: _number(name, arguments.get(name, default)) for name, default in REPLICAS.items()}
    settings = _settings({name: value for name, value in arguments.items() if name not in REPLICAS})

    @serve.deployment(
        name="oprack",
        autoscaling_config=replicas,
        # more than a replica takes: what it can't take it answers with 503 itself
        max_ongoing_requests=settings.max_queue + settings.workers * settings.max_batch + 1,
        graceful_shutdown_timeout_s=settings.grace,
        ray_actor_options={"num_cpus": settings.workers * settings.threads},
    )
    @serve.ingress(lambda: replica_app(settings))
    class Replica:
        def check_health(self) -> None:
            """Ray replaces the replica when this fails again and again."""
            models: Models = self.app.state.models  # type: ignore[attr-defined]
            if models.started and not models.ready:
                raise RuntimeError("no model has a worker that answers; the log of the replica says why")

    return Replica.bind()  # type: ignore[attr-defined]


def replica_app(settings: Settings) -> Starlette:
    """The application of a replica, whose start ends when all models are warmed up or were reported."""

    def started(models: Models) -> None:
        app.state.models = models

    app = make_app(settings, JsonLog(all_requests=settings.log == "all"), started)
    inner = app.router.lifespan_context

    @contextlib.asynccontextmanager
    async def lifespan(of: Starlette) -> AsyncIterator[Any]:
        async with inner(of) as state:
            while not app.state.models.started:
                await asyncio.sleep(0.05)
            yield state

    app.router.lifespan_context = lifespan
    return app


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise InvalidArgumentError(f"options of the application: {message}")


def _settings(arguments: Mapping[str, Any]) -> Settings:
    """The command's own parser reads the options, so they are checked as those are."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    configure(parser)
    flags = {a.dest for a in parser._actions if a.option_strings and a.nargs == 0}
    words = [str(arguments["model"])] if "model" in arguments else []
    for name, value in arguments.items():
        if name in OF_RAY:
            raise InvalidArgumentError(f"option {name} is Ray's: serve.start(http_options=...), or serve's config file")
        option = f"--{name.replace('_', '-')}"
        if name in flags:
            words += [option] if str(value).lower() in ("true", "1", "yes") else []
        elif name != "model":
            words += [option, str(value)]
    if "threads" not in arguments:
        words += ["--threads", "1"]  # the CPUs of the machine are Ray's to divide
    return settings_of(parser.parse_args(words))


def _number(name: str, value: Any) -> int:
    if not str(value).isdigit():
        raise InvalidArgumentError(f"{name} = {value!r}; expected a whole number")
    return int(value)
