"""Type stubs of oprack.functional, from which editors complete names, arguments and documentation."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

from oprack.errors import OprackError
from oprack.functional.signature import signature
from oprack.op import OpProto, param_name
from oprack.op.arguments import documentation, input_names
from oprack.packs.manager import default_manager
from oprack.types import AttrType

_TYPES = {
    AttrType.INT: "int",
    AttrType.LONG: "int",
    AttrType.FLOAT: "float",
    AttrType.FLOAT64: "float",
    AttrType.STRING: "str",
    AttrType.BOOLEAN: "bool",
    AttrType.INTS: "Sequence[int]",
    AttrType.LONGS: "Sequence[int]",
    AttrType.FLOATS: "Sequence[float]",
    AttrType.FLOAT64S: "Sequence[float]",
    AttrType.STRINGS: "Sequence[str]",
    AttrType.BOOLEANS: "Sequence[bool]",
}
_HEAD = '''\
"""Every installed op as a function. Written by `oprack stubs`; write it again when packs change."""

from collections.abc import Mapping, Sequence
from typing import Any

from oprack import Tensor

'''


def stubs(op_types: Iterable[str] | None = None) -> str:
    """The text of functional.pyi. op_types: default all installed ones; what can't be imported is left out."""
    manager = default_manager()
    parts = [_HEAD]
    for op_type in manager.op_types() if op_types is None else op_types:
        try:
            proto = manager.op_info(op_type).proto
        except OprackError:
            continue
        if op_type.isidentifier():
            parts.append("\n".join(_function(proto)) + "\n")
    return "\n".join(parts)


def _function(proto: OpProto) -> Iterator[str]:
    texts, starred = [], False
    slots = {name: proto.inputs[slot] for slot, name in input_names(proto).items()}
    attrs = {a.param: a for a in proto.attrs.values()}
    for p in signature(proto).parameters.values():
        if p.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            texts.append("*")
            starred = True
        if p.name in slots:
            text = "Sequence[Tensor]" if slots[p.name].duplicable else "Tensor"
        elif p.name in attrs:
            text = _TYPES.get(attrs[p.name].type, "Any")
            text = f"{text} | Tensor" if attrs[p.name].support_tensor else text
        else:
            text = "int | Mapping[str, int]"
        if p.default is None and text != "Any":
            text = f"{text} | None"
        texts.append(f"{p.name}: {text}{_default(p.default)}")
    yield f"def {param_name(proto.type)}({', '.join(texts)}) -> {_result(proto)}:"
    doc = documentation(proto).replace("\\", "\\\\").replace('"""', "'''").rstrip()
    lines = doc.splitlines() or [proto.type]
    yield f'    """{lines[0]}'
    yield from (f"    {line}".rstrip() for line in lines[1:])
    yield '    """'


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return ""
    if value is None or isinstance(value, bool | int | str):
        return f" = {value!r}"
    return " = ..."


def _result(proto: OpProto) -> str:
    outs = [s for s in proto.outputs.values() if not (s.intermediate or s.dispensable)]
    if len(outs) != 1 or any(s.dispensable and not s.intermediate for s in proto.outputs.values()):
        return "Any"
    return "list[Tensor]" if outs[0].duplicable else "Tensor"
