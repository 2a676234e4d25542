"""SparseValue: what all values have in common that list some elements of a larger array, and say where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.tensor.place import Place
from oprack.types import dtype_name


class SparseValue:
    """Some elements of a larger array: `elements` lists them, and the arrays of `pattern` say where they lie.

    A kind of variable is a class derived from this one and a row in `oprack.tensor.kinds`. It says what its pattern is
    and how a value is made of other arrays of the same sort; feeds, fetches, copies between places, records of a run
    and checks follow from that.

    Attributes:
        place: The place whose memory holds all the arrays.
        shared: Whether another variable or the caller may see this memory, so that ops must not write to it in place.
    """

    __slots__ = ("place", "shared")
    place: Place
    shared: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the dense array."""
        raise NotImplementedError(f"{type(self).__name__} must define shape")

    @property
    def elements(self) -> Any:
        """The listed elements."""
        raise NotImplementedError(f"{type(self).__name__} must define elements")

    @property
    def pattern(self) -> tuple[Any, ...]:
        """The arrays of integers that say where the elements lie."""
        raise NotImplementedError(f"{type(self).__name__} must define pattern")

    def rebuilt(
        self, pattern: Sequence[Any], elements: Any, *, place: Place | None = None, shared: bool = False
    ) -> Any:
        """A value of this class and shape over other arrays, which are not checked.

        Args:
            pattern: Where the elements lie.
            elements: The elements.
            place: The place of the arrays; default: that of this value.
            shared: Whether somebody else may see them.

        Returns:
            The value.

        Raises:
            NotImplementedError: The class does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define rebuilt")

    def to_dense(self) -> Any:
        """The dense NumPy array; what is not listed is zero, and an element listed several times is the sum.

        Returns:
            The array.

        Raises:
            NotImplementedError: The class does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define to_dense")

    @property
    def dtype(self) -> str:
        """Name of the elements' dtype, for example "float32"."""
        return dtype_name(self.elements.dtype)

    @property
    def listed(self) -> str:
        """How much is listed, in words."""
        return f"{len(self.elements)} elements"
