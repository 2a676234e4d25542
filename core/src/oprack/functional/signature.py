"""The Python signature of an op's function, from the OpProto."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from oprack.op import OpProto
from oprack.op.arguments import input_names, shown_attrs


def signature(proto: OpProto) -> inspect.Signature:
    """Inputs in slot order, those that may be absent last; attributes as keywords."""
    return inspect.Signature(list(_parameters(proto)))


def _parameters(proto: OpProto) -> Iterator[inspect.Parameter]:
    kind, only = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    names = input_names(proto)
    for wanted in (False, True):
        for slot in proto.inputs.values():
            if slot.dispensable is wanted:
                default = None if wanted else inspect.Parameter.empty
                yield inspect.Parameter(names[slot.name], kind, default=default)
    for name, attr in shown_attrs(proto).items():
        default = inspect.Parameter.empty if attr.required else attr.default
        yield inspect.Parameter(name, only, default=default)
    if any(s.duplicable or s.dispensable for s in proto.outputs.values()):
        yield inspect.Parameter("num_outputs", only, default=None)
