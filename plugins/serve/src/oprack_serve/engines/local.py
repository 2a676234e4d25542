"""A model in this process, for engines that bring processes, queues and protocols of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from oprack_serve import host, joining
from oprack_serve.errors import RequestError
from oprack_serve.joining import Feed
from oprack_serve.probe import probe
from oprack_serve.repository import single
from oprack_serve.signature import Tensor
from oprack_serve.worker import run_predictor, status_of

Result = dict[str, Tensor] | RequestError


class LocalModel:
    """A loaded model that has been warmed up, with the rule by which its requests may be joined.

    Args:
        path: As `oprack serve` takes it, with serve.toml beside it or not.
        threads: Of each kernel library, unless serve.toml says otherwise.
        memory_limit: Bytes that the outputs of one op may take, 0 for no limit.
        cache: Where rewritten models are kept, "" for nowhere.
    """

    def __init__(self, path: Path, threads: int = 1, memory_limit: int = 2 << 30, cache: str = "") -> None:
        from oprack.packs import default_manager

        options = single(path, "model")[0].options()
        self._limits = contextlib.ExitStack()
        for library in default_manager().extensions.libraries().values():
            if not isinstance(library, Exception):
                self._limits.enter_context(library.limit_threads(options.threads or threads))
        self._predictor, signature, proof = host.load(str(path), memory_limit, cache, options.of_predictor())
        found = probe(signature, self._outputs_of, proof, options.examples, [])
        self.signature, self.rule = signature.with_outputs(found.outputs), found.rule

    def _outputs_of(self, feed: Feed) -> dict[str, Tensor]:
        return run_predictor(self._predictor, feed)

    def run(self, feeds: Sequence[Feed]) -> list[Result]:
        """What each request gets, its outputs or an error; those that may be joined run together."""
        keys = [joining.join_key(feed)[0] if self.rule.joins else None for feed in feeds]
        order = sorted(range(len(feeds)), key=lambda i: (keys[i] is None, str(keys[i])))
        results: dict[int, Result] = {}
        for key, numbers in groupby(order, keys.__getitem__):
            some = list(numbers)
            for part in [some] if key is not None else [[i] for i in some]:
                results |= zip(part, self._joined([feeds[i] for i in part]), strict=True)
        return [results[i] for i in range(len(feeds))]

    def _joined(self, feeds: list[Feed]) -> list[Result]:
        """A request that fails is found by halving, and harms none of its neighbours."""
        try:
            if len(feeds) == 1:
                return [self._outputs_of(feeds[0])]
            return list(joining.split(self.rule, feeds, self._outputs_of(joining.join(feeds))))
        except Exception as error:
            if len(feeds) == 1:
                return [RequestError(status_of(error), f"{type(error).__name__}: {error}")]
        middle = len(feeds) // 2
        return self._joined(feeds[:middle]) + self._joined(feeds[middle:])

    def close(self) -> None:
        """Give the libraries their threads back."""
        self._limits.close()
