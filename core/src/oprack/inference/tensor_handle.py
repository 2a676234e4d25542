"""Handles on a predictor's inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.inference.enums import DataType, data_type_of
from oprack.runtime.feed_fetch import as_fed_value
from oprack.tensor import LoDTensor, check_lod

if TYPE_CHECKING:
    from oprack.desc import VarDesc


class Slot:
    """What a predictor keeps of one input or output between calls: data, LoD, and the shape announced by reshape."""

    __slots__ = ("array", "dims", "is_input", "lod", "name", "var")

    def __init__(self, name: str, var: VarDesc | None, is_input: bool) -> None:
        self.name, self.var, self.is_input = name, var, is_input
        self.array: Any = None
        self.lod: list[list[int]] = []
        self.dims: tuple[int, ...] | None = None

    def fed(self) -> LoDTensor:
        """The input as a tensor, checked against its variable.

        Raises PreconditionNotMetError when it was not filled, FeedError when it does not fit.
        """
        if self.array is None:
            raise PreconditionNotMetError(
                f"input {self.name!r} was not filled; call "
                f"predictor.get_input_handle({self.name!r}).copy_from_cpu(array)"
            )
        value: LoDTensor = as_fed_value(self.name, LoDTensor(self.array, self.lod, check=False), self.var)
        return value


class Tensor:
    """One input or output of a Predictor, found by name; paddle.inference.Tensor.

    An input is filled with `copy_from_cpu` (or `share_external_data`) and, for sequences, `set_lod`; an output is read
    with `copy_to_cpu` and `lod` after `run`.
    """

    def __init__(self, slot: Slot) -> None:
        self._slot = slot

    def name(self) -> str:
        return self._slot.name

    def reshape(self, shape: Sequence[int] | int) -> None:
        """Announce the shape of the input that comes next; `copy_from_cpu` then takes any array of that many elements.

        An int is the length of a one-dimensional input.
        """
        self._slot.dims = (int(shape),) if isinstance(shape, int) else tuple(int(d) for d in shape)

    def copy_from_cpu(self, data: np.ndarray) -> None:
        """Take a copy of `data`; the LoD set before stays.

        Raises InvalidArgumentError for something that is no array or of another size than announced.
        """
        self._set(data, copy=True)

    def share_external_data(self, data: np.ndarray | LoDTensor) -> None:
        """Use the memory of `data` itself; it must not change until the run is over."""
        self._set(data, copy=False)

    def _set(self, data: Any, copy: bool) -> None:
        slot = self._slot
        if not slot.is_input:
            raise InvalidArgumentError(f"handle {slot.name!r} is an output; only inputs can be filled")
        if isinstance(data, LoDTensor):
            slot.lod = data.lod
            data = data.array
        if not isinstance(data, np.ndarray):
            raise InvalidArgumentError(
                f"input {slot.name!r}: got {type(data).__name__}; expected numpy.ndarray, for example "
                "numpy.asarray(value, dtype)"
            )
        if slot.dims is not None and slot.dims != data.shape:
            if int(np.prod(slot.dims, dtype=np.int64)) != data.size:
                raise InvalidArgumentError(
                    f"input {slot.name!r}: got shape {list(data.shape)} after reshape({list(slot.dims)}), which has "
                    "another number of elements; pass data of the announced shape"
                )
            data = data.reshape(slot.dims)
        slot.array = data.copy() if copy else data

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Offsets of the input's sequences, outermost level first; compared with the rows of the data when it runs.

        Raises InvalidLoDError when they do not start at 0 or decrease.
        """
        self._slot.lod = check_lod(lod, None, f"input {self._slot.name!r}")

    def lod(self) -> list[list[int]]:
        """Offsets of the sequences, [] for a plain tensor."""
        return [list(level) for level in self._slot.lod]

    def _array(self) -> Any:
        if self._slot.array is None:
            todo = "call copy_from_cpu(array)" if self._slot.is_input else "call predictor.run()"
            raise PreconditionNotMetError(f"handle {self._slot.name!r} holds no value yet; {todo} first")
        return self._slot.array

    def shape(self) -> list[int]:
        if self._slot.array is None and self._slot.dims is not None:
            return list(self._slot.dims)
        return list(self._array().shape)

    def type(self) -> DataType:
        return data_type_of(self._array().dtype)

    def copy_to_cpu(self) -> np.ndarray:
        """A copy of the data.

        Raises PreconditionNotMetError before the first run.
        """
        return np.array(self._array(), copy=True)

    def __repr__(self) -> str:
        return f"<{'input' if self._slot.is_input else 'output'} {self._slot.name!r}>"
