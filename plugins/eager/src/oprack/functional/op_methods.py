"""Finds the methods of tensors that packs bring: functions that they write, and ops."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from keyword import iskeyword
from types import FunctionType
from typing import Any

from oprack.eager_tensor import Tensor
from oprack.eager_tensor.from_above import FROM_ABOVE
from oprack.errors import OprackError
from oprack.functional.written import method, written, written_names
from oprack.op.proto import OpProto
from oprack.packs.changes import on_change
from oprack.packs.manager import default_manager

_kept: set[tuple[type, str]] = set()
_preferred: list[Callable[[str], Callable[..., Any] | None]] = []


class MethodsOfPacks(type):
    """The class of Tensor, so that `Tensor.reshape` is there before any `x.reshape`."""

    def __getattr__(cls, name: str) -> Any:
        return _kept_method(cls, name)

    def __dir__(cls) -> list[str]:
        return sorted({*type.__dir__(cls), *written_methods()})


def _kept_method(cls: type, name: str) -> Callable[..., Any]:
    """The function of a name, which is put on the class, so that the next call finds it as any method."""
    function = next((f for find in _preferred if (f := find(name)) is not None), None) or method(cls.__name__, name)
    if isinstance(function, FunctionType):
        owner = next(c for c in cls.__mro__ if "__getattr__" in vars(c))
        setattr(owner, name, function)
        _kept.add((owner, name))
    return function


def _forget() -> None:
    while _kept:
        owner, name = _kept.pop()
        if name in vars(owner):
            delattr(owner, name)


on_change(_forget)


def prefer(find: Callable[[str], Callable[..., Any] | None]) -> None:
    """Let methods of tensors be found elsewhere first, as where names mean what another library means by them.

    Args:
        find: Gives the function whose first argument is the tensor for the name of a method; None: it has none.
    """
    if find not in _preferred:
        _preferred.append(find)
        _forget()


def own_members(cls: type) -> set[str]:
    """The names that a class has without packs."""
    kept = {name for owner, name in _kept if owner in cls.__mro__}
    return {name for c in cls.__mro__ for name in vars(c)} - kept


def written_methods() -> dict[str, Callable[..., Any]]:
    """The functions that packs write whose first argument is a tensor, by name."""
    found = {}
    for name in written_names():
        try:
            function = written(name)
        except OprackError:
            continue
        first = next(iter(inspect.signature(function).parameters.values()), None) if function is not None else None
        if function is not None and first is not None and first.annotation in ("Tensor", Tensor):
            found[name] = function
    return found


def method_protos() -> Iterator[OpProto]:
    """The ops that are methods of tensors.

    Yields:
        The OpProto of each op whose first input is one tensor and whose type is a name in Python. Gradient ops can be
        called so as well, but who completes a name does not look for them; ops that can't be imported are left out.
    """
    manager = default_manager()
    for op_type in manager.op_types():
        if op_type.endswith("_grad") or op_type.startswith("_") or not op_type.isidentifier() or iskeyword(op_type):
            continue
        try:
            proto = manager.op_info(op_type).proto
        except OprackError:
            continue
        inputs = list(proto.inputs.values())
        first = ([slot for slot in inputs if not slot.dispensable] or inputs)[:1]
        if first and not first[0].duplicable:
            yield proto


def _method_names() -> set[str]:
    """What `dir` of a tensor has beside its own members."""
    return {*(proto.type for proto in method_protos()), *written_methods()}


FROM_ABOVE.update(method=_kept_method, method_names=_method_names)
