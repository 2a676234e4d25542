"""Handles on a predictor's inputs and outputs."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.inference.enums import DataType, data_type_of
from oprack.python.implementation import HAS_GIL
from oprack.runtime.feed_fetch import fed_array
from oprack.tensor import LoDTensor, check_lod

if TYPE_CHECKING:
    from oprack.desc import VarDesc


# Bytes from which on memory for copies is kept, and how many times as much as is needed may be used.
_SMALLEST, _LARGEST = 1 << 18, 16


class _Room:
    """Memory for copies of a value, used again for data of any size as soon as nothing refers to the last copy.

    Pictures come in ever other sizes, and fresh pages for each would take as long as some layers do.
    """

    __slots__ = ("_memory",)

    def __init__(self) -> None:
        self._memory: np.ndarray | None = None

    def copy(self, data: np.ndarray) -> np.ndarray:
        """A copy of `data`. The caller has dropped the one before, unless somebody still needs it."""
        if data.nbytes < _SMALLEST or data.dtype.hasobject or not data.flags.c_contiguous:
            return np.array(data, copy=True)
        memory = self._memory
        # an idle one is known to this object, to this variable and to the call that counts
        idle = memory is not None and HAS_GIL and sys.getrefcount(memory) == 3
        if memory is None or not idle or not data.nbytes <= memory.size <= _LARGEST * data.nbytes:
            # what lies behind the copy is not touched, so it takes no memory until larger data need it
            memory = self._memory = np.empty(2 * data.nbytes, np.uint8)
        copy = memory[: data.nbytes].view(data.dtype).reshape(data.shape)
        copy[...] = data
        return copy


class Slot:
    """What a predictor keeps of one input or output between calls: data, LoD, and the shape announced by reshape."""

    __slots__ = ("_room", "array", "dims", "is_input", "lod", "name", "var")

    def __init__(self, name: str, var: VarDesc | None, is_input: bool) -> None:
        self.name, self.var, self.is_input = name, var, is_input
        self.array: Any = None
        self.lod: list[list[int]] = []
        self.dims: tuple[int, ...] = (0,)
        self._room = _Room()

    def copy(self, array: np.ndarray) -> None:
        """Hold a copy of `array`."""
        self.array = None
        self.fill(self._room.copy(array))

    def copied(self) -> np.ndarray:
        """A copy of the value for the user, in the memory of the last one if nobody has that any more."""
        return self._room.copy(self.array)

    def fill(self, array: Any) -> None:
        """Hold `array`; its shape takes the place of an announced one."""
        self.array, self.dims = array, tuple(array.shape)

    def value(self) -> Any:
        """The input as a PreparedFunction takes it; raises PreconditionNotMetError when it was not filled."""
        if self.array is None:
            raise PreconditionNotMetError(
                f"input {self.name!r} was not filled; call "
                f"predictor.get_input_handle({self.name!r}).copy_from_cpu(array)"
            )
        return LoDTensor(self.array, self.lod, check=False) if self.lod else self.array


class Tensor:
    """One input or output of a Predictor, found by name; paddle.inference.Tensor.

    An input is filled with `copy_from_cpu` (or `share_external_data`) and, for sequences, `set_lod`; an output is read
    with `copy_to_cpu` and `lod` after `run`. All handles of one name are one input.

    Args:
        slot: Where the predictor keeps the value.
    """

    def __init__(self, slot: Slot) -> None:
        self._slot = slot

    def name(self) -> str:
        """Name of the input or output."""
        return self._slot.name

    def reshape(self, shape: Sequence[int] | int) -> None:
        """Announce a shape; `copy_from_cpu` brings the data's own.

        Data that the input holds already is seen in the new shape; it is dropped when its size is another one.

        Args:
            shape: The sizes; an int is the length of a one-dimensional input.

        Raises:
            InvalidArgumentError: It is an output, or dims are no sizes.
        """
        slot = self._slot
        self._require_input("given a shape")
        try:
            dims = (shape,) if isinstance(shape, int) else tuple(shape)
        except TypeError:
            raise InvalidArgumentError(
                f"input {slot.name!r}: reshape({shape!r}): expected a list of sizes, such as [1, 3, 224, 224], or "
                "one size"
            ) from None
        if not all(isinstance(d, int | np.integer) and d >= 0 for d in dims):
            raise InvalidArgumentError(f"input {slot.name!r}: reshape({shape!r}): expected sizes of at least 0")
        slot.dims = tuple(int(d) for d in dims)
        if slot.array is not None:
            slot.array = slot.array.reshape(slot.dims) if slot.array.size == math.prod(slot.dims) else None

    def copy_from_cpu(self, data: np.ndarray) -> None:
        """Take a copy of `data`; the LoD set before stays.

        Raises InvalidArgumentError for an output, and for something that is no array, FeedDtypeError for a dtype that
        no kernel knows.
        """
        self._set(data, copy=True)

    def share_external_data(self, data: np.ndarray | LoDTensor) -> None:
        """Use the memory of `data` itself, and its LoD if it has one; it must not change until the run is over."""
        self._set(data, copy=False)

    def _require_input(self, what: str) -> None:
        if not self._slot.is_input:
            raise InvalidArgumentError(f"handle {self._slot.name!r} is an output, which run() sets; it can't be {what}")

    def _set(self, data: Any, copy: bool) -> None:
        slot = self._slot
        self._require_input("filled")
        lod = slot.lod
        if isinstance(data, LoDTensor):
            lod, data = data.lod, data.array
        if not isinstance(data, np.ndarray):
            raise InvalidArgumentError(
                f"input {slot.name!r}: got {type(data).__name__}; expected numpy.ndarray, for example "
                "numpy.asarray(value, dtype)"
            )
        # memory that is shared is converted when it is read, by each run, so that a run sees what it holds by then
        plain = fed_array(slot.name, data)
        if copy:
            slot.copy(plain)
        else:
            slot.fill(data)
        slot.lod = lod

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Offsets of the input's sequences, outermost level first; compared with the rows of the data when it runs.

        Raises InvalidLoDError when they do not start at 0 or decrease, InvalidArgumentError for an output.
        """
        self._require_input("given a LoD")
        self._slot.lod = check_lod(lod, None, f"input {self._slot.name!r}")

    def lod(self) -> list[list[int]]:
        """Offsets of the sequences, [] for a plain tensor."""
        return [list(level) for level in self._slot.lod]

    def shape(self) -> list[int]:
        """Shape of the data, or the one that was announced; [0] before either."""
        return list(self._slot.dims)

    def type(self) -> DataType:
        """dtype of the data; before there is any, the one that the program declares (FLOAT32 when it does not say)."""
        slot = self._slot
        if slot.array is not None:
            return data_type_of(slot.array.dtype)
        declared = slot.var.dtype_name() if slot.var is not None else None
        return data_type_of(declared) if declared is not None else DataType.FLOAT32

    def copy_to_cpu(self) -> np.ndarray:
        """A copy of the data.

        Raises:
            PreconditionNotMetError: An input was not filled, or there was no run yet.
        """
        slot = self._slot
        if slot.array is None:
            todo = "call copy_from_cpu(array)" if slot.is_input else "call predictor.run()"
            raise PreconditionNotMetError(f"handle {slot.name!r} holds no value yet; {todo} first")
        return slot.copied()

    numpy = copy_to_cpu  # output hooks of Paddle get a paddle.Tensor, which is read by this name

    def __repr__(self) -> str:
        kind = "input" if self._slot.is_input else "output"
        return f"<{kind} {self._slot.name!r}, {self.type().name} {self.shape()}>"
