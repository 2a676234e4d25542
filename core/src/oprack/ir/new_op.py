"""A new op of a graph: checked against its OpProto, and what is known of its outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from oprack.desc import BlockDesc, OpDesc, VarDesc
from oprack.errors import AttributeValueError, GraphError
from oprack.ir.fact_rules import infer
from oprack.ir.nodes import OpNode, VarNode
from oprack.op.attrs import COMMON_ATTRS
from oprack.op.conformity import misfit
from oprack.op.info import OpInfo
from oprack.packs.manager import PackManager
from oprack.types import EMPTY_VAR, AttrType

Nodes = Mapping[str, Sequence[VarNode]]


def misfit_in(
    block: BlockDesc,
    manager: PackManager,
    desc: OpDesc,
    inputs: Mapping[str, Sequence[str]],
    outputs: Mapping[str, Sequence[str]],
    foreign_attrs: Collection[str] | None = None,
    check_attrs: bool = True,
) -> str:
    """How an op contradicts its OpProto, or names what no block declares.

    Args:
        block: The block that the op is to stand in.
        manager: The packs.
        desc: The op; only its type and its attributes are looked at.
        inputs: Names of variables by input slot.
        outputs: Names of variables by output slot.
        foreign_attrs: Attributes that it may have beyond its OpProto; None means any.
        check_attrs: Whether the values of attributes are checked. False where facts of the op were worked out, which
            begins with that check.

    Returns:
        The end of a sentence that begins with the op, or "" when nothing is wrong.
    """
    for names in (*inputs.values(), *outputs.values()):
        for name in names:
            if name != EMPTY_VAR and block.find_var_recursive(name) is None:
                return f"names {name!r}, which no block declares"
    return misfit(
        manager.op_info(desc.type),
        inputs,
        outputs,
        desc.attrs,
        tensor_attrs=[name for name, kind in desc.attr_types.items() if kind in (AttrType.VAR, AttrType.VARS)],
        foreign_attrs=foreign_attrs,
        runs_itself=manager.operator_class(desc.type) is not None,
        check_attrs=check_attrs,
    )


def new_op(
    block: BlockDesc, manager: PackManager, type: str, inputs: Nodes, outputs: Nodes, attrs: Mapping[str, Any] | None
) -> OpNode:
    """An op node with its slots bound, that no variable knows of yet.

    Container, dtype and dims of outputs that no op wrote before are inferred.

    Args:
        block: The block that the op is to stand in.
        manager: The packs.
        type: The op type.
        inputs: Variables by input slot.
        outputs: Variables by output slot.
        attrs: Attributes that differ from the defaults.

    Raises:
        GraphError: The op contradicts its OpProto.
        OprackError: A rule of the op refuses the inputs.
    """
    info = manager.op_info(type)
    desc = OpDesc(type, _names(inputs), _names(outputs), attrs, _attr_types(info, attrs or {}))
    foreign = set(desc.attrs).difference(info.proto.attrs, COMMON_ATTRS)
    if foreign:  # what ops of the model carry beyond their OpProto may move with them
        foreign.intersection_update(name for o in block.ops if o.type == type for name in o.attrs)
    unknown = any(n.producer is None for nodes in outputs.values() for n in nodes)
    if why := misfit_in(block, manager, desc, desc.inputs, desc.outputs, foreign, check_attrs=not unknown):
        raise GraphError(f"new op {type} {why}")
    op = OpNode(desc, manager.operator_class(type) is not None)
    op.inputs = {slot: list(nodes) for slot, nodes in inputs.items()}
    op.outputs = {slot: list(nodes) for slot, nodes in outputs.items()}
    if unknown:
        _declare_outputs(op, info)
    return op


def _attr_types(info: OpInfo, attrs: Collection[str]) -> dict[str, AttrType]:
    """Types of attributes, as the OpProto has them; else as every op may carry them."""
    declared = info.proto.attrs
    common = {name: COMMON_ATTRS[name][0] for name in attrs if name in COMMON_ATTRS}
    return common | {name: declared[name].type for name in attrs if name in declared}


def _declare_outputs(op: OpNode, info: OpInfo) -> None:
    """Infer container, dtype and dims of the outputs that no op wrote before."""
    try:
        facts = infer(op.desc, facts_of(op.inputs), facts_of(op.outputs), info)  # checks the attributes first
    except AttributeValueError as error:
        raise GraphError(f"new op {op.type} has a wrong attribute: {error}") from error
    for slot, nodes in op.outputs.items():
        for node, fact in zip(nodes, facts[slot], strict=True):
            if node.producer is None:
                declare(node, fact)


def _names(slots: Nodes) -> dict[str, list[str]]:
    return {slot: [n.name for n in nodes] for slot, nodes in slots.items()}


def facts_of(slots: Nodes) -> dict[str, list[VarDesc]]:
    """What is known of the variables of slots."""
    return {slot: [n.fact for n in nodes] for slot, nodes in slots.items()}


def declare(node: VarNode, fact: VarDesc) -> None:
    """Let the program declare of a new variable what is known of it."""
    node.fact, desc = fact, node.desc
    if desc is not None:
        desc.type, desc.dtype, desc.shape, desc.lod_level = fact.type, fact.dtype, fact.shape, fact.lod_level
