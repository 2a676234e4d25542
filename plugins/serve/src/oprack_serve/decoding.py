"""A process that decodes requests with much JSON.

Python's parser keeps its lock for as long as it parses, in whichever thread: 16 MB of brackets would stop the event
loop, and health with it, for seconds. What such a text takes of memory ends with the process, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from dataclasses import astuple
from typing import Any

import numpy as np

from oprack_serve import protocol, wire
from oprack_serve.errors import RequestError
from oprack_serve.extensions.shared_memory import Placement, Regions
from oprack_serve.protocol import Decoded, InferRequest, Limits
from oprack_serve.signature import Signature, Tensor

ENDED = "the process that reads large JSON ended; try again later, or send tensors as binary data"


class Decoder:
    """The server's end: a process that is started for the first request, and again when it has ended."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._free = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._link: wire.Link | None = None

    async def decode(
        self, signature: Signature, body: bytes | bytearray | memoryview, json_length: int | None, regions: Regions
    ) -> Decoded:
        """What `protocol.decode` returns. One request is decoded at a time; whoever stops to wait for it ends it.

        Raises:
            RequestError: As `protocol.decode` does, and with 503 when the process ended.
        """
        header = {
            "signature": signature.to_json(),
            "json_length": json_length,
            "limits": astuple(self.limits),
            "regions": regions.to_json(),
        }
        async with self._free:
            try:
                message = await self._call(header, np.frombuffer(body, np.uint8))
            except ConnectionError:
                await self.close()
                raise RequestError(503, ENDED) from None
            except BaseException:
                await self.close()
                raise
        return _from_message(*message)

    async def _call(self, header: dict[str, Any], body: np.ndarray) -> wire.Message:
        if self._link is None:
            self._link = await self._start()
        return await self._link.ask(header, [body])

    async def _start(self) -> wire.Link:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", __name__, str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
            )
        link = wire.Link(lambda: self._lost(link))
        await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=ours)
        return link

    def _lost(self, link: wire.Link) -> None:
        if self._link is link:
            self._link = None

    async def close(self) -> None:
        """End the process."""
        if self._link is not None:
            self._link.transport.abort()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        self._link = self._process = None


def _from_message(header: dict[str, Any], arrays: list[np.ndarray]) -> Decoded:
    if "error" in header:
        raise RequestError(*header["error"])
    inputs = {name: Tensor(array, lod) for (name, lod), array in zip(header["inputs"], arrays, strict=True)}
    outputs = [(name, binary) for name, binary in header["outputs"]]
    placed = {name: Placement(*placement) for name, placement in header["placed"].items()}
    asked = header["id"], outputs, header["timeout"], header["trace"], header["parameters"]
    return InferRequest(*asked, placed, header["classes"], header["shared_bytes"]), inputs


# In the process -------------------------------------------------------------------------------------------------------
def _answer(header: dict[str, Any], arrays: list[np.ndarray]) -> wire.Message:
    signature, limits = Signature.from_json(header["signature"]), Limits(*header["limits"])
    regions = Regions(allowed=False)
    try:
        regions = Regions.from_json(header["regions"])
        request, inputs = protocol.decode(signature, arrays[0].data, header["json_length"], limits, regions)
    except RequestError as error:
        return {"error": [error.status, str(error)]}, []
    finally:
        regions.forget()
    answer = {
        "id": request.id,
        "inputs": [[name, tensor.lod] for name, tensor in inputs.items()],
        "outputs": request.outputs,
        "timeout": request.timeout,
        "trace": request.trace,
        "parameters": request.parameters,
        "placed": {name: astuple(placement) for name, placement in request.placed.items()},
        "classes": request.classes,
        "shared_bytes": request.shared_bytes,
    }
    return answer, [tensor.array for tensor in inputs.values()]


def main(descriptor: int) -> None:
    """Answer until the server closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server says when to end
    with socket.socket(fileno=descriptor) as sock, contextlib.suppress(ConnectionError):
        while (message := wire.receive(sock)) is not None:
            wire.send(sock, *_answer(*message))


if __name__ == "__main__":
    main(int(sys.argv[1]))
