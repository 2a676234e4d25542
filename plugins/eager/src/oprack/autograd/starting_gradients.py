"""The gradients that a backward walk starts from, and zeros where none arrives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.devices import filled_array
from oprack.eager_tensor.meta import TensorMeta, tensor_meta
from oprack.errors import InvalidArgumentError
from oprack.tensor import LoDTensor


def starting_gradients(outputs: Sequence[Tensor], given: Sequence[Any] | None, call: str) -> list[Tensor]:
    """The gradient of each output: the one that was passed, or 1 for an output of one element."""
    return [_starting_gradient(k, y, None if given is None else given[k], call) for k, y in enumerate(outputs)]


def zero_gradient(shape: tuple[int, ...], meta: TensorMeta) -> Tensor:
    """The gradient of an output that none arrives at.

    Args:
        shape: Dims of the output.
        meta: Its meta.
    """
    zeros = filled_array(shape, meta.dtype, meta.place, 0)
    return new_tensor(zeros, tensor_meta(LoDTensor, meta.dtype, meta.place))


def _starting_gradient(k: int, y: Tensor, gradient: Any, call: str) -> Tensor:
    if not isinstance(y, Tensor) or y._node is None:
        what = y.describe() if isinstance(y, Tensor) else type(y).__name__
        raise InvalidArgumentError(
            f"{call}: output {k} is {what}, which does not depend on a tensor that wants a gradient; set "
            "requires_grad=True on the inputs, and call ops outside of no_grad"
        )
    if gradient is None:
        if y.size != 1:
            raise InvalidArgumentError(
                f"{call}: output {k} has shape {list(y.shape)}; expected one element, or its gradient given"
            )
        like = y._meta.without_grad
        if like.layout is not None:
            return like.layout.ones(y)
        return new_tensor(filled_array(y.shape, like.dtype, y.place, 1), like, y._lod)
    start: Tensor = gradient if isinstance(gradient, Tensor) else Tensor.like(gradient, y)
    if start.shape != y.shape or start.dtype != y.dtype:
        raise InvalidArgumentError(
            f"{call}: the gradient of output {k} is {start.describe()}, the output {y.describe()}; expected the same "
            "shape and dtype"
        )
    return start if start._lod == y._lod or y._meta.layout is not None else _of_sequences(k, y, start, call)


def _of_sequences(k: int, y: Tensor, start: Tensor, call: str) -> Tensor:
    """A gradient whose rows are the sequences of y: an array says nothing of them, and gradient ops ask."""
    if start._lod:
        raise InvalidArgumentError(
            f"{call}: the gradient of output {k} has LoD {start.lod}, the output {y.lod}; expected the same sequences, "
            "or a gradient without LoD"
        )
    plain = tensor_meta(start._meta.container, start._meta.dtype, start.place, y._meta.lod_level)
    found = new_tensor(start._value, plain if start._node is None else plain.with_grad, y._lod)
    found._node = start._node  # it may be differentiated itself
    return found
