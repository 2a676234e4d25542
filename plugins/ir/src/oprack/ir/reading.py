"""From ops of a block to nodes of a graph, with everything that they read and write besides their slots; new ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from oprack.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from oprack.desc.reach import inner_blocks, named_by_attributes
from oprack.errors import AttributeValueError, GraphError
from oprack.ir.facts import ProgramFacts, infer
from oprack.ir.nodes import OpNode, VarNode, Versions, used_by_blocks
from oprack.op.attrs import COMMON_ATTRS
from oprack.op.info import OpInfo, misfit
from oprack.packs.manager import PackManager
from oprack.tensor import Scope
from oprack.types import EMPTY_VAR, AttrType, VarType


class NewVars:
    """Adds variables to a program and its scope under names that neither has.

    Args:
        program: The program.
        block: The block that gets local variables; parameters belong to block 0.
        scope: Where values of parameters go; None where none can be added.

    Attributes:
        names: The names that were given out, whether or not the program still has them.
    """

    def __init__(self, program: ProgramDesc, block: BlockDesc, scope: Scope | None) -> None:
        self.names: set[str] = set()
        self._program, self._block, self._scope = program, block, scope
        # the last number by beginning of a name: without it, each new name would be searched for from 0 on
        self._numbers: dict[str, int] = {}

    def fresh_name(self, like: str) -> str:
        """A name that neither the program nor the scope has, made from `like`."""
        base = like.split(".ir_", 1)[0]
        while True:
            number = self._numbers[base] = self._numbers.get(base, -1) + 1
            name = f"{base}.ir_{number}"
            in_scope = self._scope is not None and name in self._scope
            if not in_scope and not any(name in b.vars for b in self._program.blocks):
                self.names.add(name)
                return name

    def parameter(self, value: Any, like: str) -> VarNode:
        """A parameter with a fresh name, set in the scope.

        Args:
            value: Array or LoDTensor.
            like: What the name is made from.

        Raises:
            GraphError: There is no scope.
        """
        if self._scope is None:
            raise GraphError(f"a parameter like {like!r} can't be added: the graph was made without a scope")
        name = self.fresh_name(like)
        self._scope.var(name).set(value)
        tensor = self._scope.get_var(name).get()
        desc = self._program.blocks[0].create_var(
            name, dtype=tensor.dtype, shape=tensor.shape, persistable=True, is_parameter=True, stop_gradient=True
        )
        return VarNode(name, desc, fact=desc.clone())

    def local(self, like: str) -> VarNode:
        """A local variable with a fresh name."""
        name = self.fresh_name(like)
        return VarNode(name, self._block.create_var(name))

    def erase(self, names: list[str]) -> None:
        """Free the values of those of the names that were added here."""
        if self._scope is not None:
            self._scope.erase([name for name in names if name in self.names])


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
        tensor_attrs=desc.var_attrs(),
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


class BlockReader:
    """Reads ops in order.

    Args:
        block: The block.
        manager: The packs.
        facts: What is known of the program's variables.
        versions: Receives the variables.
    """

    def __init__(self, block: BlockDesc, manager: PackManager, facts: ProgramFacts, versions: Versions) -> None:
        self._block, self._manager, self._facts, self._versions = block, manager, facts, versions

    def read(self, desc: OpDesc, number: int) -> OpNode:
        """The node of op `number` of the block."""
        op, place, versions = self._node(desc, number), (self._block.idx, number), self._versions
        facts = self._facts.written.get(place, {})
        named, written = self._used_inside(desc)
        # all reads come before the first write, which begins a new version of its name
        for slot, names in desc.inputs.items():
            op.inputs[slot] = [versions.read(n) for n in names]
        # A block looks outer variables up by name, so they keep their names; what it writes may keep an old value.
        for name in sorted(named | written):
            node = versions.read(name)
            node.pinned = True
            op.hidden_reads.append(node)
        op.hidden_reads += self._overwritten_in_part(op, desc)
        for node in op.reads():
            node._consumers[op] = None
        for slot, names in desc.outputs.items():
            op.outputs[slot] = [versions.write(n, op, facts.get(n)) for n in names]
        for name in sorted(written.difference(desc.output_arg_names())):
            op.hidden_writes.append(versions.write(name, op, facts.get(name)))
        for node in (*op.hidden_writes, *(n for n in op.writes() if n.name in written)):
            node.pinned = True
        return op

    def _used_inside(self, desc: OpDesc) -> tuple[set[str], set[str]]:
        """(variables of this block that the op's blocks or attributes read by name, those that its blocks write)."""
        inner = inner_blocks(desc, self._block.program)
        read, written = used_by_blocks(inner)
        named = {n for n in (*named_by_attributes(desc), *read) if self._is_outer(n, inner)}
        return named, {n for n in written if self._is_outer(n, inner)}

    def _overwritten_in_part(self, op: OpNode, desc: OpDesc) -> list[VarNode]:
        """Values of which something may be left after the op's writes, so that it counts as their reader."""
        latest = ((name, self._versions.latest(name)) for name in desc.output_arg_names())
        return [node for name, node in latest if node is not None and self._is_partial(op, name)]

    def _node(self, desc: OpDesc, number: int) -> OpNode:
        """The node without variables; opaque when the op contradicts its OpProto, or its rule refuses it."""
        place = (self._block.idx, number)
        op = OpNode(desc, self._manager.operator_class(desc.type) is not None)
        accepted = place in self._facts.accepted
        op.malformed = misfit_in(self._block, self._manager, desc, desc.inputs, desc.outputs, check_attrs=not accepted)
        op.opaque = op.opaque or place in self._facts.refused or bool(op.malformed)
        return op

    def _is_outer(self, name: str, inner: Sequence[BlockDesc]) -> bool:
        """Whether a name that sub-blocks or attributes use is a variable outside of these sub-blocks."""
        return not any(name in b.vars for b in inner) and self._block.find_var_recursive(name) is not None

    def _is_partial(self, op: OpNode, name: str) -> bool:
        """Whether a write may leave part of the old value.

        Arrays and sparse rows grow, and ops that run themselves may skip a write.
        """
        desc = self._block.find_var_recursive(name)
        return op.runs_itself or op.opaque or (desc is not None and desc.type != VarType.LOD_TENSOR)
