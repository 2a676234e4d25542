"""Methods of tensors that convert or move values: to Python numbers, NumPy arrays, other libraries, other places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from oprack.autograd.custom_rule import CustomRule, attach
from oprack.autograd.walk import backward
from oprack.device import transform_sparse
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.meta import CPU, TensorMeta, tensor_meta
from oprack.errors import InvalidArgumentError, UnimplementedError
from oprack.functional.creation import to_tensor
from oprack.functional.tensor_ranks import GlobalMethods
from oprack.functional.tensor_standard import StandardMembers
from oprack.interpreter.devices import context, place_and_dtype, pool
from oprack.interpreter.modes import is_grad_enabled
from oprack.interpreter.symbol import Capture, current_capture
from oprack.layers.append import append_op
from oprack.layers.variable import Variable
from oprack.packs.vocabulary import op_for
from oprack.tensor import CUDAPlace, LoDTensor, Place, SparseValue


class Conversions(StandardMembers, GlobalMethods):
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
        """A copy in host memory; of a sparse value, the dense array.

        Returns:
            A NumPy array.
        """
        return np.array(self._host())

    def item(self) -> Any:
        """The only element as a Python number.

        Returns:
            The number.

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
        return to_tensor(value, dtype=other.dtype, place=other.place)

    def set_value(self, value: Any) -> None:
        """Copy an array or a tensor of the same shape into this tensor; this is not recorded.

        Args:
            value: The array or tensor.

        Raises:
            InvalidArgumentError: It has another shape.
            UnimplementedError: In a captured function, the tensor has requires_grad.
        """
        capture = current_capture.get()
        if capture is not None:
            return _write_captured(capture, self, value)
        source = to_tensor(value, dtype=self.dtype, place=self.place)._value
        if tuple(source.shape) != self.shape:
            raise InvalidArgumentError(
                f"set_value: {self.describe()} can't hold an array of shape {list(source.shape)}; expected its own"
            )
        if self._meta.layout is not None:
            source = source[self._meta.layout.part(self.shape)]
        # A read-only array, such as a view of a mapped file, is replaced instead.
        fresh = source
        if self._meta.place != CPU or self._value.flags.writeable:
            with context(self._meta.place).activate():
                self._value[...] = source
            fresh = self._value
        self._overwrite(fresh, None, "set_value")
        return None

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
        x: Any = self
        backward([x], [gradient], retain_graph, create_graph)

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
        moved = _moved(x, place)
        if x.requires_grad and is_grad_enabled():
            rule = CustomRule("Tensor.to", 1, lambda home, gradients: [_moved(gradients[0], home)])
            attach(rule, [x], [moved], x.place)
        return moved

    def cpu(self) -> Tensor:
        """The tensor in host memory.

        Returns:
            The tensor.
        """
        return self.to(CPU)

    def cuda(self, device_id: int = 0) -> Tensor:
        """The tensor on a GPU. Raises NotFoundError when no plugin serves GPUs.

        Args:
            device_id: Number of the device.

        Returns:
            The tensor.
        """
        return self.to(CUDAPlace(device_id))


def _as_arrays(value: Any) -> Any:
    if isinstance(value, Tensor):
        return np.asarray(value)
    if isinstance(value, dict):
        return {k: _as_arrays(v) for k, v in value.items()}
    return type(value)(_as_arrays(v) for v in value) if type(value) in (list, tuple) else value


def _moved(x: Any, place: Place) -> Tensor:
    if x._meta.container is not LoDTensor:
        raise InvalidArgumentError(f"{x.describe()} can't be moved to {place!r}; expected a dense tensor")
    array = context(place).from_host(context(x.place).to_host(x._value))
    return new_tensor(array, tensor_meta(LoDTensor, x._meta.dtype, place, x._meta.lod_level), x._lod)


def _write_captured(capture: Capture, tensor: Any, value: Any) -> None:
    """Write to a tensor in each run of a captured program, as the function does in each call."""
    if tensor.requires_grad:
        raise UnimplementedError(
            f"set_value: a captured function writes to {tensor.describe()}, which has requires_grad; do it outside"
        )
    target = capture.variable(tensor)
    if isinstance(value, Variable):
        source = value
    else:
        source = capture.variable(to_tensor(value, dtype=tensor.dtype, place=tensor.place))
    if tuple(source.shape) != tuple(tensor.shape):
        raise InvalidArgumentError(
            f"set_value: {tensor.describe()} can't hold an array of shape {list(source.shape)}; expected its own"
        )
    if source.dtype != target.dtype:
        source = source.astype(target.dtype)
    append_op(op_for("copy"), {"X": source.detach()}, {"Out": target}, program=target.program)
