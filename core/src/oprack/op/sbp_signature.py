"""Sbp, Signature and SbpContext: what a rule of splitting is given, and what it returns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.records import dataclass


@dataclass(frozen=True, slots=True)
class Sbp:
    """How a tensor lies along one axis of a placement: split(dim), broadcast or partial_sum.

    Attributes:
        kind: "S": each rank has a part of dim `dim`; "B": each has the whole; "P": the whole is the sum over the ranks.
        dim: The dim of a split; -1 otherwise.
    """

    kind: str
    dim: int = -1

    def __repr__(self) -> str:
        return f"S({self.dim})" if self.kind == "S" else self.kind


broadcast = Sbp("B")
partial_sum = Sbp("P")


def split(dim: int) -> Sbp:
    """The layout in which each rank has a balanced part of a dim.

    Args:
        dim: Which, from 0.

    Returns:
        The Sbp.

    Raises:
        InvalidArgumentError: The dim is negative, or no integer.
    """
    if not isinstance(dim, int) or isinstance(dim, bool) or dim < 0:
        raise InvalidArgumentError(f"split({dim!r}): expected a dim that counts from 0, such as split(0)")
    return Sbp("S", dim)


_TEXT = re.compile(r"(?:S|split)\((\d+)\)")
_NAMES = {"B": broadcast, "broadcast": broadcast, "P": partial_sum, "partial_sum": partial_sum}


def sbp_of(value: Any) -> Sbp:
    """An Sbp from itself or from its text: "S(0)" or "split(0)", "B" or "broadcast", "P" or "partial_sum".

    Raises InvalidArgumentError for anything else.
    """
    if isinstance(value, Sbp):
        return value
    if isinstance(value, str):
        found = _TEXT.fullmatch(value)
        if found is not None:
            return split(int(found[1]))
        if value in _NAMES:
            return _NAMES[value]
    raise InvalidArgumentError(
        f"sbp {value!r} ({type(value).__name__}); expected oprack.parallel.split(dim), broadcast or partial_sum, or "
        'their text: "split(0)", "broadcast", "partial_sum"'
    )


@dataclass(frozen=True)
class Signature:
    """One way to compute an op on parts.

    Attributes:
        inputs: What each input slot has to be; a slot that is missing is whole on each rank.
        outputs: What each output slot is then; likewise.
        share: (input slot, dim): the sums of partial outputs are means, so each rank's are weighted by its share of
            that dim. None: they are sums.
        sizes: Attribute -> output slot whose shape on this rank it holds, such as the target shape of a reshape.
        attrs: Attributes of the calls on parts, where the op's own ones ask the shape what they mean and a part would
            answer otherwise than the whole, such as "all dims of size 1".
        random: Whether the op draws random numbers, which have to differ from part to part.
        shared: A number that the ranks have to divide, so that all of them get whole groups of elements; 0: any do.
        via: The op that computes this one on parts; it has slots of the same names, and its attributes `start_index`,
            `vocab_size`, `rank`, `nranks` and `ring_id`, where it has them, say which part of what. "": the op itself.
        by_sequence: None where rows may be split between any two of them. Otherwise split(0) is of whole sequences, and
            these are the slots without LoD that have a row for each sequence; others have those of the first LoD.
    """

    inputs: Mapping[str, Sbp]
    outputs: Mapping[str, Sbp]
    share: tuple[str, int] | None = None
    sizes: Mapping[str, str] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    random: bool = False
    shared: int = 0
    via: str = ""
    by_sequence: tuple[str, ...] | None = None


class SbpContext:
    """What a rule of splitting may ask: attributes, and the logical dims of inputs and outputs.

    Args:
        op_type: The op.
        attrs: Its attributes.
        dims: Shapes of the tensors of each slot, inputs and outputs; None for one that is absent.
    """

    def __init__(
        self, op_type: str, attrs: Mapping[str, Any], dims: Mapping[str, Sequence[Sequence[int] | None]]
    ) -> None:
        self.op_type, self._attrs, self._dims = op_type, attrs, dims

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute's value."""
        return self._attrs.get(name, default)

    def has(self, slot: str) -> bool:
        """Whether a tensor is there."""
        return any(d is not None for d in self._dims.get(slot, ()))

    def dim(self, slot: str) -> tuple[int, ...]:
        """The shape of a slot's first tensor; () when it is absent."""
        found = self._dims.get(slot) or [None]
        return tuple(found[0] or ())

    def dims(self, slot: str) -> list[tuple[int, ...]]:
        """The shapes of a slot's tensors."""
        return [tuple(d or ()) for d in self._dims.get(slot, ())]
