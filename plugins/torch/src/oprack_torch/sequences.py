"""Sequences: a tensor whose rows form sequences, as values and offsets; to and from torch's nested tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from oprack.errors import InvalidLoDError
from oprack.sequences.other_forms import parts_of_nested


class Sequences(NamedTuple):
    """A tensor with LoD.

    Attributes:
        values: The rows of all sequences, one after the other.
        offsets: For each LoD level, outermost first, where its sequences begin, and where the last one ends: integers
            on the CPU.
    """

    values: torch.Tensor
    offsets: tuple[torch.Tensor, ...]

    @classmethod
    def of(cls, tensors: Sequence[torch.Tensor]) -> Sequences:
        """Sequences of several lengths.

        Args:
            tensors: One for each sequence, of shapes [length, ...] that differ in the length alone.

        Returns:
            Them, with one LoD level.

        Raises:
            InvalidLoDError: There is none.
        """
        if not tensors:
            raise InvalidLoDError("Sequences.of([]): expected at least one sequence, since none says what a row is")
        lengths = torch.tensor([0, *[len(t) for t in tensors]])
        return cls(torch.cat(list(tensors)), (lengths.cumsum(0),))

    @classmethod
    def from_nested(cls, nested: torch.Tensor) -> Sequences:
        """A nested tensor of torch, of layout jagged, on the same memory.

        Args:
            nested: Of shape [number, lengths, ...].

        Returns:
            The sequences.

        Raises:
            InvalidLoDError: It has another layout, or its lengths are not those of the first dim of rows.
        """
        values, offsets = parts_of_nested(nested, "Sequences.from_nested")
        return cls(values, (offsets,))

    def to_nested(self) -> torch.Tensor:
        """The sequences as a nested tensor of torch, on the same memory.

        Returns:
            It, of layout jagged.

        Raises:
            InvalidLoDError: There are several LoD levels, which nested tensors can't have.
        """
        if len(self.offsets) != 1:
            raise InvalidLoDError(
                f"Sequences of {len(self.offsets)} LoD levels have no nested tensor; expected one level"
            )
        return torch.nested.nested_tensor_from_jagged(self.values, self.offsets[0])

    def split(self) -> tuple[torch.Tensor, ...]:
        """The sequences of the innermost level.

        Returns:
            A view for each.
        """
        return self.values.split(self.offsets[-1].diff().tolist())


Item = Any
"""A tensor, Sequences, or None."""


def values_of(item: Item) -> Any:
    """The tensor of an item."""
    return item.values if isinstance(item, Sequences) else item


def offsets_of(item: Item) -> tuple[torch.Tensor, ...]:
    """The offsets of an item; () where its rows form none."""
    return item.offsets if isinstance(item, Sequences) else ()


def joined(tensors: Sequence[Any], levels: Sequence[int], offsets: Sequence[torch.Tensor]) -> list[Item]:
    """Items of tensors, the number of LoD levels of each, and all offsets one after the other."""
    found: list[Item] = []
    rest = iter(offsets)
    for t, level in zip(tensors, levels, strict=True):
        own = tuple(next(rest) for _ in range(level))
        found.append(Sequences(t, own) if own and t is not None else t)
    return found


def lod_of(item: Item) -> list[list[int]]:
    """The offsets of an item as oprack has them."""
    return [o.tolist() for o in offsets_of(item)]
