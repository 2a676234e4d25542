"""Writes to tensors, and moves between places, which gradients and captured functions take part in."""

from __future__ import annotations

from typing import Any

from oprack.autograd.custom_rule import CustomRule, attach
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.devices import context
from oprack.eager_tensor.from_above import FROM_ABOVE
from oprack.eager_tensor.meta import CPU, tensor_meta
from oprack.errors import InvalidArgumentError, UnimplementedError
from oprack.functional.creation import to_tensor
from oprack.interpreter.modes import is_grad_enabled
from oprack.interpreter.symbol import Capture, current_capture
from oprack.layers.append import append_op
from oprack.layers.variable import Variable
from oprack.packs import op_for
from oprack.tensor import LoDTensor, Place


def set_value(x: Any, value: Any) -> None:
    """Copy an array or a tensor of the same shape into a tensor; see Tensor.set_value."""
    capture = current_capture.get()
    if capture is not None:
        return _write_captured(capture, x, value)
    source = to_tensor(value, dtype=x.dtype, place=x.place)._value
    if tuple(source.shape) != x.shape:
        raise InvalidArgumentError(
            f"set_value: {x.describe()} can't hold an array of shape {list(source.shape)}; expected its own"
        )
    if x._meta.layout is not None:
        source = source[x._meta.layout.part(x.shape)]
    # A read-only array, such as a view of a mapped file, is replaced instead.
    fresh = source
    if x._meta.place != CPU or x._value.flags.writeable:
        with context(x._meta.place).activate():
            x._value[...] = source
        fresh = x._value
    x._overwrite(fresh, None, "set_value")
    return None


def moved(x: Tensor, place: Place) -> Tensor:
    """A tensor at another place; gradients flow back to the original."""
    found = _moved(x, place)
    if x.requires_grad and is_grad_enabled():
        rule = CustomRule("Tensor.to", 1, lambda home, gradients: [_moved(gradients[0], home)])
        attach(rule, [x], [found], x.place)
    return found


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


FROM_ABOVE.update(set_value=set_value, moved=moved, to_tensor=to_tensor)
