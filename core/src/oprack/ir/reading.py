"""Reads the ops of a block into nodes of a graph, with everything that they read and write besides their slots."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.desc import BlockDesc, OpDesc
from oprack.desc.reach import inner_blocks, named_by_attributes
from oprack.ir.facts import ProgramFacts
from oprack.ir.names import used_by_blocks
from oprack.ir.new_op import misfit_in
from oprack.ir.nodes import OpNode, VarNode
from oprack.ir.versions import Versions
from oprack.packs.manager import PackManager
from oprack.types import VarType


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
