"""Installed ops as methods of tensors: `x.relu()` is `oprack.functional.relu(x)`."""

from __future__ import annotations

from collections.abc import Iterator
from keyword import iskeyword
from types import MethodType
from typing import Any

from oprack.errors import OprackError, UnknownOpError
from oprack.functional.generated import function as function_of
from oprack.op.proto import OpProto
from oprack.packs.manager import default_manager


class OpMethods:
    """Every op whose first input is a tensor is a method: `x.relu()`, `x.softmax(axis=0)`.

    The core knows no op, so a type checker that reads this takes any name. The stub package (`oprack stubs`) has one
    method for each installed op in its place.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        try:
            return MethodType(function_of(name), self)
        except UnknownOpError as error:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute or op {name!r}") from error

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *(proto.type for proto in method_protos())})


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
