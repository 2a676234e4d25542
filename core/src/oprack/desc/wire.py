"""Programs as bytes, as protobuf writes them: to the Desc classes and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from google.protobuf.message import DecodeError, EncodeError, Message

from oprack.desc.attr_values import attr_type_of
from oprack.desc.op_desc import OpDesc, Slots
from oprack.desc.program_desc import BlockDesc, ProgramDesc
from oprack.desc.var_desc import VarDesc
from oprack.desc.wire_fields import (
    ATTR_FIELDS,
    ATTR_TYPES,
    LOD_LEVEL,
    OP_VERSION_MAP,
    REPEATED,
    TENSOR_FIELDS,
    VAR_FLAGS,
    VAR_TYPES,
    VERSION,
    VERSION_NUMBER,
    WITH_LOD,
    Extra,
    pb,
    restore_extra,
    save_extra,
    save_extra_deep,
)
from oprack.errors import AttributeValueError, CorruptModelError, InvalidArgumentError
from oprack.types import DTYPE_NAMES, NOT_ON_WIRE, AttrType, VarType


def read_program(data: bytes | bytearray | memoryview, program: ProgramDesc) -> None:
    """Fill an empty `program` from the bytes of a program file; block indices are not checked.

    Raises CorruptModelError.
    """
    msg = pb.ProgramDesc()
    try:
        # ParseFromString takes nothing but bytes.
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
    save_extra(msg, (), top)
    # Messages below are searched for unknown fields only if there are any: that takes longer than reading the program,
    # and almost no program has one.
    deep = _unknown_bytes(msg) > sum(map(len, top.values()))
    program._explicit = (
        VERSION * msg.HasField("version")
        | VERSION_NUMBER * msg.version.HasField("version")
        | OP_VERSION_MAP * msg.HasField("op_version_map")
    )
    program.version = msg.version.version
    program.op_version_map = {pair.op_name: pair.op_version.version for pair in msg.op_version_map.pair}
    program.op_sources = dict(row for source in msg.op_sources for row in _read_source(source))
    if deep:
        for name in ("version", "op_version_map"):
            if msg.HasField(name):
                save_extra_deep(getattr(msg, name), (name,), top)
    program._extra = top or None
    program.blocks = [_read_block(block, program, deep) for block in msg.blocks]
    _require_utf8_names(data, program)


# A model may be anybody's, and these end up in a command that its user is told.
_DISTRIBUTION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_RELEASE = re.compile(r"[0-9][A-Za-z0-9.+!]{0,40}")


def _read_source(msg: Any) -> Iterator[tuple[str, tuple[str, str]]]:
    distribution, version = (value.decode("utf-8", "replace") for value in (msg.distribution, msg.version))
    if _DISTRIBUTION.fullmatch(distribution):
        source = distribution, version if _RELEASE.fullmatch(version) else ""
        yield from ((op_type.decode("utf-8", "replace"), source) for op_type in msg.op_types)


def _write_sources(sources: Mapping[str, tuple[str, str]], field: Any) -> None:
    for source in sorted(set(sources.values())):
        msg = field.add()
        msg.distribution, msg.version = (text.encode() for text in source)
        msg.op_types.extend(sorted(t.encode() for t, s in sources.items() if s == source))


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


def _read_block(msg: Any, program: ProgramDesc, deep: bool) -> BlockDesc:
    block = BlockDesc(program, msg.idx, msg.parent_idx, msg.forward_block_idx)
    block._explicit = int(msg.HasField("forward_block_idx"))
    if deep:
        extra: Extra = {}
        save_extra(msg, (), extra)
        block._extra = extra or None
    block.vars = {var.name: _read_var(var, deep) for var in msg.vars}
    block.ops = [_read_op(op, deep) for op in msg.ops]
    return block


def _read_var(msg: Any, deep: bool) -> VarDesc:
    # Past __init__, whose checks and defaults would double the time of a program with thousands of variables.
    var = VarDesc.__new__(VarDesc)
    var.name = msg.name
    var._explicit = 0
    var._extra = None
    var.persistable = msg.persistable
    var.need_check_feed = msg.need_check_feed
    var.is_parameter = msg.is_parameter
    var.stop_gradient = msg.stop_gradient
    for flag, bit in VAR_FLAGS:
        if msg.HasField(flag):
            var._explicit |= bit
    kind = msg.type
    var.type = VAR_TYPES[kind.type]
    var.dtype = var.shape = None
    var.lod_level = 0
    field = TENSOR_FIELDS.get(var.type)
    modelled = 1  # fields of `kind` that are set and modelled: its type, and its tensor
    if field is not None and kind.HasField(field):
        modelled = 2
        tensor = getattr(kind, field)
        if var.type in WITH_LOD:
            var.lod_level = tensor.lod_level
            if tensor.HasField("lod_level"):
                var._explicit |= LOD_LEVEL
            tensor = tensor.tensor
        var.dtype = VAR_TYPES[tensor.data_type]
        var.shape = tuple(tensor.dims)
    if deep or len(msg.attrs) or len(kind.ListFields()) != modelled:
        extra: Extra = {}
        save_extra_deep(msg, (), extra)
        var._extra = extra or None
    return var


def _read_op(msg: Any, deep: bool) -> OpDesc:
    op = OpDesc.__new__(OpDesc)
    op.edits, op.origin = 0, None
    op.type = msg.type
    op.inputs = {slot.parameter: list(slot.arguments) for slot in msg.inputs}
    op.outputs = {slot.parameter: list(slot.arguments) for slot in msg.outputs}
    op.is_target = msg.is_target
    op._explicit = int(msg.HasField("is_target"))
    op.attrs = attrs = {}
    op.attr_types = types = {}
    has_extra = deep
    for attr in msg.attrs:
        name = attr.name
        types[name] = kind = ATTR_TYPES[attr.type]
        value = getattr(attr, ATTR_FIELDS[kind])
        reader = _READERS.get(kind)
        attrs[name] = value if reader is None else reader(value)
        # Name, type and value are modelled, and no other field.
        has_extra = has_extra or len(attr.ListFields()) > 3
    # A file may have an attribute twice: the last one counts, and both are written again.
    op._attr_order = None if len(attrs) == len(msg.attrs) else [attr.name for attr in msg.attrs]
    op._extra = None
    if has_extra:
        extra: Extra = {}
        save_extra_deep(msg, (), extra)
        op._extra = extra or None
    return op


def _text(value: bytes) -> str:
    # A text attribute may hold any bytes; they have to be written again as they were.
    return value.decode("utf-8", "surrogateescape")


def _read_scalar(msg: Any) -> bool | int | float | complex:
    if msg.type == pb.Scalar.BOOLEAN:
        return msg.b  # type: ignore[no-any-return]
    if msg.type == pb.Scalar.LONG:
        return msg.i  # type: ignore[no-any-return]
    if msg.type == pb.Scalar.FLOAT64:
        return msg.r  # type: ignore[no-any-return]
    return complex(msg.c.r, msg.c.i)


# Values of all other types are Python's own as protobuf gives them.
_READERS: dict[AttrType, Callable[[Any], Any]] = {
    **dict.fromkeys(REPEATED, list),
    AttrType.STRING: _text,
    AttrType.STRINGS: lambda values: [_text(v) for v in values],
    AttrType.SCALAR: _read_scalar,
    AttrType.SCALARS: lambda values: [_read_scalar(v) for v in values],
}


def _require_utf8_names(data: bytes | bytearray | memoryview, program: ProgramDesc) -> None:
    """Raise CorruptModelError for a name that is not UTF-8, which protobuf gives as `bytes`."""
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


def write_program(program: ProgramDesc) -> bytes:
    """The bytes of a program file.

    Raises:
        AttributeValueError: The value of an attribute fits no field; other values that do not fit raise
            InvalidArgumentError.
    """
    msg = pb.ProgramDesc()
    if program.version or program._explicit & VERSION_NUMBER:
        msg.version.version = program.version
    elif program._explicit & VERSION:  # the file had the message without a number in it
        msg.version.SetInParent()
    for name, version in program.op_version_map.items():
        pair = msg.op_version_map.pair.add()
        pair.op_name = name
        pair.op_version.version = version
    if program._explicit & OP_VERSION_MAP:
        msg.op_version_map.SetInParent()
    _write_sources(program.op_sources, msg.op_sources)
    for block in program.blocks:
        _write_block(block, msg.blocks.add())
    restore_extra(msg, program._extra)
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
    restore_extra(msg, block._extra)


def _write_var(var: VarDesc, msg: Any) -> None:
    msg.name = var.name
    explicit = var._explicit
    for flag, bit in VAR_FLAGS:
        value = getattr(var, flag)
        if value or explicit & bit:
            setattr(msg, flag, value)
    kind = msg.type
    kind.type = var.type
    field = TENSOR_FIELDS.get(var.type)
    if field is not None and (var.dtype is not None or var.shape is not None):
        tensor = getattr(kind, field)
        if var.type in WITH_LOD:
            if var.lod_level or explicit & LOD_LEVEL:
                tensor.lod_level = var.lod_level
            tensor = tensor.tensor
        if var.dtype in NOT_ON_WIRE:
            raise ValueError(f"its dtype is {DTYPE_NAMES[var.dtype]}, which Fluid's format lacks; cast it first")
        # A tensor on the wire has a dtype; Fluid writes float32 while it is not known yet.
        tensor.data_type = VarType.FP32 if var.dtype is None else var.dtype
        tensor.dims.extend(var.shape or ())
    restore_extra(msg, var._extra)


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
    for name in op.attrs if op._attr_order is None else _in_file_order(op):
        value = op.attrs[name]
        attr = msg.attrs.add()
        attr.name = name
        try:
            kind = op.attr_types.get(name)
            attr.type = kind = attr_type_of(value) if kind is None else kind
            if kind in REPEATED:
                getattr(attr, ATTR_FIELDS[kind]).extend(value)
            else:
                _write_value(attr, kind, value)
        except (TypeError, ValueError, AttributeError) as e:
            raise AttributeValueError(
                f"op {op.type}: attribute {name!r} is {value!r}, which can't be written"
                + ("" if kind is None else f" as {kind.name}")
                + f" ({e}); set it with set_attr"
            ) from None
    restore_extra(msg, op._extra)


def _in_file_order(op: OpDesc) -> list[str]:
    """Names of the attributes in the order of the file, repeated ones included, then those that were set since."""
    from_file = [name for name in op._attr_order or () if name in op.attrs]
    listed = set(from_file)
    return from_file + [name for name in op.attrs if name not in listed]


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
        setattr(attr, ATTR_FIELDS[kind], value)


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
