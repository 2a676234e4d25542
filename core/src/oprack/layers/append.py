"""append_op: appends an op to a block and infers the shapes and dtypes of its outputs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from oprack.desc import BlockDesc, OpDesc
from oprack.errors import InvalidArgumentError, InvalidLoDError
from oprack.layers.framework import VariableHandle, current_name_scope, current_op_role, default_main_program
from oprack.layers.user_line import errors_at_user_line, user_stack
from oprack.op.attrs import COMMON_ATTRS
from oprack.op.desc_rules import infer_op
from oprack.op.info import OpInfo
from oprack.op.proto import AttrProto, SlotProto
from oprack.packs.manager import default_manager
from oprack.program import Program
from oprack.types import EMPTY_VAR, AttrType


def append_op(
    type: str,
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    attrs: Mapping[str, Any] | None = None,
    *,
    program: Program | None = None,
    block: BlockDesc | None = None,
) -> OpDesc:
    """Append an op to a block and infer its outputs.

    The op gets the declared defaults of all other attributes, the current op_role and name scope, and the line of the
    user's program. An error names the op and the line, and leaves the block as it was.

    Args:
        type: The op type.
        inputs: Input slot -> Variable, name, a list of these, or None for an absent slot.
        outputs: Output slot -> the same.
        attrs: Python values, or Variables where the op allows it; None means the default.
        program: The program; default: the default main program.
        block: The block; default: the program's current one.

    Returns:
        The OpDesc.

    Raises:
        UnknownOpError: No pack brings the op.
        AttributeValueError: An attribute is missing or out of range.
        InvalidArgumentError: A slot or attribute is none of the op's, an input is missing, or shapes do not fit.
        NotFoundError: A variable does not exist.
    """
    program = program or default_main_program()
    block = block or program.current_block()
    with errors_at_user_line():
        info = default_manager().op_info(type)
        op = OpDesc(
            type,
            _names(type, "input", inputs, info.proto.inputs, block),
            _names(type, "output", outputs, info.proto.outputs, block),
        )
        _set_attrs(op, info, attrs or {})
        for slot, proto in info.proto.inputs.items():
            if not (slot in op.inputs or proto.dispensable or proto.duplicable):
                raise InvalidArgumentError(f"op {type}: input {slot} is missing; expected a variable: {proto.doc}")
            # Paddle writes absent slots as empty lists, and its ops that ask for a slot by name fail without one.
            op.inputs.setdefault(slot, [])
        try:
            infer_op(op, block, info, lod_is_known=True)
        except InvalidLoDError as error:
            raise InvalidLoDError(f"{error}{_lost_lod(op, block)}") from error
    _set_common_attrs(op)
    return block.append_op(op)


def _lost_lod(op: OpDesc, block: BlockDesc) -> str:
    """The op before, if there is one, that read sequences and wrote what has no LoD any more."""
    wanted, seen = list(op.input_arg_names()), set[str]()
    writers = {name: other for b in block.ancestors() for other in b.ops for name in other.output_arg_names()}
    while wanted:
        name = wanted.pop(0)
        writer, var = writers.get(name), block.find_var_recursive(name)
        if writer is None or name in seen or var is None or var.lod_level:
            continue
        seen.add(name)
        for read in writer.input_arg_names():
            before = block.find_var_recursive(read)
            if before is not None and before.lod_level:
                return lost_lod(writer.type, f"{read!r}")
            wanted.append(read)
    return ""


def lost_lod(op_type: str, what: str) -> str:
    """The end of a message about LoD that is missing: which op lost it.

    Args:
        op_type: The op.
        what: What had LoD when the op read it.
    """
    return f". Op {op_type} lost it: {what} had LoD, and its result has none"


def _names(
    op_type: str, side: str, arguments: Mapping[str, Any] | None, slots: Mapping[str, SlotProto], block: BlockDesc
) -> dict[str, list[str]]:
    """Names of variables by slot, for what was passed as the inputs, or outputs, of an op; `side` says which."""
    names: dict[str, list[str]] = {}
    for slot, value in (arguments or {}).items():
        if value is None:
            continue
        if slot not in slots:
            near = difflib.get_close_matches(slot, slots, 1) or list(slots)
            raise InvalidArgumentError(
                f"op {op_type} has no {side} {slot!r}; expected "
                + (", ".join(near) if near else f"none, since it has no {side}s")
            )
        values = list(value) if isinstance(value, list | tuple) else [value]
        if len(values) > 1 and not slots[slot].duplicable:
            raise InvalidArgumentError(f"op {op_type}: {side} {slot} takes one variable; got {len(values)}")
        names[slot] = [_name(op_type, f"{side} {slot}", v, block) for v in values]
    return names


def _name(op_type: str, role: str, value: Any, block: BlockDesc) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, VariableHandle):
        eager = hasattr(value, "__oprack_value__")
        raise InvalidArgumentError(
            f"op {op_type}: {role} is {value.describe() if eager else repr(value)} ({type(value).__name__}); expected "
            "a Variable, for example one made by oprack.layers.data, or by oprack.layers.assign"
            + ("(x.numpy()) of an eager tensor" if eager else " from an array")
        )
    if value.name != EMPTY_VAR and block.find_var_recursive(value.name) is not value.desc:
        raise InvalidArgumentError(
            f"op {op_type}: {role} is variable {value.name!r} of another program or of a block that is closed; make it "
            "and use it inside the same program_guard, and hand values out of blocks as outputs"
        )
    return value.name


def _set_attrs(op: OpDesc, info: OpInfo, arguments: Mapping[str, Any]) -> None:
    """Check and set the attributes that were passed, and the defaults of all others."""
    protos = info.proto.attrs
    from_variables: list[str] = []
    values: dict[str, Any] = {}
    for name, value in arguments.items():
        if value is None:
            continue
        _require_attr(op, name, protos)
        variables = _variables_of(value)
        if variables:
            from_variables.append(name)
            many = isinstance(value, list | tuple)
            op.set_attr(name, variables if many else variables[0], AttrType.VARS if many else AttrType.VAR)
            values[name] = op.attrs[name]
        elif name in protos and protos[name].type in (AttrType.BLOCK, AttrType.BLOCKS):
            op.set_attr(name, value, protos[name].type)
            values[name] = op.attrs[name]
        elif name in COMMON_ATTRS:
            op.set_attr(name, value, COMMON_ATTRS[name][0])
        else:
            values[name] = value
    checked = info.checker.check(values, from_variables) if info.checker is not None else values
    for name, value in checked.items():
        # Paddle expects defaults in a program as well, but not those of attributes that are details of a run.
        if name not in from_variables and (name in values or not protos[name].extra):
            op.set_attr(name, value, protos[name].type)


def _require_attr(op: OpDesc, name: str, protos: Mapping[str, AttrProto]) -> None:
    if name not in protos and name not in COMMON_ATTRS:
        near = difflib.get_close_matches(name, protos, 1) or list(protos)
        raise InvalidArgumentError(f"op {op.type} has no attribute {name!r}; expected {', '.join(near)}")


def _variables_of(value: Any) -> list[str]:
    """Names of the variables from which an attribute gets its value when the program runs; [] for an ordinary value."""
    parts = value if isinstance(value, list | tuple) else [value]
    return [v.name for v in parts] if any(isinstance(v, VariableHandle) for v in parts) else []


def _set_common_attrs(op: OpDesc) -> None:
    """Note role, name scope and the user's lines, unless the attributes say so already."""
    role, role_vars = current_op_role()
    common = {
        "op_role": int(role),
        "op_role_var": list(role_vars),
        "op_namescope": current_name_scope(),
        "op_callstack": user_stack(),
    }
    for name, value in common.items():
        if name not in op.attrs:
            op.set_attr(name, value, COMMON_ATTRS[name][0])
