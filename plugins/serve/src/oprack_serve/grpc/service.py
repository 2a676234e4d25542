"""The methods of the open inference protocol over gRPC.

A message is taken off its connection when a method reads it, and may have `--max-body` bytes. So no more methods read
at once than there is room for, and one that waits for its client for long gives its place to others; what nobody reads,
gRPC leaves with the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass

from oprack_serve.access.tokens import Tokens
from oprack_serve.calls import TRACE_CONTEXT, Answer, Call
from oprack_serve.decoding import Decoder
from oprack_serve.errors import RequestError
from oprack_serve.extensions.model_configuration import model_configuration
from oprack_serve.extensions.server_metadata import server_metadata
from oprack_serve.extensions.shared_memory import Regions
from oprack_serve.extensions.statistics import statistics
from oprack_serve.grpc import messages
from oprack_serve.grpc.messages import Request, pb
from oprack_serve.http import KEEP_ALIVE, MAX_HEAD, NEVER, Bodies, Body
from oprack_serve.infer import Inference
from oprack_serve.json_data import SLICE
from oprack_serve.metrics import Metrics
from oprack_serve.models import Models
from oprack_serve.protocol import Decoded, Limits
from oprack_serve.settings import Settings
from oprack_serve.signature import Signature, Tensor

SERVICE = "inference.GRPCInferenceService"
MAX_SMALL = 64 << 10
"""Bytes of a request that is not for inference."""
STREAM_AHEAD = 16
"""Requests of one stream that are worked on at once."""
STREAMS_OF_A_CONNECTION = 256
OPEN = ("ServerLive", "ServerReady")
"""Methods that need no token."""
PATIENCE = 1.0
"""Seconds that a method may wait for its client while others wait for its place."""

CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    415: grpc.StatusCode.UNIMPLEMENTED,
    499: grpc.StatusCode.CANCELLED,
    500: grpc.StatusCode.INTERNAL,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}
"""Status of HTTP -> code of gRPC."""


class Readers:
    """Places of methods that wait for a message of their client."""

    def __init__(self, places: int) -> None:
        self._free = asyncio.Semaphore(places)
        self._since: dict[Any, float] = {}  # the longest first

    @contextlib.asynccontextmanager
    async def place(self, end: Callable[[], None]) -> AsyncIterator[None]:
        """Have a place in the block; `end` is called when others want it and the client is slow."""
        async with self._free:
            self._since[end] = time.monotonic()
            try:
                yield
            finally:
                self._since.pop(end, None)

    def sweep(self, now: float) -> None:
        """Take the place of the slowest client when others wait."""
        end = next(iter(self._since), None)
        if end is not None and self._free.locked() and now - self._since[end] > PATIENCE:
            del self._since[end]
            end()


class GrpcCall(Call):
    """A request of ModelInfer or ModelStreamInfer. `receive` gets its message."""

    protocol = "grpc"
    when_cancelled = (499, "the client left, or its deadline passed")
    told_of_leaving = True  # gRPC cancels the method then

    def __init__(self, receive: Callable[[], Awaitable[bytes]], context: Any) -> None:
        super().__init__("", None, context.peer(), NEVER)
        self._receive, self._metadata = receive, context.invocation_metadata()
        self._request: Request | None = None

    async def read(self, bodies: Bodies) -> Body:
        body = Body(bodies)
        try:
            data = await self._receive()
            body.add(data)
            bodies.check()
            self._request = Request(data)
        except BaseException:
            body.release()
            raise
        self.name, self.version = self._request.message.model_name, self._request.message.model_version or None
        return body

    def trace_context(self) -> dict[str, str]:
        return {key: value for key, value in self._metadata or () if key in TRACE_CONTEXT}

    def large(self, size: int) -> bool:
        assert self._request is not None
        return self._request.typed > SLICE

    def decode(self, signature: Signature, body: Body, limits: Limits, regions: Regions) -> Decoded:
        assert self._request is not None
        return self._request.decode(signature, limits, regions)

    async def decode_apart(self, signature: Signature, body: Body, decoder: Decoder, regions: Regions) -> Decoded:
        return await asyncio.to_thread(self.decode, signature, body, decoder.limits, regions)

    def encodes_long(self, outputs: dict[str, Tensor]) -> bool:
        return False

    def encode(self, outputs: dict[str, Tensor], parameters: dict[str, Any]) -> list[bytes]:
        assert self.decoded is not None and self.model is not None
        self._request = None  # the memory of the message
        return messages.encode(self.decoded, outputs, self.model.name, self.model.version, parameters)


class Service:
    """The methods, by name."""

    def __init__(
        self, settings: Settings, models: Models, metrics: Metrics, inference: Inference, tokens: Tokens | None
    ) -> None:
        self._models, self._metrics, self._inference = models, metrics, inference
        self._read_timeout, self._tokens = settings.read_timeout, tokens
        self._readers = Readers(max(1, settings.max_inflight // settings.max_body))
        self.sweep = self._readers.sweep

    def handlers(self) -> dict[str, grpc.RpcMethodHandler[bytes, bytes]]:
        """What gRPC calls, by path. All are streams to it, which it reads when it is told to."""
        regions = self._inference.regions
        own = {"ModelInfer": self._infer, "ModelStreamInfer": self._stream}
        answers: dict[str, Callable[[Any], dict[str, Any]]] = {
            "ServerLive": lambda request: {"live": True},
            "ServerReady": lambda request: {"ready": self._models.ready},
            "ModelReady": lambda request: {"ready": self._models.serves(self._model(request))},
            "ServerMetadata": lambda request: server_metadata(),
            "ModelMetadata": lambda request: self._models.metadata(self._model(request)),
            "ModelConfig": lambda request: {"config": model_configuration(self._model(request))},
            "ModelStatistics": lambda request: statistics(
                self._models, self._metrics, request.name, request.version or None
            ),
            "SystemSharedMemoryStatus": lambda request: {
                "regions": {row["name"]: row for row in regions.status(request.name)}
            },
            "SystemSharedMemoryRegister": self._register_region,
            "SystemSharedMemoryUnregister": self._unregister_region,
            "CudaSharedMemoryUnregister": lambda request: regions.unregister_of_gpus(),
            "RepositoryIndex": lambda request: {"models": self._models.index(request.ready)},
        }
        found: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {}
        for method in pb.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods:
            handler = own.get(method.name) or self._answering(method, answers[method.name])
            if self._tokens is not None and method.name not in OPEN:
                handler = self._authorized(self._tokens, handler)
            found[f"/{SERVICE}/{method.name}"] = grpc.stream_stream_rpc_method_handler(handler)
        return found

    @staticmethod
    def _authorized(tokens: Tokens, handler: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        async def authorized(requests: Any, context: Any) -> None:
            try:
                tokens.check(dict(context.invocation_metadata()).get("authorization"))
            except RequestError as error:
                await context.abort(CODES[error.status], str(error))
            await handler(requests, context)

        return authorized

    def _register_region(self, request: Any) -> dict[str, Any]:
        self._inference.regions.register(request.name, request.key, request.offset, request.byte_size)
        return {}

    def _unregister_region(self, request: Any) -> dict[str, Any]:
        if request.name:
            self._inference.regions.unregister(request.name)
        else:
            self._inference.regions.unregister_all()
        return {}

    def _model(self, request: Any) -> Any:
        return self._models.find(request.name, request.version or None)

    async def _read(self, context: Any, seconds: float | None) -> bytes | None:
        """The next message, None when there is none. Raises RequestError when it is not there in time."""
        try:
            async with asyncio.timeout(seconds) as limit:
                async with self._readers.place(lambda: limit.reschedule(0.0)):
                    data = await context.read()
        except TimeoutError:
            raise RequestError(408, "the message was not there in time, and others wait; send it again") from None
        return None if data is grpc.aio.EOF else data

    # Methods --------------------------------------------------------------------------------------------------------
    def _answering(self, method: Any, respond: Callable[[Any], dict[str, Any]]) -> Callable[..., Awaitable[None]]:
        asked, answered = GetMessageClass(method.input_type), GetMessageClass(method.output_type)

        async def handler(_: Any, context: Any) -> None:
            try:
                data = await self._read(context, self._read_timeout) or b""
                if len(data) > MAX_SMALL:
                    raise RequestError(413, f"the message has {len(data)} bytes; at most {MAX_SMALL} are taken")
                found = respond(messages.parse(asked, data))
            except RequestError as error:
                await context.abort(CODES[error.status], str(error))
            await context.write(ParseDict(found, answered(), ignore_unknown_fields=True).SerializeToString())

        return handler

    async def _infer(self, _: Any, context: Any) -> None:
        async def receive() -> bytes:
            data = await self._read(context, self._read_timeout)
            if data is None:
                raise ConnectionError
            return data

        call = GrpcCall(receive, context)
        answer = await self._inference.answer(call)
        try:
            if answer.status == 200:
                await context.write(answer.pieces[0])
            elif answer.status != 499:
                await context.abort(CODES[answer.status], answer.told or answer.error)
        finally:
            self._inference.end(call, answer)

    async def _stream(self, _: Any, context: Any) -> None:
        """Answers in the order of the requests, of which some are worked on at once."""
        ahead, before = asyncio.Semaphore(STREAM_AHEAD), None
        async with asyncio.TaskGroup() as tasks:
            while True:
                await ahead.acquire()
                try:
                    data = await self._read(context, None)
                except RequestError as error:
                    await context.abort(CODES[503], str(error))
                if data is None:
                    break
                before = tasks.create_task(self._one_of_stream(data, context, ahead, before))
                del data  # it counts, and is let go of, by the task

    async def _one_of_stream(
        self, data: bytes, context: Any, ahead: asyncio.Semaphore, before: asyncio.Task[None] | None
    ) -> None:
        received = [data]
        del data

        async def receive() -> bytes:
            return received.pop()

        call = GrpcCall(receive, context)
        answer = await self._inference.answer(call)
        try:
            if before is not None:
                await asyncio.wait([before])
            if answer.status != 499:
                await context.write(_of_stream(call, answer))
        finally:
            self._inference.end(call, answer)
            ahead.release()


def _of_stream(call: GrpcCall, answer: Answer) -> bytes:
    """A ModelStreamInferResponse, the only one to its request."""
    if answer.status != 200:
        name = call.decoded.id if call.decoded else ""
        error = pb.ModelStreamInferResponse(error_message=answer.told or answer.error)
        error.infer_response.id = name
        found: bytes = error.SerializeToString()
        return found
    final = pb.ModelInferResponse()
    messages.set_parameters(final.parameters, {"triton_final_response": True})
    pieces = [final.SerializeToString(), *answer.pieces]
    return b"".join([messages.field_head(2, sum(map(len, pieces))), *pieces])


class _Methods(grpc.GenericRpcHandler):
    """The methods by path; for others an error that says what there is."""

    def __init__(self, handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]]) -> None:
        self._handlers = handlers

    def service(self, details: Any) -> grpc.RpcMethodHandler[bytes, bytes]:
        async def unknown(_: Any, context: Any) -> None:
            names = ", ".join(sorted(path.rpartition("/")[2] for path in self._handlers))
            text = f"there is no method {details.method[:100]!r} here; {SERVICE} has {names}"
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, text)

        return self._handlers.get(details.method) or grpc.stream_stream_rpc_method_handler(unknown)


class GrpcServer:
    """The server of one process, in its event loop."""

    def __init__(
        self, settings: Settings, models: Models, metrics: Metrics, inference: Inference, tokens: Tokens | None
    ) -> None:
        self._settings = settings
        self._stopping: asyncio.Task[None] | None = None
        service = Service(settings, models, metrics, inference, tokens)
        self.sweep = service.sweep
        options = [
            ("grpc.max_receive_message_length", settings.max_body),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", MAX_HEAD),
            ("grpc.absolute_max_metadata_size", MAX_HEAD),
            ("grpc.max_concurrent_streams", STREAMS_OF_A_CONNECTION),
            ("grpc.max_allowed_incoming_connections", settings.max_connections),
            ("grpc.keepalive_time_ms", KEEP_ALIVE * 1000),
            ("grpc.keepalive_timeout_ms", round(settings.read_timeout * 1e3)),
            ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
            # how much of a message that nobody reads comes all the same
            ("grpc.http2.bdp_probe", 0),
            ("grpc.http2.lookahead_bytes", MAX_SMALL),
            ("grpc.so_reuseport", 0),  # a port that another server has is an error
        ]
        self._server = grpc.aio.server(options=options, maximum_concurrent_rpcs=settings.max_connections)
        self._server.add_generic_rpc_handlers((_Methods(service.handlers()),))

    async def start(self) -> str:
        """Listen; returns the URL. Raises OSError when that can't be."""
        host, port = self._settings.host, self._settings.grpc_port
        assert port is not None
        host = f"[{host}]" if ":" in host else host
        settings = self._settings
        try:
            if settings.tls_cert is None or settings.tls_key is None:
                port = self._server.add_insecure_port(f"{host}:{port}")
            else:
                pair = settings.tls_key.read_bytes(), settings.tls_cert.read_bytes()
                port = self._server.add_secure_port(f"{host}:{port}", grpc.ssl_server_credentials([pair]))
        except RuntimeError as error:
            raise OSError(f"--grpc-port {port}: {host} can't be listened at there: {error}") from None
        await self._server.start()
        return f"{'grpcs' if settings.tls_cert else 'grpc'}://{host}:{port}"

    def stop_soon(self) -> None:
        """Take no more requests; what runs has the server's grace to end."""
        self._stopping = asyncio.get_running_loop().create_task(self._server.stop(self._settings.grace))

    async def stop(self) -> None:
        """Wait until what runs has ended, if it was told to end soon, else end it now."""
        await (self._stopping or self._server.stop(0))
