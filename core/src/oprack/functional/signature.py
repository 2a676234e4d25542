"""What a caller sees of an op: its Python signature and its documentation, from the OpProto."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from oprack.op import OpProto


def shown_attrs(proto: OpProto) -> list[str]:
    """Attributes that matter to a caller, as Python spells them."""
    return [a.param for a in proto.attrs.values() if a.param.isidentifier() and not (a.extra or a.generated)]


def signature(proto: OpProto) -> inspect.Signature:
    """Inputs in slot order, those that may be absent last; attributes as keywords."""
    return inspect.Signature(list(_parameters(proto)))


def _parameters(proto: OpProto) -> Iterator[inspect.Parameter]:
    kind, only = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    for wanted in (False, True):
        for slot in proto.inputs.values():
            if slot.dispensable is wanted:
                yield inspect.Parameter(slot.param, kind, default=None if wanted else inspect.Parameter.empty)
    taken = {s.param for s in proto.inputs.values()}
    for attr in proto.attrs.values():
        if attr.param in shown_attrs(proto) and attr.param not in taken:
            default = inspect.Parameter.empty if attr.required else attr.default
            yield inspect.Parameter(attr.param, only, default=default)
    if any(s.duplicable or s.dispensable for s in proto.outputs.values()):
        yield inspect.Parameter("num_outputs", only, default=None)


def documentation(proto: OpProto) -> str:
    """The op's documentation with its slots and attributes."""
    lines = [proto.doc, ""]
    lines += [f"{s.param}: {s.doc}{' May be absent.' if s.dispensable else ''}" for s in proto.inputs.values()]
    lines += [f"{a.param}: {a.doc}" for a in proto.attrs.values() if a.param in shown_attrs(proto)]
    outs = [f"{s.param}: {s.doc}" for s in proto.outputs.values() if not (s.intermediate or s.dispensable)]
    return "\n".join([*lines, f"Returns {'; '.join(outs) or 'nothing'}", f"Op {proto.type}."])
