"""A request and its answer leave nothing behind that waits for the garbage collector, whatever becomes of them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
import weakref
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvicorn
from oprack_serve.edge.direct import Direct, Exchange
from oprack_serve.errors import RequestError
from oprack_serve.http import bounded_protocol
from oprack_serve.infer import Inference
from oprack_serve.joining import JoinRule
from oprack_serve.log import JsonLog
from oprack_serve.metrics import Metrics
from oprack_serve.model import READY, Model
from oprack_serve.models import Models
from oprack_serve.repository import FoundModel
from oprack_serve.scheduler import BatchResult
from oprack_serve.settings import Settings
from oprack_serve.signature import Signature, Tensor, TensorSpec
from starlette.applications import Starlette
from test_http import BODY, infer
from uvicorn.server import ServerState

X, Y = TensorSpec("x", "float32", (-1, 2)), TensorSpec("y", "float32", (-1, 2))
WRONG, UNKNOWN = infer(b"{}"), infer().replace(b"scaled", b"nobody")


class Worker:
    """Answers in the next turn of the event loop: twice what it gets, or an error where that is negative."""

    alive, number = True, 0

    def run(self, feed, outputs, trace, done):
        x = feed["x"].array
        failed = RequestError(400, "negative") if (x < 0).any() else None
        found = BatchResult({} if failed else {"y": Tensor(x * 2, [])}, error=failed)
        asyncio.get_running_loop().call_soon(done, found)


@contextlib.asynccontextmanager
async def front() -> AsyncIterator[tuple[Inference, type]]:
    """What answers requests for a model, and the class of connections that bring them."""
    settings, log = Settings(model=Path(), name="scaled"), JsonLog(descriptor=os.open(os.devnull, os.O_WRONLY))
    models = Models(settings, log)
    metrics = models.metrics = Metrics(models, log)
    inference = Inference(settings, models, metrics, models.bodies, log)
    model = Model(FoundModel("scaled", "2", Path(), ()), settings, models.scheduler, log)
    model.signature, model.state, model.lane.rule = Signature((X,), (Y,)), READY, JoinRule({"y": "batch"})
    model.lane.idle.append(Worker())
    models.scheduler.lanes.append(model.lane)
    models._serve({("scaled", "2"): model})
    models.on_model(model)
    yield inference, bounded_protocol(20.0, 4, lambda: Direct(inference, None, 20.0))
    await inference.close()


async def exchanges(requests: list[bytes], leaves: bool) -> list[weakref.ref[Exchange]]:
    """The exchanges of requests that come one after the other on a connection, which is closed then."""
    config = uvicorn.Config(Starlette(), log_config=None)
    config.load()
    found = []
    async with front() as (inference, protocol):
        ours, theirs = socket.socketpair()
        connection = protocol(config, ServerState(), {})
        transport, _ = await asyncio.get_running_loop().create_unix_connection(lambda: connection, sock=ours)
        theirs.setblocking(False)
        with theirs:
            for request in requests:
                connection.data_received(request)
                assert isinstance(connection.cycle, Exchange)
                found.append(weakref.ref(connection.cycle))
                if leaves:
                    transport.abort()
                    break
                assert await asyncio.get_running_loop().sock_recv(theirs, 65536)
            transport.abort()
            for _ in range(4):
                await asyncio.sleep(0)
        inference._report_ended()
    return found


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize(
    "requests",
    [
        pytest.param([infer()] * 3, id="answered"),
        pytest.param([infer(more="Accept-Encoding: gzip\r\n")] * 2, id="compressed"),
        pytest.param([infer(BODY.replace(b"1.0", b"-10"))] * 2, id="failed"),
        pytest.param([WRONG] * 2, id="refused"),
        pytest.param([UNKNOWN] * 2, id="unknown"),
    ],
)
def test_an_exchange_is_freed_without_the_collector(requests, leaves):
    gc.collect()
    gc.disable()
    try:
        found = asyncio.run(exchanges(requests, leaves))
        assert found and not any(one() for one in found)
    finally:
        gc.enable()
