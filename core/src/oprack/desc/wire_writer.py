"""From the Desc classes to the bytes of a program."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import EncodeError

from oprack.desc.attr_value import attr_type_of
from oprack.desc.block_desc import BlockDesc
from oprack.desc.op_desc import OpDesc, Slots
from oprack.desc.program_desc import ProgramDesc
from oprack.desc.var_desc import VarDesc
from oprack.desc.wire_fields import ATTR_FIELDS, LOD_LEVEL, REPEATED, TENSOR_FIELDS, VAR_FLAGS, WITH_LOD, pb, restore
from oprack.errors import AttributeValueError, InvalidArgumentError
from oprack.types import DTYPE_NAMES, NOT_ON_WIRE, AttrType, VarType


def write_program(program: ProgramDesc) -> bytes:
    """The bytes of a program file.

    Raises:
        AttributeValueError: The value of an attribute fits no field; other values that do not fit raise
            InvalidArgumentError.
    """
    msg = pb.ProgramDesc()
    if program.version or program._explicit & 2:
        msg.version.version = program.version
    # The message was there without a number; bytes are kept even where they say nothing.
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
    restore(msg, program._extra)
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
    restore(msg, block._extra)


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
        # The wire has no tensor without a dtype; Fluid takes float32 for one that was not told yet
        tensor.data_type = VarType.FP32 if var.dtype is None else var.dtype
        tensor.dims.extend(var.shape or ())
    restore(msg, var._extra)


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
    restore(msg, op._extra)


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
