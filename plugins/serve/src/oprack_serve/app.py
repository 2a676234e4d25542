"""The routes of the open inference protocol, version 2, and what is seen of the server from outside."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from oprack_serve.access.tokens import Authorized, Tokens
from oprack_serve.edge.direct import Direct
from oprack_serve.errors import RequestError
from oprack_serve.extensions.model_configuration import model_configuration
from oprack_serve.extensions.openapi import openapi
from oprack_serve.extensions.server_metadata import server_metadata, server_version
from oprack_serve.extensions.statistics import statistics
from oprack_serve.fronts.manager import Fronts
from oprack_serve.http import Bodies
from oprack_serve.infer import Inference
from oprack_serve.json_data import parse_json, to_json
from oprack_serve.log import JsonLog
from oprack_serve.metrics import Metrics
from oprack_serve.models import Models
from oprack_serve.settings import Settings

SWEEP_SECONDS = 0.02
MAX_REGION_BODY = 4096


def json_response(status: int, value: Any, headers: dict[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Response(to_json(value), status, headers, media_type="application/json")


def error_response(error: RequestError) -> Response:
    """What the protocol answers an error with."""
    headers = {"Retry-After": "1"} if error.status == 503 else None
    return json_response(error.status, {"error": str(error)}, headers)


@contextlib.contextmanager
def _swept(*sweeps: Callable[[float], None]) -> Iterator[None]:
    """Has what is late looked for every SWEEP_SECONDS, by functions of the time."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def sweep() -> None:
        nonlocal timer
        timer = loop.call_later(SWEEP_SECONDS, sweep)
        for each in sweeps:
            each(time.monotonic())

    timer = loop.call_later(SWEEP_SECONDS, sweep)
    try:
        yield
    finally:
        timer.cancel()


@contextlib.asynccontextmanager
async def _listening_for_grpc(
    settings: Settings, models: Models, metrics: Metrics, inference: Inference, tokens: Tokens | None, log: JsonLog
) -> AsyncIterator[list[Callable[[float], None]]]:
    """Serve gRPC on the same models, if that is asked for; what looks for slow clients has to be swept."""
    if settings.grpc_port is None:
        yield []
        return
    from oprack_serve.grpc.service import GrpcServer

    server = GrpcServer(settings, models, metrics, inference, tokens)
    log("listening", url=await server.start(), version=server_version())
    models.on_stop = server.stop_soon
    try:
        yield [server.sweep]
    finally:
        await server.stop()


def make_app(
    settings: Settings,
    log: JsonLog,
    on_start: Callable[[Models], None] = lambda models: None,
    make_models: Callable[[Settings, JsonLog], Models] = Models,
    fronts: Fronts | None = None,
) -> Starlette:
    """The application; its lifespan loads the models and ends their processes.

    Args:
        settings: The server's.
        log: Of events and requests.
        on_start: Called with the models when they begin to load.
        make_models: Makes them; another front has those of the server.
        fronts: Other processes that are to take requests for the same models.

    Returns:
        The application. `state.health` of it is the one of the port for probes, which shares the models and has no
        lifespan.
    """
    state: dict[str, Any] = {}
    tokens = Tokens(settings.token_file, log) if settings.token_file else None
    bodies_of_regions = Bodies(MAX_REGION_BODY, settings.max_inflight)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        models = make_models(settings, log)
        models.fronts = fronts
        metrics = models.metrics = Metrics(models, log)
        state.update(models=models, metrics=metrics)
        inference = state["inference"] = Inference(settings, models, metrics, models.bodies, log)
        app.state.direct = Direct(inference, tokens, settings.read_timeout)
        # health is answered while models load
        loading = asyncio.get_running_loop().create_task(models.start())
        on_start(models)
        await models.informed()
        sweeps: list[Callable[[float], None]] = [inference.sweep, models.scheduler.sweep]
        if fronts is not None:
            await fronts.start(models, told)
            sweeps.append(fronts.sweep)
        try:
            async with _listening_for_grpc(settings, models, metrics, inference, tokens, log) as more:
                with _swept(*sweeps, *more):
                    yield
        finally:
            loading.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await loading
            await models.stop()
            await inference.close()

    def answered(respond: Callable[[Request, Models], Response]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            try:
                return respond(request, state["models"])
            except RequestError as error:
                return error_response(error)

        return endpoint

    def server(_: Request, models: Models) -> Response:
        return json_response(200, server_metadata())

    def live(_: Request, models: Models) -> Response:
        return json_response(200, {"live": True})

    def ready(_: Request, models: Models) -> Response:
        return json_response(200 if models.ready else 503, {"ready": models.ready})

    def model_of(request: Request, models: Models) -> Any:
        return models.find(request.path_params["name"], request.path_params.get("version"))

    def metadata(request: Request, models: Models) -> Response:
        return json_response(200, models.metadata(model_of(request, models)))

    def model_ready(request: Request, models: Models) -> Response:
        model = model_of(request, models)
        fine = models.serves(model)
        return json_response(200 if fine else 503, {"name": model.name, "ready": fine})

    def configuration(request: Request, models: Models) -> Response:
        return json_response(200, model_configuration(model_of(request, models)))

    def told(of: dict[str, Any]) -> bytes:
        """What all fronts have counted: the statistics of a model or of all, or the metrics."""
        if "name" not in of:
            return bytes(state["metrics"].text())
        try:
            found = statistics(state["models"], state["metrics"], of["name"], of["version"])
        except RequestError:  # it was there when the front looked
            found = {"model_stats": []}
        return to_json(found)

    async def counted(models: Models, of: dict[str, Any]) -> bytes:
        return await models.relay(of) if models.relay else told(of)

    async def stats(request: Request) -> Response:
        models: Models = state["models"]
        name, number = request.path_params.get("name", ""), request.path_params.get("version")
        try:
            if name:
                models.find(name, number)
            text = await counted(models, {"name": name, "version": number})
        except RequestError as error:
            return error_response(error)
        return Response(text, media_type="application/json")

    def region_status(request: Request, models: Models) -> Response:
        return json_response(200, state["inference"].regions.status(request.path_params.get("region", "")))

    def unregister(request: Request, models: Models) -> Response:
        regions, region = state["inference"].regions, request.path_params.get("region")
        regions.unregister_all() if region is None else regions.unregister(region)
        return json_response(200, {})

    def unregister_of_gpus(_: Request, models: Models) -> Response:
        return json_response(200, state["inference"].regions.unregister_of_gpus())

    async def register(request: Request) -> Response:
        """The only route besides inference that reads a body."""
        try:
            body = await bodies_of_regions.read(request.receive, request.headers.get("content-length"))
            try:
                row = parse_json(memoryview(body.data))
            finally:
                body.release()
            row = row if isinstance(row, dict) else {}
            given = (row.get("key"), row.get("offset", 0), row.get("byte_size"))
            state["inference"].regions.register(request.path_params["region"], *given)
            return json_response(200, {})
        except RequestError as error:
            return error_response(error)

    def document(_: Request, models: Models) -> Response:
        return json_response(200, openapi(settings, models, server_version()))

    def index(_: Request, models: Models) -> Response:
        return json_response(200, models.index())

    async def metrics(_: Request) -> Response:
        text = await counted(state["models"], {})
        return Response(text, media_type="text/plain; version=0.0.4")

    class Infer:
        """The route as a bare application, which sees the client leave."""

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await state["inference"].respond(scope, receive, send)

    def route(path: str, respond: Callable[[Request, Models], Response], methods: list[str]) -> Route:
        return Route(path, answered(respond), methods=methods)

    async def failed(_: Request, error: Exception) -> Response:
        log("error", error=f"{type(error).__name__}: {error}")
        return json_response(500, {"error": "the server failed; its log says more"})

    async def refused(request: Request, error: Any) -> Response:
        headers = dict(error.headers or {})
        text = f"there is nothing at {request.url.path[:200]!r}; GET /v2 says what this server is"
        if error.status_code == 405:
            text = f"{request.method[:40]} is not served here; send {headers.get('Allow', 'GET')}"
        return json_response(error.status_code, {"error": text}, headers)

    bases = ("/v2/models/{name}", "/v2/models/{name}/versions/{version}")
    health = [route("/v2/health/live", live, ["GET"]), route("/v2/health/ready", ready, ["GET"])]
    seen_by_operators = [Route("/metrics", metrics, methods=["GET"])]
    regions_path = "/v2/systemsharedmemory"
    one_region = f"{regions_path}/region/{{region}}"
    # looked through in this order for each request
    routes = [
        *(Route(f"{base}/infer", Infer(), methods=["POST"]) for base in bases),
        route("/v2", server, ["GET"]),
        *health,
        route("/v2/repository/index", index, ["POST"]),
        *([] if settings.health_port is not None else seen_by_operators),
        route("/openapi.json", document, ["GET"]),
        Route("/v2/models/stats", stats, methods=["GET"]),
        Route(f"{one_region}/register", register, methods=["POST"]),
        route("/v2/cudasharedmemory/unregister", unregister_of_gpus, ["POST"]),
    ]
    for path in (regions_path, one_region):
        routes += [
            route(f"{path}/status", region_status, ["GET"]),
            route(f"{path}/unregister", unregister, ["POST"]),
        ]
    of_models = {"": metadata, "/ready": model_ready, "/config": configuration}
    routes += [route(base + path, respond, ["GET"]) for base in bases for path, respond in of_models.items()]
    routes += [Route(f"{base}/stats", stats, methods=["GET"]) for base in bases]
    handlers: dict[Any, Any] = {HTTPException: refused, Exception: failed}
    middleware = [Middleware(Authorized, tokens=tokens, refuse=error_response)] if tokens else []
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers, middleware=middleware)
    app.state.direct = None  # before it begins
    probed = [*health, *seen_by_operators]
    app.state.health = Starlette(routes=probed, exception_handlers=handlers, middleware=middleware)
    return app
