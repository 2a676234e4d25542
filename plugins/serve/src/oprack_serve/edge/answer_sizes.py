"""How large an answer will be, known before the run from those that came before it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from oprack_serve.joining import Feed, JoinRule, entries
from oprack_serve.signature import Tensor

MOST = 4096
LEAST = 64 << 10
"""Bytes of an output that is remembered. Smaller ones count when they are there, as their requests do."""
MOST_OFFSETS = 64


@dataclass(frozen=True)
class AnswerSize:
    """Bytes of the tensors of an answer, and how many elements they have, as far as that is known."""

    bytes: int = 0
    elements: int = 0


class AnswerSizes:
    """What the answers of one version of a model took.

    Where requests are joined, an output has so much for each entry of a batch, or for each row of an input, and that
    for all requests that agree in the other dims. Where they are not, requests of the same shapes have answers of the
    same size. What is not known yet counts as nothing, so that no request is refused for a guess.
    """

    def __init__(self) -> None:
        self.known: dict[Any, tuple[float, float]] = {}
        """Bytes and elements for each unit, of the answers that are remembered."""

    def expected(self, rule: JoinRule, feed: Feed, outputs: Iterable[str]) -> AnswerSize:
        """The size of the answer to come.

        Args:
            rule: How the model's requests are joined.
            feed: The request's inputs.
            outputs: Names of those that are asked for.

        Returns:
            The size of those outputs of which it is known.
        """
        size, elements = 0.0, 0.0
        for name in outputs:
            key, units = self._key(rule, feed, name)
            each = self.known.get(key, (0.0, 0.0))
            size, elements = size + each[0] * units, elements + each[1] * units
        return AnswerSize(round(size), round(elements))

    def learn(self, rule: JoinRule, feed: Feed, outputs: dict[str, Tensor]) -> None:
        """Take note of an answer."""
        for name, tensor in outputs.items():
            if tensor.array.nbytes < LEAST:
                continue
            key, units = self._key(rule, feed, name)
            if key is not None and key not in self.known and units:
                self.known[key] = tensor.array.nbytes / units, tensor.array.size / units
                if len(self.known) > MOST:
                    del self.known[next(iter(self.known))]

    @staticmethod
    def _key(rule: JoinRule, feed: Feed, name: str) -> tuple[Any, int]:
        """What outputs of one size for each unit have in common, None for nothing; and how many units this one has."""
        kind, _, source = rule.outputs.get(name, "").partition(":")
        dims = tuple((tensor.array.dtype, tensor.array.shape[1:]) for tensor in feed.values())
        if rule.joins and kind == "batch":
            return (name, dims), entries(feed) or 0
        if rule.joins and kind == "rows":
            return (name, dims), len(feed[source].array)
        if any(tensor.array.dtype == object for tensor in feed.values()):
            return None, 1  # strings and files: their shapes say nothing of what is in them
        if sum(len(level) for tensor in feed.values() for level in tensor.lod) > MOST_OFFSETS:
            return None, 1
        lods = tuple(tuple(map(tuple, tensor.lod)) for tensor in feed.values())
        return (name, dims, lods, tuple(tensor.array.shape[:1] for tensor in feed.values())), 1
