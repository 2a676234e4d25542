"""The routes: the page itself, and what it asks for as JSON."""

from __future__ import annotations

import asyncio
import hmac
import math
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from oprack.errors import InvalidArgumentError, NotFoundError, OprackError
from oprack.packs.manager import PackManager
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from oprack_ui import installed
from oprack_ui.model import ShownModel

STATIC = Path(__file__).parent / "static"
MAX_BODY = 64 << 10
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
Answer = Callable[[Request], Awaitable[Response]]


def make_app(manager: PackManager, model: ShownModel | None, token: str) -> Starlette:
    """The application.

    Args:
        manager: The packs that it shows.
        model: The model that it shows; None for none.
        token: What a request has to bring, once as `/?token=...` and then as the cookie that this gives: other users of
            the machine can connect, too.

    Returns:
        An ASGI application. It answers requests that name this machine as their host, and no others: a page from
        elsewhere whose name was pointed at this machine can't ask it.
    """
    busy = asyncio.Lock()  # packs are imported, and the model is run, by one request at a time

    def route(path: str, answer: Callable[[Request, Mapping[str, Any]], Any], method: str = "GET") -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                body = await _body(request) if method == "POST" else {}
                async with busy:
                    return _json(await run_in_threadpool(answer, request, body))
            except NotFoundError as error:
                return _json({"error": str(error)}, 404)
            except OprackError as error:
                return _json({"error": f"{type(error).__name__}: {error}"}, 400)

        return Route(path, endpoint, methods=[method])

    def shown() -> ShownModel:
        if model is None:
            raise NotFoundError("no model is shown; start `oprack ui MODEL` to see one")
        return model

    return Starlette(
        routes=[
            route("/api/packs", lambda request, body: installed.packs(manager) | {"model": model and model.name}),
            route("/api/op/{name}", lambda request, body: installed.op(manager, request.path_params["name"])),
            route("/api/op/{name}/choice", lambda request, body: _choice(manager, request)),
            route("/api/model", lambda request, body: shown().report()),
            route("/api/model/graph", lambda request, body: _graph(shown(), request)),
            route("/api/model/find", lambda request, body: _find(shown(), request)),
            route("/api/model/passes", lambda request, body: shown().passes()),
            route("/api/model/profile", lambda request, body: shown().profile(body.get("shapes")), "POST"),
            Mount("/", StaticFiles(directory=STATIC, html=True)),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"], www_redirect=False),
            Middleware(_Headers),
            Middleware(_Token, token=token),
        ],
    )


class _Headers:
    """Adds HEADERS to every answer."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            await send(message)

        await self.app(scope, receive, send_with_headers)


class _Token:
    """Lets requests with the token pass, and refuses others with status 403.

    Args:
        app: What answers those that pass.
        token: The token.
    """

    def __init__(self, app: Any, token: str) -> None:
        self.app, self._token = app, token

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope)
        cookie = f"oprack_ui_{scope['server'][1]}"  # cookies of one host are those of all its ports
        given = request.query_params.get("token", "")
        answer: Any = self.app
        if request.headers.get("sec-fetch-site", "none") == "cross-site" and request.url.path != "/":
            answer = PlainTextResponse("a page from elsewhere may not ask for this", 403)
        elif scope["path"] == "/" and self._fits(given):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(cookie, self._token, httponly=True, samesite="lax")
        elif not self._fits(given or request.cookies.get(cookie, "")):
            answer = PlainTextResponse("open the address that `oprack ui` printed, with its token", 403)
        await answer(scope, receive, send)

    def _fits(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def _json(value: Any, status: int = 200) -> Response:
    return JSONResponse(_plain(value), status)


def _plain(value: Any) -> Any:
    """A value as JSON has it: JSON knows neither NaN nor infinities, and attributes of ops may be anything."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


async def _body(request: Request) -> Mapping[str, Any]:
    """The JSON object of a request.

    A page from elsewhere can't send one without asking first, since the type is not one that forms have.

    Raises:
        InvalidArgumentError: It is something else, or too large.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise InvalidArgumentError("expected a body of type application/json")
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY:
            raise InvalidArgumentError(f"the body is larger than {MAX_BODY} bytes")
    import json

    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidArgumentError("expected a JSON object")
    return value


def _choice(manager: PackManager, request: Request) -> Any:
    ask = request.query_params.get
    name = request.path_params["name"]
    return installed.choice(manager, name, ask("place", "cpu"), ask("dtype", "float32"), ask("library", "plain"))


def _graph(model: ShownModel, request: Request) -> Any:
    ask = request.query_params.get
    opened = [part for part in ask("open", "").split(",") if part]
    return model.graph(ask("stage", "saved"), ask("block", "0"), opened, folded=ask("fold", "1") != "0")


def _find(model: ShownModel, request: Request) -> Any:
    ask = request.query_params.get
    return model.find(ask("stage", "saved"), ask("words", ""))
