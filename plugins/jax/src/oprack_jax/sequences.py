"""Sequences: an array whose rows form sequences, as values and offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from oprack.errors import InvalidLoDError


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True)
class Sequences:
    """A tensor with LoD, which functions that jax transforms may take and return.

    The offsets are constants to jax, as shapes are: a compiled function is compiled anew for others.

    Attributes:
        values: The rows of all sequences, one after the other.
        offsets: For each LoD level, outermost first, where its sequences begin, and where the last one ends.
    """

    values: Any
    offsets: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if any(isinstance(level, jax.core.Tracer) for level in self.offsets):
            raise InvalidLoDError(
                "Sequences were made of offsets that jax traces; expected numbers that are known, since sizes of "
                "results follow from them; pass Sequences to the compiled function in place of its parts"
            )
        plain = tuple(tuple(int(n) for n in np.asarray(level)) for level in self.offsets)
        object.__setattr__(self, "offsets", plain)

    @classmethod
    def of(cls, arrays: Sequence[Any]) -> Sequences:
        """Sequences of several lengths.

        Args:
            arrays: One for each sequence, of shapes [length, ...] that differ in the length alone.

        Returns:
            Them, with one LoD level.

        Raises:
            InvalidLoDError: There is none.
        """
        if not arrays:
            raise InvalidLoDError("Sequences.of([]): expected at least one sequence, since none says what a row is")
        ends = np.cumsum([len(a) for a in arrays]).tolist()
        return cls(jnp.concatenate([jnp.asarray(a) for a in arrays]), ((0, *ends),))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""
        found: tuple[int, ...] = self.values.shape
        return found

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.values.dtype

    def split(self) -> list[Any]:
        """The sequences of the innermost level.

        Returns:
            An array for each.
        """
        return [self.values[a:b] for a, b in pairwise(self.offsets[-1])]

    def tree_flatten(self) -> tuple[tuple[Any], tuple[tuple[int, ...], ...]]:
        """What jax transforms, and what is constant to it."""
        return (self.values,), self.offsets

    @classmethod
    def tree_unflatten(cls, offsets: tuple[tuple[int, ...], ...], children: tuple[Any]) -> Sequences:
        """Back from `tree_flatten`."""
        found = object.__new__(cls)  # jax puts other things in the place of values
        object.__setattr__(found, "values", children[0])
        object.__setattr__(found, "offsets", offsets)
        return found


Lod = tuple[tuple[int, ...], ...]
"""Offsets of an array's sequences, by level; () where its rows form none."""


def values_of(item: Any) -> Any:
    """The array of an item."""
    return item.values if isinstance(item, Sequences) else item


def offsets_of(item: Any) -> Lod:
    """The offsets of an item."""
    return item.offsets if isinstance(item, Sequences) else ()


def with_offsets(array: Any, lod: Lod) -> Any:
    """An item of its parts."""
    return Sequences(array, lod) if lod else array
