"""Methods of tensors: conversions, moves between places and ranks, and what the array API standard asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from oprack.device import transform_sparse
from oprack.eager_tensor.devices import context, place_and_dtype, pool, required_place
from oprack.eager_tensor.from_above import FROM_ABOVE
from oprack.eager_tensor.meta import CPU, TensorMeta, TensorPlacement
from oprack.eager_tensor.op_methods import OpMethods
from oprack.eager_tensor.tensor import Tensor
from oprack.errors import InvalidArgumentError
from oprack.tensor import CUDAPlace, LoDTensor, Place, SparseValue

_NAMESPACE = "oprack.array_api"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""Versions of the array API standard; each holds those before it."""


class SharedMethods(OpMethods):
    """Methods of tensors, and of Variables that stand for them in a captured function."""

    @property
    def T(self) -> Tensor:
        """Dims in reversed order."""
        return self.transpose()  # type: ignore[no-any-return]


class TensorMethods(SharedMethods):
    """All methods that are installed on Tensor."""

    _value: Any
    _meta: TensorMeta

    @property
    def shape(self) -> tuple[int, ...]:
        """Dims."""
        raise NotImplementedError(f"{type(self).__name__} must define shape")

    @property
    def size(self) -> int:
        """Number of elements."""
        raise NotImplementedError(f"{type(self).__name__} must define size")

    def describe(self) -> str:
        """The tensor in words."""
        raise NotImplementedError(f"{type(self).__name__} must define describe")

    def _host(self) -> np.ndarray:
        if self._meta.layout is not None:
            value = self._meta.layout.whole_value(self)  # type: ignore[arg-type]
            return np.asarray(value.to_dense() if self.is_sparse else context(self._meta.place).to_host(value.array))
        if self._meta.container is not LoDTensor:
            if isinstance(self._value, SparseValue):
                return np.asarray(transform_sparse(self._value, CPU, pool()).to_dense())
            raise InvalidArgumentError(f"{self.describe()} is no array; use its elements")
        if self._meta.place == CPU:
            return self._value  # type: ignore[no-any-return]
        return context(self._meta.place).to_host(self._value)

    def __repr__(self) -> str:
        marks = [f"shape={list(self.shape)}", f"dtype={self.dtype}", f"place={self.place!r}"]
        if self._meta.layout is not None:
            # The part alone: printing on one rank must not wait for the others.
            part = np.array2string(context(self._meta.place).to_host(self._value), separator=", ")
            return f"Tensor({', '.join(marks)}, layout={self._meta.layout!r}, this rank's part:\n{part})"
        if self._lod:
            marks.append(f"lod={self.lod}")
        if self.requires_grad:
            marks.append("requires_grad=True")
        body = (
            repr(self._value)
            if self._meta.container is not LoDTensor
            else np.array2string(self._host(), separator=", ")
        )
        return f"Tensor({', '.join(marks)},\n{body})"

    def numpy(self) -> np.ndarray:
        """A copy in host memory; of a sparse value, the dense array."""
        return np.array(self._host())

    def item(self) -> Any:
        """The only element as a Python number.

        Raises:
            InvalidArgumentError: The tensor does not have exactly one element.
        """
        if self.size != 1:
            raise InvalidArgumentError(f"item: {self.describe()} has {self.size} elements; expected one")
        return self._host().item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers.

        Returns:
            Lists nested as deeply as there are dims; a number for a 0-D tensor.
        """
        return self._host().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy or (dtype is not None and np.dtype(dtype) != self._meta.dtype):
            return np.array(self._host(), dtype=dtype)
        view = self._host().view()
        view.flags.writeable = False  # a write through NumPy would go unnoticed by autograd
        return view

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Apply a NumPy function, such as np.sum(x), to the arrays; it is not recorded."""
        return function(*_as_arrays(args), **_as_arrays(kwargs))

    def __oprack_value__(self) -> Any:
        """The value to store in a scope or feed to a program."""
        x: Any = self
        return x.value

    __array_priority__ = 1000  # makes `array + tensor` call this class's operator, not NumPy's

    @property
    def __cuda_array_interface__(self) -> Any:
        return self._value.__cuda_array_interface__

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    def __index__(self) -> int:
        if self._meta.dtype.kind not in "iu":
            raise TypeError(f"{self.describe()} is no integer")
        return int(self.item())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise InvalidArgumentError(
                f"bool() of {self.describe()}, which has {self.size} elements; expected one: write x.any() or x.all()"
            )
        return bool(self._host().item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"len() of {self.describe()}, which has no dims")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        x: Any = self
        return (x[i] for i in range(len(x)))

    @staticmethod
    def like(value: Any, other: Tensor) -> Tensor:
        """Create a tensor with the place and dtype of another one.

        Args:
            value: An array or a number.
            other: The tensor.

        Returns:
            A tensor.
        """
        found: Tensor = FROM_ABOVE["to_tensor"](value, dtype=other.dtype, place=other.place)
        return found

    def set_value(self, value: Any) -> None:
        """Copy an array or a tensor of the same shape into this tensor; this is not recorded.

        Raises:
            InvalidArgumentError: It has another shape.
            UnimplementedError: In a captured function, the tensor has requires_grad.
        """
        FROM_ABOVE["set_value"](self, value)

    def backward(self, gradient: Any = None, retain_graph: bool = False, create_graph: bool = False) -> None:
        """Add the gradients of this tensor to `grad` of the leaves it was computed from.

        Args:
            gradient: The starting gradient, in this tensor's shape; None stands for 1 and needs a single element.
            retain_graph: Whether backward may be called again.
            create_graph: Whether the gradients can themselves be differentiated.

        Raises:
            InvalidArgumentError: There are several elements and no gradient.
            NotDifferentiableError: An op on the way has no gradient.
            PreconditionNotMetError: Nothing was recorded, or what was saved is gone or was changed in place.
        """
        FROM_ABOVE["backward"]([self], [gradient], retain_graph, create_graph)

    # Places -----------------------------------------------------------------------------------------------------------
    def to(self, place: Any = None, dtype: object = None) -> Tensor:
        """Move the tensor to a place, cast it to a dtype, or both. Gradients flow back to the original.

        Args:
            place: A Place or its name ("cpu", "cuda", "cuda:1"), or a dtype.
            dtype: The dtype.

        Returns:
            The converted tensor; this one when nothing changes.

        Raises:
            InvalidArgumentError: `place` is neither a place nor a dtype.
            NotFoundError: No plugin serves the place.
        """
        x: Any = self
        place, name = place_and_dtype(place, dtype, "Tensor.to")
        if name is not None and name != x.dtype:
            x = x.astype(name)
        if place is None or x.place == place:
            return x  # type: ignore[no-any-return]
        return FROM_ABOVE["moved"](x, place)  # type: ignore[no-any-return]

    def cpu(self) -> Tensor:
        """The tensor in host memory."""
        return self.to(CPU)

    def cuda(self, device_id: int = 0) -> Tensor:
        """The tensor on a GPU. Raises NotFoundError when no plugin serves GPUs.

        Args:
            device_id: Number of the device.

        Returns:
            The tensor.
        """
        return self.to(CUDAPlace(device_id))

    def type(self, dtype: Any = None) -> Any:
        """The dtype, or the tensor with another one, as PyTorch has it.

        Args:
            dtype: The dtype; None: none is asked for.

        Returns:
            The name of the dtype; the tensor, where one was given.
        """
        x: Any = self
        return x.dtype if dtype is None else x.astype(dtype)

    @property
    def data(self) -> Tensor:
        """The same values, of which calls are not recorded: as `detach()`."""
        x: Any = self
        return x.detach()  # type: ignore[no-any-return]

    @data.setter
    def data(self, value: Any) -> None:
        self.set_value(value)

    def new_tensor(self, data: Any, dtype: Any = None) -> Tensor:
        """A tensor of other values with the place and, where none is given, the dtype of this one.

        Args:
            data: The values.
            dtype: The dtype.

        Returns:
            The tensor.
        """
        x: Any = self
        found: Tensor = FROM_ABOVE["to_tensor"](data, dtype=dtype or x.dtype, place=x.place)
        return found

    def new_full(self, size: Any, fill_value: Any, dtype: Any = None) -> Tensor:
        """One number everywhere, in another shape; otherwise as `new_tensor`.

        Args:
            size: The dims.
            fill_value: The number.
            dtype: The dtype.

        Returns:
            The tensor.
        """
        return self.new_tensor(np.full(size, fill_value), dtype)

    def new_zeros(self, *size: Any, dtype: Any = None) -> Tensor:
        """Zeros in another shape, given as numbers or as one list; otherwise as `new_tensor`."""
        return self.new_full(size[0] if len(size) == 1 else size, 0, dtype)

    def new_ones(self, *size: Any, dtype: Any = None) -> Tensor:
        """Ones in another shape, given as numbers or as one list; otherwise as `new_tensor`."""
        return self.new_full(size[0] if len(size) == 1 else size, 1, dtype)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad`.

        Args:
            requires_grad: Whether calls with the tensor are recorded.

        Returns:
            The tensor itself.
        """
        x: Any = self
        x.requires_grad = requires_grad
        return x  # type: ignore[no-any-return]

    # In place ---------------------------------------------------------------------------------------------------------
    def fill_(self, value: Any) -> Tensor:
        """A number everywhere, in this tensor's memory."""
        self.set_value(np.full(self.shape, value, self._meta.dtype))
        return self  # type: ignore[return-value]

    def copy_(self, other: Any, blocking: bool = True) -> Tensor:
        """The values of a tensor or array of the same shape, in this tensor's memory; it always waits."""
        self.set_value(other)
        return self  # type: ignore[return-value]

    def zero_(self) -> Tensor:
        """Zeros, in this tensor's memory."""
        self.set_value(np.zeros(self.shape, self._meta.dtype))
        return self  # type: ignore[return-value]

    # Ranks ------------------------------------------------------------------------------------------------------------
    @property
    def is_global(self) -> bool:
        """Whether its parts lie on several ranks, by a layout; see oprack.parallel."""
        return self._meta.layout is not None

    @property
    def layout(self) -> Any:
        """How the parts of a global tensor lie over ranks; None for a tensor of this process alone."""
        return self._meta.layout

    def to_global(
        self, placement: TensorPlacement | None = None, sbp: Any = None, *, from_whole: bool = False
    ) -> Tensor:
        """Make this rank's part a part of a global tensor, or give a global tensor another layout. Collective.

        Args:
            placement: The grid of ranks, as `oprack.parallel.placement` makes it; default: that of a global tensor.
            sbp: For each axis of the grid "split(dim)", "broadcast" or "partial_sum", as text or as
                `oprack.parallel.split(dim)`; one of them alone for a grid of one axis. Default: as it is.
            from_whole: Whether each rank passes the same whole tensor, of which it keeps its part; otherwise each
                passes its part. A tensor with LoD is split by whole sequences.

        Returns:
            The global tensor; gradients flow through.

        Raises:
            InvalidArgumentError: The placement or sbp is missing, does not fit the shape, or is on another kind of
                place.
            CollectiveError: The parts do not make up one tensor.
            UnimplementedError: The tensor is no dense array, or lies on another placement.
        """
        x: Any = self
        layout = self._meta.layout
        if placement is None and layout is not None:
            placement = layout.placement
        if placement is None or not hasattr(placement, "to_global"):
            what = "is of this process alone" if placement is None else f"can't go to {placement!r}"
            raise InvalidArgumentError(
                f"to_global: {x.describe()} {what}; expected where it goes: x.to_global(placement, "
                '"split(0)"), with placement = parallel.placement() after "from oprack import parallel"'
            )
        return placement.to_global(x, sbp, from_whole)

    def to_local(self) -> Tensor:
        """This rank's part of a global tensor, as a tensor of this process; gradients flow through.

        Returns:
            The part; the tensor itself when it is not global.
        """
        x: Any = self
        layout = self._meta.layout
        return x if layout is None else layout.to_local(x)

    # The array API standard -------------------------------------------------------------------------------------------
    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The module with the functions of the array API standard, oprack.array_api.

        Args:
            api_version: The version of the standard that the caller is written for.

        Returns:
            The module.

        Raises:
            InvalidArgumentError: It is a version that the module does not follow.
        """
        import importlib

        if api_version is not None and api_version not in VERSIONS:
            raise InvalidArgumentError(
                f"{_NAMESPACE} does not follow version {api_version!r} of the standard; expected one of "
                + ", ".join(VERSIONS)
            )
        return importlib.import_module(_NAMESPACE)

    @property
    def device(self) -> Place:
        """The place, under the name of the array API standard."""
        x: Any = self
        return x._meta.place  # type: ignore[no-any-return]

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """The tensor at another place, as `to`.

        Args:
            device: A Place or its name.
            stream: None, since each place has a stream of its own.

        Returns:
            The tensor; this one when it is there.

        Raises:
            InvalidArgumentError: There is a stream.
        """
        x: Any = self
        if stream is not None:
            raise InvalidArgumentError(f"to_device: stream is {stream!r}; expected None, since places have their own")
        return x.to(required_place(device, "to_device"))  # type: ignore[no-any-return]

    @property
    def mT(self) -> Tensor:
        """The last two dims swapped."""
        x: Any = self
        if x.ndim < 2:
            raise InvalidArgumentError(f"{x.describe()}: mT swaps the last two dims; expected two at least")
        return x.transpose([*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])  # type: ignore[no-any-return]

    def __complex__(self) -> complex:
        x: Any = self
        return complex(x.item())

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export the memory to another library, whose writes autograd does not notice.

        Args:
            stream: The stream of the consumer; None on the CPU.
            max_version: The newest version of DLPack that the consumer knows.
            dl_device: Where the consumer wants the memory, as DLPack numbers devices.
            copy: True for a copy, False for the memory itself.

        Returns:
            The capsule.

        Raises:
            BufferError: The memory can't be exported so.
        """
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return self._dense()._value.__dlpack__(**{k: v for k, v in options.items() if v is not None})

    def __dlpack_device__(self) -> tuple[Any, int]:
        """The kind and the number of the device, as DLPack numbers them."""
        return self._dense()._value.__dlpack_device__()  # type: ignore[no-any-return]

    def _dense(self) -> Any:
        x: Any = self
        if x._meta.container is not LoDTensor:
            raise BufferError(f"{x.describe()} is no array; expected a dense tensor")
        return x


def _as_arrays(value: Any) -> Any:
    if isinstance(value, Tensor):
        return np.asarray(value)
    if isinstance(value, dict):
        return {k: _as_arrays(v) for k, v in value.items()}
    return type(value)(_as_arrays(v) for v in value) if type(value) in (list, tuple) else value
