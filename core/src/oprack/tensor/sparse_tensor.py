"""Sparse tensors: of coordinates (COO) and of compressed rows (CSR)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from oprack.errors import InvalidArgumentError
from oprack.tensor.place import CPUPlace, Place
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


def _integers(kind: str, what: str, given: Any) -> Any:
    """An array of int32 or int64; other integers become int64."""
    array = given if hasattr(given, "dtype") and hasattr(given, "shape") else np.asarray(given)
    if array.size and array.dtype.kind not in "iu":
        raise InvalidArgumentError(f"{kind}: {what} is {array.dtype}; expected integers")
    return array if array.dtype in (np.int32, np.int64) else array.astype(np.int64)


def _elements(given: Any) -> Any:
    array = given if hasattr(given, "dtype") and hasattr(given, "shape") else np.asarray(given)
    return array.astype(np.float32) if array.dtype == np.float64 and not hasattr(given, "dtype") else array


class SparseTensor(SparseValue):
    """A sparse tensor of either layout. A kernel whose parameter is annotated so takes both."""

    __slots__ = ("_shape", "values")
    _shape: tuple[int, ...]
    values: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the dense tensor."""
        return self._shape

    @property
    def elements(self) -> Any:
        """The values, under the name that all sparse values have for them."""
        return self.values

    @property
    def nnz(self) -> int:
        """How many elements are listed; in a tensor with dense dims, how many blocks of them."""
        return len(self.values)

    def with_values(self, values: Any) -> Any:
        """The same elements with other values, on the memory of the same pattern.

        Args:
            values: As many values; the dims after the first one may differ, and become the dense dims.

        Returns:
            A sparse tensor of the same class.
        """
        return self.rebuilt(self.pattern, values)

    @property
    def listed(self) -> str:
        """How much is listed, in words."""
        return f"{self.nnz} listed"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dtype}{list(self.shape)}, {self.listed})"


class SparseCooTensor(SparseTensor):
    """A tensor of which element `indices[:, i]` is `values[i]`; what is listed twice adds up, the rest is zero.

    Args:
        indices: Integers [sparse dims, n], in any order.
        values: [n, dense dims ...].
        shape: Dims of the dense tensor, first the sparse ones, then the dense ones.
        place: The place whose memory holds both arrays; default: the CPU.
        check: Whether to check the indices against values and shape.
        shared: Whether another variable or the caller may see this memory.
        coalesced: Whether it is known that indices are sorted and none is listed twice.

    Raises:
        InvalidArgumentError: Indices, values and shape do not fit each other.
    """

    __slots__ = ("coalesced", "indices")
    indices: Any

    def __init__(
        self,
        indices: Any,
        values: Any,
        shape: Sequence[int],
        *,
        place: Place | None = None,
        check: bool = True,
        shared: bool = False,
        coalesced: bool = False,
    ) -> None:
        self.indices = _integers("SparseCooTensor", "indices", indices)
        self.values = _elements(values)
        self._shape = tuple(int(d) for d in shape)
        self.place, self.shared, self.coalesced = place or CPUPlace(), shared, coalesced
        if check:
            _check_coo(self)

    @property
    def pattern(self) -> tuple[Any, ...]:
        """The indices."""
        return (self.indices,)

    @property
    def sparse_dim(self) -> int:
        """How many leading dims the indices count."""
        return int(self.indices.shape[0])

    def rebuilt(
        self, pattern: Sequence[Any], elements: Any, *, place: Place | None = None, shared: bool = False
    ) -> SparseCooTensor:
        """As SparseValue.rebuilt; the dense dims are those of the elements."""
        (indices,) = pattern
        shape = (*self._shape[: self.sparse_dim], *elements.shape[1:])
        coalesced = self.coalesced and indices is self.indices
        return SparseCooTensor(
            indices, elements, shape, place=place or self.place, check=False, shared=shared, coalesced=coalesced
        )

    def to_dense(self) -> np.ndarray:
        """The dense NumPy array."""
        dense = np.zeros(self._shape, self.values.dtype)
        if self.coalesced or self.nnz < 2:
            dense[tuple(self.indices)] = self.values
        elif dense.dtype == bool:
            dense[tuple(self.indices[:, self.values])] = True
        else:
            np.add.at(dense, tuple(self.indices), self.values)
        return dense


def _check_coo(x: SparseCooTensor) -> None:
    what = f"SparseCooTensor: indices {list(x.indices.shape)}, values {list(x.values.shape)}, shape {list(x.shape)}"
    if x.indices.ndim != 2 or not x.values.ndim or x.indices.shape[1] != x.values.shape[0]:
        raise InvalidArgumentError(f"{what}; expected indices [sparse dims, n] and values [n, ...]")
    sparse = x.sparse_dim
    if len(x.shape) != sparse + x.values.ndim - 1 or x.shape[sparse:] != tuple(x.values.shape[1:]):
        raise InvalidArgumentError(
            f"{what}; expected a shape of {sparse} sparse dims, one for each row of indices, and then the dims "
            f"{list(x.values.shape[1:])} of each value"
        )
    if min(x.shape, default=0) < 0:
        raise InvalidArgumentError(f"{what}; expected dims of at least 0")
    if x.indices.size:
        low, high = x.indices.min(axis=1), x.indices.max(axis=1)
        for dim in range(sparse):
            if not 0 <= int(low[dim]) <= int(high[dim]) < x.shape[dim]:
                raise InvalidArgumentError(
                    f"{what}: indices of dim {dim} lie in [{int(low[dim])}, {int(high[dim])}]; expected "
                    f"0 <= index < {x.shape[dim]}"
                )


class SparseCsrTensor(SparseTensor):
    """A matrix, or a batch of them, of which row r has the columns `cols[crows[r]:crows[r + 1]]`.

    Each matrix of a batch has offsets of its own, which start at 0; its columns and values follow those of the matrix
    before.

    Args:
        crows: Integers [rows + 1], of a batch [batch * (rows + 1)].
        cols: Integers [n].
        values: [n].
        shape: [rows, cols] or [batch, rows, cols].
        place: The place whose memory holds the arrays; default: the CPU.
        check: Whether to check the arrays against each other.
        shared: Whether another variable or the caller may see this memory.

    Raises:
        InvalidArgumentError: Offsets, columns, values and shape do not fit each other.
    """

    __slots__ = ("cols", "crows")
    crows: Any
    cols: Any

    def __init__(
        self,
        crows: Any,
        cols: Any,
        values: Any,
        shape: Sequence[int],
        *,
        place: Place | None = None,
        check: bool = True,
        shared: bool = False,
    ) -> None:
        self.crows = _integers("SparseCsrTensor", "crows", crows)
        self.cols = _integers("SparseCsrTensor", "cols", cols)
        self.values = _elements(values)
        self._shape = tuple(int(d) for d in shape)
        self.place, self.shared = place or CPUPlace(), shared
        if check:
            _check_csr(self)

    @property
    def pattern(self) -> tuple[Any, ...]:
        """Offsets of the rows, and columns."""
        return (self.crows, self.cols)

    def rebuilt(
        self, pattern: Sequence[Any], elements: Any, *, place: Place | None = None, shared: bool = False
    ) -> SparseCsrTensor:
        """As SparseValue.rebuilt."""
        crows, cols = pattern
        return SparseCsrTensor(
            crows, cols, elements, self._shape, place=place or self.place, check=False, shared=shared
        )

    def coordinates(self) -> np.ndarray:
        """The coordinates of all elements in host memory.

        Returns:
            Int64 [dims, n], as the indices of a SparseCooTensor.
        """
        *batch, rows, _ = self._shape
        offsets = np.asarray(self.crows, np.int64).reshape(math.prod(batch), rows + 1)
        row = np.repeat(np.tile(np.arange(rows), len(offsets)), np.diff(offsets, axis=1).ravel())
        matrix = np.repeat(np.arange(len(offsets)), offsets[:, -1])
        cols = np.asarray(self.cols, np.int64)
        return np.stack([matrix, row, cols] if batch else [row, cols])

    def to_dense(self) -> np.ndarray:
        """The dense NumPy array."""
        return SparseCooTensor(self.coordinates(), self.values, self._shape, check=False).to_dense()


def _check_csr(x: SparseCsrTensor) -> None:
    what = (
        f"SparseCsrTensor: crows {list(x.crows.shape)}, cols {list(x.cols.shape)}, values {list(x.values.shape)}, "
        f"shape {list(x.shape)}"
    )
    if len(x.shape) not in (2, 3) or min(x.shape, default=0) < 0:
        raise InvalidArgumentError(f"{what}; expected the shape of a matrix, or of a batch of them")
    if x.crows.ndim != 1 or x.cols.ndim != 1 or x.values.ndim != 1 or x.cols.shape != x.values.shape:
        raise InvalidArgumentError(f"{what}; expected three lists, with as many columns as values")
    *batch, rows, cols = x.shape
    if x.crows.shape[0] != math.prod(batch) * (rows + 1):
        raise InvalidArgumentError(
            f"{what}; expected {rows + 1} offsets for each matrix: those of its rows, and the end"
        )
    offsets = x.crows.reshape(-1, rows + 1)
    if bool((offsets[:, 0] != 0).any()) or bool((offsets[:, 1:] < offsets[:, :-1]).any()):
        raise InvalidArgumentError(f"{what}: crows is {x.crows!r}; expected offsets that start at 0 and never fall")
    if int(offsets[:, -1].sum()) != x.cols.shape[0]:
        raise InvalidArgumentError(f"{what}: crows end at {offsets[:, -1]}; expected the number of columns in all")
    if x.cols.size and not 0 <= int(x.cols.min()) <= int(x.cols.max()) < cols:
        raise InvalidArgumentError(
            f"{what}: cols lie in [{int(x.cols.min())}, {int(x.cols.max())}]; expected 0 <= col < {cols}"
        )
