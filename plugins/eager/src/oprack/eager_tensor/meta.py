"""TensorMeta: what the choice of kernels and of generated code depends on; one object for all equal ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.tensor.arrays import plain_array
from oprack.tensor.lod_tensor import LoDTensor, LoDTensorArray
from oprack.tensor.place import CPUPlace, Place
from oprack.tensor.sparse_tensor import SparseValue
from oprack.types import dtype_name

if TYPE_CHECKING:
    from oprack.eager_tensor.tensor import Tensor

CPU = CPUPlace()


class TensorLayout(Protocol):
    """What code that knows no ranks asks of the layout of a global tensor; `oprack.parallel.Layout` is one.

    Attributes:
        is_broadcast: Whether every rank has the whole.
        placement: The grid of ranks.
    """

    @property
    def is_broadcast(self) -> bool: ...
    @property
    def placement(self) -> TensorPlacement: ...

    def region(self, shape: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """(start, stop) of each dim of this rank's part of an array of the logical shape."""

    def part(self, shape: Sequence[int]) -> Any:
        """The index of this rank's part in an array of the logical shape."""

    def meta(self, local: TensorMeta) -> TensorMeta:
        """The meta of global tensors with this layout whose parts have meta `local`."""

    def whole_value(self, x: Tensor) -> Any:
        """The value of a global tensor as a scope holds values, the same on each rank; collective."""

    def gathered(self, part: Any, shape: Sequence[int]) -> Any:
        """The whole array of which each rank has a part in this layout; collective."""

    def ones(self, x: Tensor) -> Tensor:
        """A tensor of ones with the shape and dtype of a global one, whole on each rank."""

    def to_local(self, x: Tensor) -> Tensor:
        """This rank's part of a global tensor, as a tensor of this process."""


class TensorPlacement(Protocol):
    """What the same code asks of a grid of ranks; `oprack.parallel.Placement` is one."""

    def agree(self, what: str, decision: Any) -> None:
        """Raise CollectiveError unless all ranks decide the same; collective."""

    def to_global(self, x: Tensor, sbp: Any, from_whole: bool) -> Tensor:
        """A tensor of this process, or a global one, in a layout on these ranks; collective."""


class TensorMeta:
    """What all tensors have in common that one generated function serves.

    container: the class of the value: one of `oprack.tensor.kinds`, or that of an object such as a rank table.
    dtype: NumPy's; None of an array without elements. grad: whether gradients are wanted. tracked: the memory was
    written in place, or is shared with another tensor, so that what is saved for a gradient has to remember its
    version. with_grad, without_grad, with_tracking: metas that differ in that alone. layout: how the parts of a global
    tensor lie over ranks, local: the meta of the part that is here; None and the meta itself for a tensor of this
    process alone. bare: whether an array of NumPy's is all that there is to the value.
    """

    __slots__ = (
        "bare",
        "container",
        "differentiable",
        "dtype",
        "grad",
        "layout",
        "local",
        "lod_level",
        "name",
        "place",
        "tracked",
        "with_grad",
        "with_tracking",
        "without_grad",
    )
    layout: TensorLayout | None
    local: TensorMeta
    with_grad: TensorMeta
    without_grad: TensorMeta
    with_tracking: TensorMeta

    def __init__(self, container: type, dtype: Any, place: Place, lod_level: int, grad: bool, tracked: bool) -> None:
        self.container, self.dtype, self.place, self.lod_level = container, dtype, place, lod_level
        self.grad, self.tracked = grad, tracked
        self.layout, self.local = None, self
        self.bare = container is LoDTensor and not lod_level and place.kind == "cpu"
        self.name = None if dtype is None else dtype_name(dtype)
        self.differentiable = self.name is not None and (dtype.kind in "fc" or self.name == "bfloat16")

    def placed(self, layout: TensorLayout) -> TensorMeta:
        """A meta of global tensors whose parts have this one; `Layout.meta` keeps one for each."""
        found = TensorMeta(self.container, self.dtype, self.place, self.lod_level, self.grad, self.tracked)
        found.layout, found.local, found.bare = layout, self, False
        return found

    def __repr__(self) -> str:
        marks = "".join(f" {m}" for m in ("grad", "tracked") if getattr(self, m))
        marks += f" {self.layout!r}" if self.layout is not None else ""
        return f"<{self.container.__name__} {self.name} lod_level={self.lod_level} {self.place}{marks}>"


# Metas are compared by identity, so there is one for each combination and none is ever dropped: places, dtypes and LoD
# levels are few.
_METAS: dict[tuple[Any, ...], TensorMeta] = {}


def tensor_meta(
    container: type, dtype: Any, place: Place = CPU, lod_level: int = 0, grad: bool = False, tracked: bool = False
) -> TensorMeta:
    """The meta with these properties, always the same object."""
    key = (container, dtype, place, lod_level, grad, tracked)
    found = _METAS.get(key)
    if found is None:
        found = _METAS[key] = TensorMeta(*key)
        found.with_grad = found if grad else tensor_meta(container, dtype, place, lod_level, True, tracked)
        found.without_grad = tensor_meta(container, dtype, place, lod_level, False, tracked) if grad else found
        found.with_tracking = found if tracked else tensor_meta(container, dtype, place, lod_level, grad, True)
    return found


def meta_of_value(value: Any, place: Place = CPU, lod_level: int = 0) -> TensorMeta:
    """The TensorMeta, without gradient, of a bare array, a sparse value, a LoDTensorArray or another object."""
    if isinstance(value, SparseValue):
        return tensor_meta(type(value), value.elements.dtype, value.place)
    if isinstance(value, LoDTensorArray):
        first = next((t for t in value if t is not None), None)
        return tensor_meta(LoDTensorArray, None if first is None else first.array.dtype, place)
    if not hasattr(value, "dtype"):
        return tensor_meta(type(value), None, place)
    return tensor_meta(LoDTensor, value.dtype, place, lod_level)


def _array_of(value: Any) -> np.ndarray:
    """Numbers, or nested lists of them, as an array."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise InvalidArgumentError(
            f"{type(value).__name__} can't be made an array ({error}); expected numbers, or lists of equal lengths. "
            "For sequences of several lengths pass their rows one after the other, and offsets: lod=[[0, 2, 3]]"
        ) from None


def dense_array(value: Any, dtype: Any = None) -> Any:
    """`value` as an array; a Python float becomes float32, as everywhere in programs, unless dtype says otherwise."""
    if dtype is not None:
        return np.asarray(plain_array(value), dtype)
    array = plain_array(value) if hasattr(value, "dtype") else _array_of(value)
    # NumPy's own floats carry a dtype that somebody chose; Python's do not.
    return array.astype(np.float32) if array.dtype == np.float64 and not hasattr(value, "dtype") else array
