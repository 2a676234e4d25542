"""Joining requests into one run and splitting its results, along the batch dim and by LoD.

Inputs with LoD are put one after the other and their offsets shifted, so sequences of any lengths need no padding. How
outputs fall apart again is a `JoinRule`, found and checked by `oprack_serve.probe` when a model is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from oprack_serve.signature import Tensor

Feed = dict[str, Tensor]


@dataclass(frozen=True)
class JoinRule:
    """How results of joined requests are told apart.

    outputs: by output, "lod" (its own sequences), "batch" (a row for each entry of the batch), or "rows:<input>" (a row
    for each row of that input). reason: why requests are not joined, "" when they are.
    """

    outputs: dict[str, str] = field(default_factory=dict)
    reason: str = ""

    @property
    def joins(self) -> bool:
        """Whether requests may be joined at all."""
        return not self.reason

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def described(self) -> str:
        """For people."""
        if self.reason:
            return f"none: {self.reason}"
        kinds = {kind.partition(":")[0] for kind in self.outputs.values()}
        return "by LoD" if kinds & {"lod", "rows"} else "along the batch dim"


def entries(feed: Feed) -> int | None:
    """How many entries of a batch a request has: top-level sequences, or rows; None when its inputs disagree."""
    found = None
    for tensor in feed.values():  # of each request, more than once: no set of counts
        if not tensor.lod and not tensor.array.ndim:
            return None
        count = len(tensor.lod[0]) - 1 if tensor.lod else len(tensor.array)
        if found not in (None, count):
            return None
        found = count
    return found


def join_key(feed: Feed) -> tuple[tuple[Any, ...] | None, int, float]:
    """The key of a request, its entries, and the rows of one of them where they are sequences, in the mean.

    Those with one key can be joined, and those with None can't be.

    Inputs of a feed come in the order of the model's signature.
    """
    size = entries(feed)
    if not size:
        return None, 1, 0.0  # inputs that disagree, or an empty batch, for which ops may have rules of their own
    rows = max((len(t.array) for t in feed.values() if t.lod), default=0)
    return tuple((t.array.dtype, t.array.shape[1:], len(t.lod)) for t in feed.values()), size, rows / size


def join(feeds: Sequence[Feed]) -> Feed:
    """One feed of several that have one `join_key`."""
    joined = {}
    for name in feeds[0]:
        tensors = [feed[name] for feed in feeds]
        array = np.concatenate([t.array for t in tensors])
        joined[name] = Tensor(array, [_joined_level([t.lod[k] for t in tensors]) for k in range(len(tensors[0].lod))])
    return joined


def filler(feeds: Sequence[Feed]) -> Feed | None:
    """One more sequence for a batch, so that batches have few numbers of rows.

    What a model prepares for a number of rows takes longer than a small batch itself, and memory: with up to an eighth
    of rows more, those of 1 to 4,096 rows have 56 numbers of rows. It is made of the rows that
    the batch begins with, whose values are as good as theirs.

    Args:
        feeds: Of one `join_key`.

    Returns:
        The feed to join behind them; None where there are rows enough, or where inputs do not have the same sequences.
    """
    rows = 0
    for feed in feeds:
        lods = [tensor.lod for tensor in feed.values()]
        if len(lods[0]) != 1 or lods.count(lods[0]) != len(lods):
            return None
        rows += lods[0][0][-1]
    lacking = -rows % max(8, 1 << rows.bit_length() >> 4)
    if not rows or not lacking:
        return None
    first = join(feeds) if len(feeds) > 1 and len(next(iter(feeds[0].values())).array) < lacking else feeds[0]
    parts = [
        t.array[:lacking] if len(t.array) >= lacking else np.resize(t.array, (lacking, *t.array.shape[1:]))
        for t in first.values()
    ]
    return {name: Tensor(part, [[0, lacking]]) for name, part in zip(first, parts, strict=True)}


def _joined_level(levels: list[list[int]]) -> list[int]:
    offsets = [0]
    for level in levels:
        base = offsets[-1]
        if len(level) == 2:  # one sequence, as most requests have
            offsets.append(base + level[1])
        else:
            offsets += [base + offset for offset in level[1:]]
    return offsets


def split(rule: JoinRule, feeds: Sequence[Feed], outputs: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    """What each request gets of a joined run. Raises ValueError when outputs lack the rows for that."""
    batch = _bounds([entries(feed) or 0 for feed in feeds])
    parts: list[dict[str, Tensor]] = [{} for _ in feeds]
    for name, tensor in outputs.items():
        kind, _, source = rule.outputs[name].partition(":")
        if kind == "lod":
            pieces = _by_lod(tensor, batch)
        else:
            bounds = batch if kind == "batch" else _bounds([len(feed[source].array) for feed in feeds])
            if tensor.array.ndim == 0 or len(tensor.array) != bounds[-1]:
                raise ValueError(f"output {name!r} has shape {list(tensor.array.shape)}; expected {bounds[-1]} rows")
            pieces = [Tensor(tensor.array[a:b], []) for a, b in pairwise(bounds)]
        for part, piece in zip(parts, pieces, strict=True):
            part[name] = piece
    return parts


def _bounds(counts: list[int]) -> list[int]:
    bounds = [0]
    for count in counts:
        bounds.append(bounds[-1] + count)
    return bounds


def _by_lod(tensor: Tensor, bounds: list[int]) -> list[Tensor]:
    if not tensor.lod or len(tensor.lod[0]) - 1 != bounds[-1]:
        raise ValueError(f"an output has LoD {str(tensor.lod)[:80]}; expected {bounds[-1]} sequences")
    pieces = []
    for first, last in pairwise(bounds):
        lod, a, b = [], first, last
        for level in tensor.lod:
            start, end = level[a], level[b]
            lod.append([0, end - start] if b == a + 1 else [offset - start for offset in level[a : b + 1]])
            a, b = start, end
        pieces.append(Tensor(tensor.array[a:b], lod))
    return pieces
