"""Which field of the wire format holds what; and how fields survive that the Desc classes have no place for.

Fields of other versions, descriptions of readers and the like are kept as bytes per message (`_extra` of a Desc);
optional fields that are set to their default are kept as bits (`_explicit`). Both are written again.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from oprack.desc import framework_pb2
from oprack.types import AttrType, VarType

pb: Any = framework_pb2  # its classes are made at import, where a type checker does not see them

Extra = dict[tuple[Any, ...], bytes]
"""Path of a message below its Desc, as (field, key, ...) -> the bytes of its fields that the Desc does not hold."""

VAR_TYPES = {int(v): v for v in VarType}
ATTR_TYPES = {int(t): t for t in AttrType}
ATTR_FIELDS = {
    AttrType.INT: "i",
    AttrType.FLOAT: "f",
    AttrType.STRING: "s",
    AttrType.INTS: "ints",
    AttrType.FLOATS: "floats",
    AttrType.STRINGS: "strings",
    AttrType.BOOLEAN: "b",
    AttrType.BOOLEANS: "bools",
    AttrType.BLOCK: "block_idx",
    AttrType.LONG: "l",
    AttrType.BLOCKS: "blocks_idx",
    AttrType.LONGS: "longs",
    AttrType.FLOAT64S: "float64s",
    AttrType.VAR: "var_name",
    AttrType.VARS: "vars_name",
    AttrType.FLOAT64: "float64",
    AttrType.SCALAR: "scalar",
    AttrType.SCALARS: "scalars",
}
REPEATED = frozenset(
    {
        AttrType.INTS,
        AttrType.FLOATS,
        AttrType.BOOLEANS,
        AttrType.BLOCKS,
        AttrType.LONGS,
        AttrType.FLOAT64S,
        AttrType.VARS,
    }
)
TENSOR_FIELDS = {
    VarType.SELECTED_ROWS: "selected_rows",
    VarType.LOD_TENSOR: "lod_tensor",
    VarType.LOD_TENSOR_ARRAY: "tensor_array",
    VarType.STRING: "string",
    VarType.STRINGS: "strings",
    VarType.VOCAB: "vocab",
    VarType.SPARSE_COO: "sparse_coo",
    VarType.SPARSE_CSR: "sparse_csr",
}
WITH_LOD = frozenset({VarType.LOD_TENSOR, VarType.LOD_TENSOR_ARRAY})
VAR_FLAGS = (("persistable", 1), ("need_check_feed", 2), ("is_parameter", 4), ("stop_gradient", 8))
LOD_LEVEL = 16
_KEYS = {pb.OpDesc.Var: "parameter", pb.OpDesc.Attr: "name", pb.OpVersionMap.OpVersionPair: "op_name"}


def _held(msg: Any) -> set[str]:
    """Fields of a message that the Desc classes hold."""
    kind = type(msg)
    if kind is pb.OpDesc.Attr:
        return {"name", "type", ATTR_FIELDS[ATTR_TYPES[msg.type]]}
    if kind is pb.VarType:
        return {"type", TENSOR_FIELDS.get(VAR_TYPES[msg.type], "type")}
    held = {field.name for field in kind.DESCRIPTOR.fields}
    return held - {"attrs"} if kind is pb.VarDesc else held


def leftover(msg: Any, path: tuple[Any, ...], extra: Extra) -> None:
    """Note the bytes of those fields of this one message that the Desc classes do not hold, unknown ones included."""
    rest = type(msg)()
    rest.CopyFrom(msg)
    for name in _held(msg):
        rest.ClearField(name)
    raw = rest.SerializePartialToString()
    if raw:
        extra[path] = raw


def leftovers(msg: Any, path: tuple[Any, ...], extra: Extra) -> None:
    """As leftover, for a message and all messages in it."""
    leftover(msg, path, extra)
    held = _held(msg)
    for field, value in msg.ListFields():
        if field.name not in held or field.message_type is None:
            continue
        if isinstance(value, Message):
            leftovers(value, (*path, field.name), extra)
        else:
            for i, item in enumerate(value):
                key = getattr(item, _KEYS[type(item)]) if type(item) in _KEYS else i
                leftovers(item, (*path, field.name, key), extra)


def restore(msg: Any, extra: Extra | None) -> None:
    """Merge what leftover noted into the messages it came from; those that are gone by now take theirs along."""
    for path, raw in (extra or {}).items():
        target = msg
        steps = iter(path)
        for name in steps:
            target = _child(target, name, steps)
            if target is None:
                break
        else:
            target.MergeFromString(raw)


def _child(msg: Any, name: str, steps: Any) -> Any:
    value = getattr(msg, name)
    if isinstance(value, Message):
        return value if msg.HasField(name) else None
    key = next(steps)
    if isinstance(key, int):
        return value[key] if key < len(value) else None
    return next((item for item in value if getattr(item, _KEYS[type(item)]) == key), None)
