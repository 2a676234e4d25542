"""A model in this process, for engines that bring processes, queues and protocols of their own."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from oprack_serve import host
from oprack_serve.errors import RequestError
from oprack_serve.jobs import Job
from oprack_serve.joining import Feed
from oprack_serve.probe import probe
from oprack_serve.repository import single
from oprack_serve.scheduler import BatchResult, Lane, Scheduler
from oprack_serve.signature import Tensor
from oprack_serve.worker import run_predictor, status_of

Result = dict[str, Tensor] | Exception


class LocalModel:
    """A loaded model that has been warmed up, and a lane that joins its requests. It is the lane's only worker itself.

    Args:
        path: As `oprack serve` takes it, with serve.toml beside it or not.
        threads: Of each kernel library, unless serve.toml says otherwise.
        memory_limit: Bytes that the outputs of one op may take, 0 for no limit.
        cache: Where rewritten models are kept, "" for nowhere.
    """

    alive, number = True, 0

    def __init__(self, path: Path, threads: int = 1, memory_limit: int = 2 << 30, cache: str = "") -> None:
        from oprack.packs import default_manager

        options = single(path, "model")[0].options()
        self._limits = contextlib.ExitStack()
        self._runner = self._limits.enter_context(asyncio.Runner())
        for library in default_manager().extensions.libraries().values():
            if not isinstance(library, Exception):
                self._limits.enter_context(library.limit_threads(options.threads or threads))
        self._predictor, signature, proof = host.load(str(path), memory_limit, cache, options.of_predictor())
        found = probe(signature, self._outputs_of, proof, options.examples, [])
        self.signature, self.rule = signature.with_outputs(found.outputs), found.rule

    def _outputs_of(self, feed: Feed) -> dict[str, Tensor]:
        return run_predictor(self._predictor, feed)

    def results(self, feeds: Sequence[Feed]) -> list[Result]:
        """What each request gets, its outputs or an error; those that may be joined run together."""
        return self._runner.run(self._results(feeds))

    async def _results(self, feeds: Sequence[Feed]) -> list[Result]:
        # whoever calls has chosen how many come together
        lane = Lane(Scheduler(slots=1), sys.maxsize, 0.0, sys.maxsize)
        lane.rule = self.rule
        lane.idle.append(self)
        lane.scheduler.lanes.append(lane)
        results: list[asyncio.Future[Result]] = [asyncio.get_running_loop().create_future() for _ in feeds]
        for feed, result in zip(feeds, results, strict=True):
            lane.submit(Job(feed, list(self.signature.output_names), float("inf"), result.set_result))
        return [await result for result in results]

    def run(self, feed: Feed, outputs: list[str], trace: bool, done: Callable[[BatchResult | Exception], None]) -> None:
        """Run a batch of the lane now; `done` is called in the event loop's next turn."""
        try:
            found = BatchResult(self._outputs_of(feed))
        except Exception as error:
            found = BatchResult({}, error=RequestError(status_of(error), f"{type(error).__name__}: {error}"))
        asyncio.get_running_loop().call_soon(partial(done, found))

    def kill(self) -> None:
        """The batch failed as it was joined; this process goes on."""

    def close(self) -> None:
        """Give the libraries their threads back, and end the event loop."""
        self._limits.close()
