"""Programs as lists, dicts and numbers, which JSON can hold.

Such a program is read without protobuf, whose import takes longer than reading it. The form is private to this release;
`ProgramDesc.serialize` writes what other programs can read.
"""

from __future__ import annotations

from typing import Any

from oprack.desc.op_desc import OpDesc
from oprack.desc.program_desc import BlockDesc, ProgramDesc, check_blocks
from oprack.desc.var_desc import VarDesc
from oprack.errors import CorruptModelError
from oprack.types import AttrType, VarType

_SCALARS = frozenset({AttrType.SCALAR, AttrType.SCALARS})
_FLAGS = ("persistable", "stop_gradient", "is_parameter", "need_check_feed")


def to_plain(program: ProgramDesc) -> dict[str, Any]:
    """Describe a program: all that a run needs, and the ops' `origin`, but no fields that the Desc classes lack."""
    return {
        "version": program.version,
        "op_versions": program.op_version_map,
        "op_sources": program.op_sources,
        "blocks": [
            {
                "parent": block.parent_idx,
                "forward": block.forward_block_idx,
                "vars": [_plain_var(var) for var in block.vars.values()],
                "ops": [_plain_op(op) for op in block.ops],
            }
            for block in program.blocks
        ],
    }


def _plain_var(var: VarDesc) -> list[Any]:
    dtype = None if var.dtype is None else int(var.dtype)
    flags = [flag for flag in _FLAGS if getattr(var, flag)]
    return [var.name, int(var.type), dtype, None if var.shape is None else list(var.shape), var.lod_level, flags]


def _plain_op(op: OpDesc) -> list[Any]:
    attrs = [[name, int(kind), _plain_value(op.attrs[name], kind)] for name, kind in op.attr_types.items()]
    return [op.type, op.inputs, op.outputs, attrs, op.is_target, op.origin]


def _plain_value(value: Any, kind: AttrType) -> Any:
    if kind not in _SCALARS:
        return value
    if isinstance(value, list):
        return [_plain_value(v, kind) for v in value]
    return [value.real, value.imag] if isinstance(value, complex) else value


def from_plain(data: Any) -> ProgramDesc:
    """The program that `to_plain` described; it is checked as one from a file is.

    Raises CorruptModelError for what is no such description, BlockCycleError for blocks that can't be walked.
    """

    program = ProgramDesc()
    try:
        program.version = _int(data["version"])
        program.op_version_map = {_text(name): _int(version) for name, version in data["op_versions"].items()}
        program.op_sources = {
            _text(t): (_text(distribution), _text(version)) for t, (distribution, version) in data["op_sources"].items()
        }
        program.blocks = [_block(program, idx, one) for idx, one in enumerate(_list(data["blocks"]))]
        if not program.blocks:
            raise ValueError("it has no block")
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise CorruptModelError(
            f"the description of a program is malformed: {type(error).__name__}: {error}; expected what to_plain gives"
        ) from error
    check_blocks(program)
    return program


def _block(program: ProgramDesc, idx: int, data: Any) -> BlockDesc:
    block = BlockDesc(program, idx, _int(data["parent"]), _int(data["forward"]))
    block.vars = {var.name: var for var in map(_var, _list(data["vars"]))}
    block.ops = [_op(*one) for one in _list(data["ops"])]
    return block


def _var(row: Any) -> VarDesc:
    name, kind, dtype, shape, lod_level, flags = row
    dims = None if shape is None else [_int(d) for d in _list(shape)]
    dtype = None if dtype is None else VarType(_int(dtype))
    # Flags become keyword arguments, so an unknown one must not get that far.
    if not set(_list(flags)).issubset(_FLAGS):
        raise ValueError(f"variable {name!r} has flags {flags}")
    return VarDesc(_text(name), VarType(_int(kind)), dtype, dims, _int(lod_level), **dict.fromkeys(flags, True))


def _op(type: Any, inputs: Any, outputs: Any, attrs: Any, is_target: Any, origin: Any) -> OpDesc:
    op = OpDesc(_text(type), _slots(inputs), _slots(outputs))
    for name, number, value in _list(attrs):
        kind = AttrType(_int(number))
        op.set_attr(_text(name), _scalar(value, kind) if kind in _SCALARS else value, kind)
    op.is_target, op.origin = bool(is_target), None if origin is None else _int(origin)
    op.edits = 0
    return op


def _scalar(value: Any, kind: AttrType) -> Any:
    if kind is AttrType.SCALARS:
        return [_scalar(v, AttrType.SCALAR) for v in _list(value)]
    return complex(*value) if isinstance(value, list) else value


def _slots(data: Any) -> dict[str, list[str]]:
    return {_text(slot): [_text(name) for name in _list(names)] for slot, names in data.items()}


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"got {type(value).__name__} {value!r:.80}; expected a list")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"got {type(value).__name__} {value!r:.80}; expected a str")
    return value


def _int(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"got {type(value).__name__} {value!r:.80}; expected an int")
    return value
