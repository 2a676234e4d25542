"""Installed ops, and functions that packs write, as methods of tensors: `x.relu()`, `x.topk(2)`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from keyword import iskeyword
from types import MethodType
from typing import Any

from oprack.eager_tensor import Tensor
from oprack.errors import OprackError
from oprack.functional.written import by_name, method, written, written_names
from oprack.op.proto import OpProto
from oprack.packs.manager import default_manager


class OpMethods:
    """Every op and every written function whose first argument is a tensor is a method: `x.relu()`, `x.topk(2)`.

    The core knows no op, so a type checker that reads this takes any name. The stub package (`oprack stubs`) has one
    method for each installed op in its place.
    """

    def __getattr__(self, name: str) -> Any:
        function = by_name.get(name)
        if function is None:
            function = method(type(self).__name__, name)
        return MethodType(function, self)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *(proto.type for proto in method_protos()), *written_methods()})


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
