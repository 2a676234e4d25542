"""Between the bytes of a program and the Desc classes. The only user of protobuf.

What the Desc classes have no place for (fields of other versions, descriptions of readers, optional fields that are set
to their default) is kept per message in `_extra` and `_explicit`, so that it is written again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError, EncodeError, Message

from oprack.desc import framework_pb2 as pb
from oprack.desc.block_desc import BlockDesc
from oprack.desc.op_desc import OpDesc, Slots
from oprack.desc.program_desc import ProgramDesc
from oprack.desc.var_desc import VarDesc
from oprack.errors import AttributeValueError, CorruptModelError, InvalidArgumentError
from oprack.types import AttrType, VarType

Extra = dict[tuple[Any, ...], bytes]
"""Path of a message below its Desc, as (field, key, ...) -> the bytes of its fields that the Desc does not hold."""

_VAR_TYPES = {int(v): v for v in VarType}
_ATTR_TYPES = {int(t): t for t in AttrType}
_ATTR_FIELDS = {
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
_REPEATED = frozenset(
    {AttrType.INTS, AttrType.FLOATS, AttrType.BOOLEANS, AttrType.BLOCKS, AttrType.LONGS, AttrType.FLOAT64S, AttrType.VARS}
)
_TENSOR_FIELDS = {
    VarType.SELECTED_ROWS: "selected_rows",
    VarType.LOD_TENSOR: "lod_tensor",
    VarType.LOD_TENSOR_ARRAY: "tensor_array",
    VarType.STRING: "string",
    VarType.STRINGS: "strings",
    VarType.VOCAB: "vocab",
    VarType.SPARSE_COO: "sparse_coo",
    VarType.SPARSE_CSR: "sparse_csr",
}
_WITH_LOD = frozenset({VarType.LOD_TENSOR, VarType.LOD_TENSOR_ARRAY})
_VAR_FLAGS = (("persistable", 1), ("need_check_feed", 2), ("is_parameter", 4), ("stop_gradient", 8))
_LOD_LEVEL = 16
_KEYS = {pb.OpDesc.Var: "parameter", pb.OpDesc.Attr: "name", pb.OpVersionMap.OpVersionPair: "op_name"}


# Reading ------------------------------------------------------------------------------------------------------------
def read_program(data: bytes | bytearray | memoryview, program: ProgramDesc) -> ProgramDesc:
    """Fill an empty `program` from the bytes of a program file. Raises CorruptModelError; block indices are not checked."""
    msg = pb.ProgramDesc()
    try:
        msg.ParseFromString(data if isinstance(data, bytes) else bytes(data))
    except (DecodeError, UnicodeDecodeError) as e:
        raise _corrupt(data, f"protobuf says: {e}") from None
    if not msg.IsInitialized():
        missing = list(msg.FindInitializationErrors())
        raise _corrupt(
            data,
            f"required fields are missing or hold an unknown enum number: {', '.join(missing[:3])}"
            + (f" and {len(missing) - 3} more" if len(missing) > 3 else ""),
        )
    if not msg.blocks:
        raise _corrupt(data, "it has no block")
    top: Extra = {}
    _leftover(msg, (), top)
    exact = _unknown_bytes(msg) > sum(map(len, top.values()))
    program._explicit = msg.HasField("version") + 2 * msg.version.HasField("version") + 4 * msg.HasField("op_version_map")
    program.version = msg.version.version
    program.op_version_map = {pair.op_name: pair.op_version.version for pair in msg.op_version_map.pair}
    if exact:
        for name in ("version", "op_version_map"):
            if msg.HasField(name):
                _leftovers(getattr(msg, name), (name,), top)
    program._extra = top or None
    program.blocks = [_read_block(block, program, exact) for block in msg.blocks]
    _refuse_bytes(data, program)
    return program


def _corrupt(data: bytes | bytearray | memoryview, why: str) -> CorruptModelError:
    return CorruptModelError(
        f"{len(data)} bytes are no program: {why}. Expected the whole content of a .pdmodel or __model__ file; "
        "check that the file is complete and is not the parameter file"
    )


def _unknown_bytes(msg: Message) -> int:
    """How many bytes the unknown fields of `msg` and of all messages in it take (with the lengths that they cause)."""
    known = type(msg)()
    known.CopyFrom(msg)
    known.DiscardUnknownFields()
    return msg.ByteSize() - known.ByteSize()


def _read_block(msg: Any, program: ProgramDesc, exact: bool) -> BlockDesc:
    block = BlockDesc(program, msg.idx, msg.parent_idx, msg.forward_block_idx)
    block._explicit = int(msg.HasField("forward_block_idx"))
    if exact:
        extra: Extra = {}
        _leftover(msg, (), extra)
        block._extra = extra or None
    block.vars = {var.name: _read_var(var, exact) for var in msg.vars}
    block.ops = [_read_op(op, exact) for op in msg.ops]
    return block


def _read_var(msg: Any, exact: bool) -> VarDesc:
    var = VarDesc.__new__(VarDesc)
    var.name = msg.name
    var._explicit = 0
    var._extra = None
    var.persistable = msg.persistable
    var.need_check_feed = msg.need_check_feed
    var.is_parameter = msg.is_parameter
    var.stop_gradient = msg.stop_gradient
    for flag, bit in _VAR_FLAGS:
        if msg.HasField(flag):
            var._explicit |= bit
    kind = msg.type
    var.type = _VAR_TYPES[kind.type]
    var.dtype = var.shape = None
    var.lod_level = 0
    field = _TENSOR_FIELDS.get(var.type)
    known = 1
    if field is not None and kind.HasField(field):
        known = 2
        tensor = getattr(kind, field)
        if var.type in _WITH_LOD:
            var.lod_level = tensor.lod_level
            if tensor.HasField("lod_level"):
                var._explicit |= _LOD_LEVEL
            tensor = tensor.tensor
        var.dtype = _VAR_TYPES[tensor.data_type]
        var.shape = tuple(tensor.dims)
    if exact or len(msg.attrs) or len(kind.ListFields()) != known:
        extra: Extra = {}
        _leftovers(msg, (), extra)
        var._extra = extra or None
    return var


def _read_op(msg: Any, exact: bool) -> OpDesc:
    op = OpDesc.__new__(OpDesc)
    op.type = msg.type
    op.inputs = {slot.parameter: list(slot.arguments) for slot in msg.inputs}
    op.outputs = {slot.parameter: list(slot.arguments) for slot in msg.outputs}
    op.is_target = msg.is_target
    op._explicit = int(msg.HasField("is_target"))
    op.attrs = attrs = {}
    op.attr_types = types = {}
    odd = exact
    for attr in msg.attrs:
        name = attr.name
        types[name] = kind = _ATTR_TYPES[attr.type]
        value = getattr(attr, _ATTR_FIELDS[kind])
        reader = _READERS.get(kind)
        attrs[name] = value if reader is None else reader(value)
        odd = odd or len(attr.ListFields()) > 3
    op._attr_order = None if len(attrs) == len(msg.attrs) else [attr.name for attr in msg.attrs]
    op._extra = None
    if odd:
        extra: Extra = {}
        _leftovers(msg, (), extra)
        op._extra = extra or None
    return op


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _read_scalar(msg: Any) -> bool | int | float | complex:
    if msg.type == pb.Scalar.BOOLEAN:
        return msg.b  # type: ignore[no-any-return]
    if msg.type == pb.Scalar.LONG:
        return msg.i  # type: ignore[no-any-return]
    if msg.type == pb.Scalar.FLOAT64:
        return msg.r  # type: ignore[no-any-return]
    return complex(msg.c.r, msg.c.i)


# Types that are not here hold a plain Python value
_READERS: dict[AttrType, Callable[[Any], Any]] = {
    **dict.fromkeys(_REPEATED, list),
    AttrType.STRING: _text,
    AttrType.STRINGS: lambda values: [_text(v) for v in values],
    AttrType.SCALAR: _read_scalar,
    AttrType.SCALARS: lambda values: [_read_scalar(v) for v in values],
}


def _refuse_bytes(data: bytes | bytearray | memoryview, program: ProgramDesc) -> None:
    """protobuf hands out a name that is not UTF-8 as `bytes`."""
    names: set[Any] = set(program.op_version_map)
    for block in program.blocks:
        names.update(block.vars)
        for op in block.ops:
            names.add(op.type)
            names.update(op.inputs, op.outputs, op.attrs)
            for slots in (op.inputs, op.outputs):
                for arguments in slots.values():
                    names.update(arguments)
            for name, kind in op.attr_types.items():
                if kind is AttrType.VAR:
                    names.add(op.attrs[name])
                elif kind is AttrType.VARS:
                    names.update(op.attrs[name])
    for name in names:
        if not isinstance(name, str):
            raise _corrupt(data, f"the name {name!r} is not UTF-8")


# What the Desc classes have no place for ------------------------------------------------------------------------------
def _held(msg: Any) -> set[str]:
    """Fields of a message that the Desc classes hold."""
    kind = type(msg)
    if kind is pb.OpDesc.Attr:
        return {"name", "type", _ATTR_FIELDS[_ATTR_TYPES[msg.type]]}
    if kind is pb.VarType:
        return {"type", _TENSOR_FIELDS.get(_VAR_TYPES[msg.type], "type")}
    held = {field.name for field in kind.DESCRIPTOR.fields}
    return held - {"attrs"} if kind is pb.VarDesc else held


def _leftover(msg: Any, path: tuple[Any, ...], extra: Extra) -> None:
    """Note the bytes of those fields of this one message that the Desc classes do not hold, unknown ones included."""
    rest = type(msg)()
    rest.CopyFrom(msg)
    for name in _held(msg):
        rest.ClearField(name)
    raw = rest.SerializePartialToString()
    if raw:
        extra[path] = raw


def _leftovers(msg: Any, path: tuple[Any, ...], extra: Extra) -> None:
    """As _leftover, for a message and all messages in it."""
    _leftover(msg, path, extra)
    held = _held(msg)
    for field, value in msg.ListFields():
        if field.name not in held or field.message_type is None:
            continue
        if isinstance(value, Message):
            _leftovers(value, (*path, field.name), extra)
        else:
            for i, item in enumerate(value):
                key = getattr(item, _KEYS[type(item)]) if type(item) in _KEYS else i
                _leftovers(item, (*path, field.name, key), extra)


def _restore(msg: Any, extra: Extra | None) -> None:
    """Merge what _leftover noted into the messages it came from; those that are gone by now take theirs along."""
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


# Writing ------------------------------------------------------------------------------------------------------------
def write_program(program: ProgramDesc) -> bytes:
    """The bytes of a program file. Raises AttributeValueError or InvalidArgumentError for values that fit no field."""
    msg = pb.ProgramDesc()
    if program.version or program._explicit & 2:
        msg.version.version = program.version
    elif program._explicit & 1:
        msg.version.SetInParent()
    for name, version in program.op_version_map.items():
        pair = msg.op_version_map.pair.add()
        pair.op_name = name
        pair.op_version.version = version
    if program._explicit & 4:
        msg.op_version_map.SetInParent()
    for block in program.blocks:
        _write_block(block, msg.blocks.add())
    _restore(msg, program._extra)
    try:
        return msg.SerializeToString()  # type: ignore[no-any-return]
    except EncodeError as e:
        raise InvalidArgumentError(f"the program can't be written: {e}") from None


def _write_block(block: BlockDesc, msg: Any) -> None:
    msg.idx = block.idx
    msg.parent_idx = block.parent_idx
    if block.forward_block_idx != -1 or block._explicit:
        msg.forward_block_idx = block.forward_block_idx
    for var in block.vars.values():
        try:
            _write_var(var, msg.vars.add())
        except (TypeError, ValueError) as e:
            raise InvalidArgumentError(f"variable {var.name!r} of block {block.idx} can't be written: {e}") from None
    for op in block.ops:
        try:
            _write_op(op, msg.ops.add())
        except (TypeError, UnicodeEncodeError) as e:
            raise InvalidArgumentError(f"op {op.type} of block {block.idx} can't be written: {e}") from None
    _restore(msg, block._extra)


def _write_var(var: VarDesc, msg: Any) -> None:
    msg.name = var.name
    explicit = var._explicit
    for flag, bit in _VAR_FLAGS:
        value = getattr(var, flag)
        if value or explicit & bit:
            setattr(msg, flag, value)
    kind = msg.type
    kind.type = var.type
    field = _TENSOR_FIELDS.get(var.type)
    if field is not None and (var.dtype is not None or var.shape is not None):
        tensor = getattr(kind, field)
        if var.type in _WITH_LOD:
            if var.lod_level or explicit & _LOD_LEVEL:
                tensor.lod_level = var.lod_level
            tensor = tensor.tensor
        # The wire has no tensor without a dtype; Fluid takes float32 for one that was not told yet
        tensor.data_type = VarType.FP32 if var.dtype is None else var.dtype
        tensor.dims.extend(var.shape or ())
    _restore(msg, var._extra)


def _write_slots(slots: Slots, field: Any) -> None:
    for name, arguments in slots.items():
        slot = field.add()
        slot.parameter = name
        slot.arguments.extend(arguments)


def _write_op(op: OpDesc, msg: Any) -> None:
    msg.type = op.type
    _write_slots(op.inputs, msg.inputs)
    _write_slots(op.outputs, msg.outputs)
    if op.is_target or op._explicit:
        msg.is_target = op.is_target
    for name in op.attrs if op._attr_order is None else _in_order(op):
        value = op.attrs[name]
        attr = msg.attrs.add()
        attr.name = name
        attr.type = kind = op.attr_types[name]
        try:
            if kind in _REPEATED:
                getattr(attr, _ATTR_FIELDS[kind]).extend(value)
            else:
                _write_value(attr, kind, value)
        except (TypeError, ValueError, AttributeError) as e:
            raise AttributeValueError(
                f"op {op.type}: attribute {name!r} is {value!r}, which is no {kind.name}: {e}; set it with set_attr"
            ) from None
    _restore(msg, op._extra)


def _in_order(op: OpDesc) -> list[str]:
    """Names of the attributes as they came, repeated ones included, then the new ones."""
    came = [name for name in op._attr_order or () if name in op.attrs]
    known = set(came)
    return came + [name for name in op.attrs if name not in known]


def _write_value(attr: Any, kind: AttrType, value: Any) -> None:
    if kind is AttrType.STRING:
        attr.s = value.encode("utf-8", "surrogateescape")
    elif kind is AttrType.STRINGS:
        attr.strings.extend(v.encode("utf-8", "surrogateescape") for v in value)
    elif kind is AttrType.SCALAR:
        _write_scalar(attr.scalar, value)
    elif kind is AttrType.SCALARS:
        for v in value:
            _write_scalar(attr.scalars.add(), v)
    else:
        setattr(attr, _ATTR_FIELDS[kind], value)


def _write_scalar(msg: Any, value: bool | int | float | complex) -> None:
    if isinstance(value, bool):
        msg.type, msg.b = pb.Scalar.BOOLEAN, value
    elif isinstance(value, int):
        msg.type, msg.i = pb.Scalar.LONG, value
    elif isinstance(value, float):
        msg.type, msg.r = pb.Scalar.FLOAT64, value
    else:
        msg.type = pb.Scalar.COMPLEX128
        msg.c.r, msg.c.i = value.real, value.imag
