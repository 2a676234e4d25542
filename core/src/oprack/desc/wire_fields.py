"""The fields of the wire format, and those that the Desc classes do not model, which are written back unchanged.

A program that is read and written again has to be the same bytes. Hence each Desc has two private attributes:

- `_extra`: the bytes of fields that the class does not model, such as those of other versions of Paddle.
- `_explicit`: bits that say which optional fields the file sets: protobuf tells a field that is set to its default
  from one that is left out.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from oprack.desc import framework_pb2
from oprack.types import AttrType, VarType

pb: Any = framework_pb2  # its classes are made at import, where a type checker does not see them

Extra = dict[tuple[Any, ...], bytes]
"""Path of a message below its Desc, as (field, key, ...) -> the bytes of its fields that the Desc does not model."""

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
"""Bits of VarDesc._explicit: those of the flags, and that of the LoD level."""
VERSION, VERSION_NUMBER, OP_VERSION_MAP = 1, 2, 4
"""Bits of ProgramDesc._explicit: the message `version`, the number in it, and the message `op_version_map`.

A BlockDesc and an OpDesc have one such field each, `forward_block_idx` and `is_target`, so theirs is 0 or 1."""
_KEYS = {pb.OpDesc.Var: "parameter", pb.OpDesc.Attr: "name", pb.OpVersionMap.OpVersionPair: "op_name"}


def _modelled_fields(msg: Any) -> set[str]:
    """Names of the fields of a message that the Desc classes model."""
    kind = type(msg)
    if kind is pb.OpDesc.Attr:
        return {"name", "type", ATTR_FIELDS[ATTR_TYPES[msg.type]]}
    if kind is pb.VarType:
        return {"type", TENSOR_FIELDS.get(VAR_TYPES[msg.type], "type")}
    names = {field.name for field in kind.DESCRIPTOR.fields}
    return names - {"attrs"} if kind is pb.VarDesc else names


def save_extra(msg: Any, path: tuple[Any, ...], extra: Extra) -> None:
    """Save the bytes of those fields of one message that are not modelled, unknown ones included.

    Args:
        msg: The message. Messages in its fields are left out; `save_extra_deep` saves theirs as well.
        path: Where the message lies below its Desc.
        extra: Gets an entry if there are such fields.
    """
    rest = type(msg)()
    rest.CopyFrom(msg)
    for name in _modelled_fields(msg):
        rest.ClearField(name)
    raw = rest.SerializePartialToString()
    if raw:
        extra[path] = raw


def save_extra_deep(msg: Any, path: tuple[Any, ...], extra: Extra) -> None:
    """As `save_extra`, for a message and all messages in it."""
    save_extra(msg, path, extra)
    modelled = _modelled_fields(msg)
    for field, value in msg.ListFields():
        if field.name not in modelled or field.message_type is None:
            continue
        if isinstance(value, Message):
            save_extra_deep(value, (*path, field.name), extra)
        else:
            for i, item in enumerate(value):
                key = getattr(item, _KEYS[type(item)]) if type(item) in _KEYS else i
                save_extra_deep(item, (*path, field.name, key), extra)


def restore_extra(msg: Any, extra: Extra | None) -> None:
    """Merge saved bytes into the messages that they came from, unless these were removed since."""
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
