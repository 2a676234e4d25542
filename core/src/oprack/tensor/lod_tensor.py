"""LoDTensor: an array plus the offsets of its sequences; LoDTensorArray: a list of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np

from oprack.errors import InvalidLoDError
from oprack.tensor.arrays import plain_array
from oprack.tensor.place import CPUPlace, Place
from oprack.types import dtype_name

LoD = list[list[int]]
_NUMPY = (np.ndarray, np.generic)


def lod_from_lengths(lengths: Iterable[Iterable[int]]) -> LoD:
    """Offsets of each level from Paddle's `recursive_sequence_lengths`: [[2, 1]] -> [[0, 2, 3]].

    Args:
        lengths: Lengths of the sequences of each level, outermost first.

    Returns:
        Offsets per level.
    """
    return [list(itertools.accumulate(map(int, level), initial=0)) for level in lengths]


def lod_to_lengths(lod: Iterable[Sequence[int]]) -> LoD:
    """Lengths of the sequences of each level: [[0, 2, 3]] -> [[2, 1]].

    Args:
        lod: Offsets per level, outermost first.

    Returns:
        Lengths per level.
    """
    return [[b - a for a, b in itertools.pairwise(level)] for level in lod]


def check_lod(lod: object, rows: int | None, name: str = "lod") -> LoD:
    """A LoD as lists of ints, checked.

    Every level starts at 0 and never decreases; the last offset of a level is the number of sequences of the next one,
    and that of the innermost level is `rows`.

    Args:
        lod: Offsets per level, outermost first.
        rows: The first dim of the tensor; None when there is no tensor to compare with.
        name: What to call it in an error.

    Returns:
        The offsets as lists of ints.

    Raises:
        InvalidLoDError: The message names the level and the offset.
    """
    try:
        levels = [[index(x) for x in level] for level in lod]  # type: ignore[attr-defined]
    except TypeError:
        raise InvalidLoDError(
            f"{name}: got {lod!r}; expected a list of levels, each a list of offsets such as [[0, 2, 5]]"
        ) from None
    for i, level in enumerate(levels):
        if not level or level[0] != 0:
            raise InvalidLoDError(
                f"{name}: level {i} is {_shorten(level)}; expected offsets that start at 0, such as [0, 2, 5] for two "
                "sequences of 2 and 3 rows (lengths are turned into offsets by oprack.lod_from_lengths)"
            )
        for k, (a, b) in enumerate(itertools.pairwise(level)):
            if b < a:
                raise InvalidLoDError(
                    f"{name}: level {i} decreases from {a} to {b} at position {k + 1}; offsets must never decrease "
                    "(lengths are turned into offsets by oprack.lod_from_lengths)"
                )
        below = rows if i + 1 == len(levels) else len(levels[i + 1]) - 1
        if below is not None and level[-1] != below:
            what = "the tensor's rows" if i + 1 == len(levels) else f"the number of sequences of level {i + 1}"
            raise InvalidLoDError(f"{name}: level {i} ends at {level[-1]}; expected {below}, {what}")
    return levels


def _shorten(level: list[int]) -> str:
    return str(level) if len(level) <= 8 else f"[{', '.join(map(str, level[:8]))}, ... {len(level)} offsets]"


_CPU = CPUPlace()


class LoDTensor:
    """An n-dimensional array with an offset LoD: nested, variable-length sequences over its first dim.

    Args:
        array: NumPy array, or one of the place's own library (CuPy); of a LoDTensor its array, without its LoD.
        lod: Offsets per level, outermost first; [] for none. [[0, 2, 2, 5]] means sequences of 2, 0 and 3 rows.
        place: Where the array lies; default: the CPU.
        check: Whether to check the LoD against the array.
        shared: Whether another variable or the caller may see this memory, so that nothing may be written into it in
            place; nor is it into a view, unless the attribute of this name is None.
    """

    __slots__ = ("array", "lod", "place", "shared")
    array: Any

    def __init__(
        self, array: Any, lod: object = None, *, place: Place | None = None, check: bool = True, shared: bool = False
    ) -> None:
        if isinstance(array, LoDTensor):
            array = array.array
        elif type(array) is not np.ndarray and (isinstance(array, _NUMPY) or not hasattr(array, "dtype")):
            # a scalar, a sequence, or a subclass, whose operators may mean something else
            array = plain_array(array) if isinstance(array, _NUMPY) else np.asarray(array)
        self.array = array
        self.place = place or _CPU
        self.shared: bool | None = shared
        # Most tensors have none, and each kernel's result is one of these objects.
        if not lod:
            self.lod: LoD = []
        elif check:
            self.lod = check_lod(lod, array.shape[0] if array.ndim else 0)
        else:
            # Offsets of another tensor, which were checked there; lists are shared and never changed.
            self.lod = lod  # type: ignore[assignment]

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the array's dims."""
        return tuple(self.array.shape)

    @property
    def dtype(self) -> str:
        """Name of the dtype, for example "float32"."""
        return dtype_name(self.array.dtype)

    def recursive_sequence_lengths(self) -> LoD:
        """Lengths instead of offsets, as Paddle's method of that name."""
        return lod_to_lengths(self.lod)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.array.get() if hasattr(self.array, "get") else self.array
        return np.array(array, dtype=dtype, copy=copy) if copy is not None else np.asarray(array, dtype=dtype)

    def __len__(self) -> int:
        return len(self.array)

    def __repr__(self) -> str:
        lod = f", lod={self.lod}" if self.lod else ""
        return f"LoDTensor({self.dtype}{list(self.shape)}{lod}, {self.place!r})\n{self.array}"


class LoDTensorArray(list[LoDTensor | None]):
    """A list of LoDTensors that grows, as written by write_to_array; None marks an index not written yet."""

    def __repr__(self) -> str:
        return f"LoDTensorArray of {len(self)}"
