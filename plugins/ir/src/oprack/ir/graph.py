"""Graph: the ops of one block and the versions of its variables, with what depends on what; and back to a program."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.desc import BlockDesc, ProgramDesc
from oprack.device import host_array
from oprack.errors import GraphError
from oprack.ir.facts import ProgramFacts, infer, is_identity, meet
from oprack.ir.nodes import OpList, OpNode, VarNode, Versions, runnable_order, used_by_blocks
from oprack.ir.reading import BlockReader, NewVars, declare, facts_of, misfit_in, new_op
from oprack.packs.manager import PackManager, default_manager
from oprack.python.interruption import let_interruptions_pass
from oprack.runtime.feed_fetch import feed_columns, fetch_columns
from oprack.tensor import CPUPlace, LoDTensor, Place, Scope

if TYPE_CHECKING:
    from oprack.desc import OpDesc


class Graph:
    """A block of a copy of `program`, to be rewritten; `to_program()` gives the program back.

    Names are overwritten in place in programs; here each write of a name makes a VarNode of its own.

    Args:
        program: The program, which is copied.
        block: The block to rewrite.
        scope: Scope with the values of parameters. New ones are added under fresh names, and none that it has is
            changed.
        keep: Names that are read after a run, besides those of fetch ops.
        manager: The packs; default: those of the process.
        place: Where the program will run.
        facts: Facts of the program, or of one that had the same ops in this block; None works them out here.
        own: Whether the graph may change the program itself, instead of a copy.

    Raises:
        UnknownOpError: An op is of no installed pack.
    """

    def __init__(
        self,
        program: ProgramDesc,
        block: int = 0,
        *,
        scope: Scope | None = None,
        keep: Iterable[str] = (),
        manager: PackManager | None = None,
        place: Place | None = None,
        facts: ProgramFacts | None = None,
        own: bool = False,
    ) -> None:
        self.program = program if own else program.clone()
        self.block: BlockDesc = self.program.block(block)
        self.scope: Scope | None = scope
        self.manager = manager or default_manager()
        self.place = place or CPUPlace()
        self.keep = {*keep, *(name for _, name in (*fetch_columns(self.block), *feed_columns(self.block)))}
        self._ops = OpList()
        self._pool = self.manager.device_contexts
        self._elsewhere = used_by_blocks(b for b in self.program.blocks if b is not self.block)
        self._new = NewVars(self.program, self.block, scope)
        self._facts = facts or ProgramFacts(self.program, scope, self.manager)
        self._versions = Versions(self.block, self._facts.entering.get(self.block.idx, {}), self._elsewhere)
        reader = BlockReader(self.block, self.manager, self._facts, self._versions)
        for i, desc in enumerate(self.block.ops):
            # Random numbers are drawn by the op's place in the program as it was saved, which passes leave alone.
            desc.origin = i if desc.origin is None else desc.origin
            self._ops.append(reader.read(desc, i))

    @property
    def ops(self) -> list[OpNode]:
        """The ops in an order in which they can run, as a list of the caller's own."""
        return self._ops.in_order()

    # Changes ----------------------------------------------------------------------------------------------------------
    def fresh_name(self, like: str) -> str:
        """A name that neither the program nor the scope has, made from `like`."""
        return self._new.fresh_name(like)

    def new_parameter(self, value: Any, like: str) -> VarNode:
        """A parameter with a fresh name made from `like`, set in the scope.

        Args:
            value: Array or LoDTensor.
            like: What its name begins with.

        Returns:
            The variable.

        Raises:
            GraphError: The graph has no scope.
        """
        node = self._new.parameter(value, like)
        self._versions.add(node)
        return node

    def new_var(self, like: str) -> VarNode:
        """A local variable with a fresh name, for an output of a new op."""
        node = self._new.local(like)
        self._versions.add(node)
        return node

    def add_op(
        self,
        type: str,
        inputs: Mapping[str, Sequence[VarNode]],
        outputs: Mapping[str, Sequence[VarNode]],
        attrs: Mapping[str, Any] | None = None,
        before: OpNode | None = None,
    ) -> OpNode:
        """Add an op.

        Container, dtype and dims of outputs that no op wrote before are inferred.

        Args:
            type: The op type.
            inputs: Variables by input slot.
            outputs: Variables by output slot, which the op writes from now on.
            attrs: Attributes that differ from the defaults.
            before: The op that it comes before; None means last.

        Raises:
            GraphError: The op contradicts its OpProto.
            OprackError: A rule of the op refuses the inputs.
        """
        op = new_op(self.block, self.manager, type, inputs, outputs, attrs)
        for node in op.reads():
            node._consumers[op] = None
        for node in op.writes():
            node.producer = op
        self._ops.insert(op, before)
        return op

    def own_name(self, node: VarNode) -> None:
        """Give what an op writes a name of its own, declared as what is known of this very value.

        Raises:
            GraphError: No op writes it, or its name has to stay.
        """
        op, new = node.producer, self.new_var(node.name)
        if op is None or node.pinned:
            raise GraphError(f"{node!r} can't get another name: " + ("it is pinned" if op else "no op writes it"))
        fact = node.fact.clone()
        fact.name = new.name
        declare(new, fact)
        for nodes in op.outputs.values():
            nodes[:] = [new if n is node else n for n in nodes]
        new.producer = op
        for reader in node.consumers:
            self.replace_input(reader, node, new)
        self._versions.remove(node)

    def refine(self, op: OpNode) -> None:
        """Work out again what is known of an op's outputs, after more became known of its inputs or attributes."""
        if op.opaque or op.runs_itself:
            return
        try:
            facts = infer(op.desc, facts_of(op.inputs), facts_of(op.outputs), self.manager.op_info(op.type))
        except Exception:
            let_interruptions_pass()
            return  # running it says what is wrong
        for slot, nodes in op.outputs.items():
            for node, fact in zip(nodes, facts[slot], strict=True):
                node.fact = meet(node.fact, fact)

    def is_identity(self, op: OpNode) -> bool:
        """Whether an op gives back its first input in every run, as its pack declares it."""
        return is_identity(op.desc, facts_of(op.inputs), self.manager.op_info(op.type))

    def remove_op(self, op: OpNode) -> None:
        """Take an op out; outputs that it still produces must have no consumer.

        Raises:
            GraphError: An op still reads what it produces.
        """
        for node in op.writes():
            if node.producer is op:
                if node._consumers:
                    raise GraphError(f"{op!r} can't be removed: {node.consumers[0]!r} reads {node.name!r}")
                self._versions.remove(node)
        for node in op.reads():
            node._consumers.pop(op, None)
            if not node._consumers and node.producer is None and node in self._versions.of(node.name):
                self._versions.remove(node)
        self._ops.remove(op)

    def replace_input(self, op: OpNode, old: VarNode, new: VarNode) -> None:
        """Let an op read `new` wherever its slots read `old`."""
        for nodes in op.inputs.values():
            nodes[:] = [new if n is old else n for n in nodes]
        if old not in op.hidden_reads:
            old._consumers.pop(op, None)
        new._consumers[op] = None

    def replace_var(self, old: VarNode, new: VarNode) -> bool:
        """Let `new` stand for `old`, whose producer is about to go; False when names forbid it.

        Readers of `old` read `new`. When `old` is kept under its name, `new` gets that name instead.
        """
        if self.is_overwritten(new) or self.is_overwritten(old):
            return False
        if not self.is_kept(old):
            for op in old.consumers:
                self.replace_input(op, old, new)
            return True
        if not self._may_be_called(new, old):
            return False
        self._call(new, old)
        return True

    def _may_be_called(self, node: VarNode, kept: VarNode) -> bool:
        """Whether the producer of a value may write it under the name of another one, which it replaces."""
        producer = node.producer
        if producer is None or producer is kept.producer or producer.opaque or self.is_kept(node):
            return False
        return not kept.pinned and len(self._versions.of(kept.name)) <= 1

    def _call(self, node: VarNode, kept: VarNode) -> None:
        """Let the producer of `node` write `kept` in its place, and everything read that."""
        producer, former = node.producer, kept.producer
        if producer is not None:
            for nodes in producer.outputs.values():
                nodes[:] = [kept if n is node else n for n in nodes]
        if former is not None:
            for nodes in former.outputs.values():
                nodes[:] = [n for n in nodes if n is not kept]
        for op in node.consumers:
            if op is not former:  # it is about to go, and would write what it reads
                self.replace_input(op, node, kept)
        kept.producer, node.producer = producer, None
        if not node._consumers:
            self._versions.remove(node)

    # Back to a program ------------------------------------------------------------------------------------------------
    def sort(self) -> None:
        """Put the ops into an order in which they can run, as near to the present one as can be. Raises GraphError."""
        self._ops.reorder(runnable_order(self.ops, self._versions.lists()))

    def to_program(self) -> ProgramDesc:
        """The program with this block as it is now; it needs the graph no longer.

        Variables that no op names any more are dropped, unless they are to be kept.
        """
        self.sort()
        # The names of this moment: those that no op of the rewritten program has any more are dropped. Other blocks
        # are as they were.
        elsewhere, ops = set().union(*self._elsewhere), self.ops
        before = set().union(*used_by_blocks([self.block]))
        for op in ops:
            op.desc.inputs = {slot: [n.name for n in nodes] for slot, nodes in op.inputs.items()}
            op.desc.outputs = {slot: [n.name for n in nodes] for slot, nodes in op.outputs.items()}
            op.desc.edits += 1
        self.block.ops = [op.desc for op in ops]
        gone = (before | elsewhere | self._new.names) - elsewhere.union(*used_by_blocks([self.block])) - self.keep
        for name in gone:
            self.block.remove_var(name)
            self.program.blocks[0].remove_var(name)
        self._new.erase(list(gone))
        return self.program

    def discard(self) -> None:
        """Free the parameters that were added; the graph is of no use then."""
        self._new.erase(sorted(self._new.names))

    def take_apart(self) -> None:
        """Free the nodes at once, for which the collector would look through ten thousand objects."""
        self._ops.take_apart()

    def __len__(self) -> int:
        return len(self.ops)

    def __repr__(self) -> str:
        return f"<Graph of block {self.block.idx}: {len(self.ops)} ops>"

    # Questions about variables ----------------------------------------------------------------------------------------
    def vars(self) -> list[VarNode]:
        """Every version of every variable that an op reads or writes."""
        return [node for versions in self._versions.lists() for node in versions]

    def versions(self, name: str) -> list[VarNode]:
        """The versions of a variable, in order; version 0 is the value from outside of the block, if there is one."""
        return self._versions.of(name)

    def is_overwritten(self, node: VarNode, unchanged: Collection[OpNode] = ()) -> bool:
        """Whether the name is written again, so that this value can't be read at the end of the block.

        Args:
            unchanged: Ops that are known to write back what they read.
        """
        return self._versions.is_overwritten(node, unchanged)

    def is_kept(self, node: VarNode) -> bool:
        """Whether the value may be read by name, other than through an input slot in this block."""
        if node.pinned or self.is_overwritten(node):
            return node.pinned
        # The next round of a loop may read a variable of an outer block.
        outer = self.block.idx != 0 and node.name not in self.block.vars
        return outer or node.persistable or node.name in self.keep

    def is_external(self, node: VarNode) -> bool:
        """Whether the value comes from outside of the block."""
        return node.producer is None

    def constant(self, node: VarNode, unchanged: Collection[OpNode] = ()) -> LoDTensor | None:
        """The value of a variable that is constant: persistable, set in the scope, and written by no op of the program.

        Args:
            node: The variable.
            unchanged: Ops that are known to write back what they read.

        Returns:
            The value; None for a variable that is not constant.
        """
        if self.scope is None or node.producer is not None or not node.persistable or node.name in self._elsewhere[1]:
            return None
        if self.is_overwritten(node, unchanged):
            return None
        var = self.scope.find_var(node.name)
        return var.value if var is not None and isinstance(var.value, LoDTensor) else None

    def constant_array(self, node: VarNode, unchanged: Collection[OpNode] = ()) -> np.ndarray[Any, Any] | None:
        """As `constant`, in host memory."""
        value = self.constant(node, unchanged)
        return None if value is None else host_array(value, self._pool)

    def misfit(
        self,
        desc: OpDesc,
        inputs: Mapping[str, Sequence[str]],
        outputs: Mapping[str, Sequence[str]],
        foreign_attrs: Collection[str] | None = None,
        check_attrs: bool = True,
    ) -> str:
        """Why an op with these variables does not fit its OpProto, or ""; see oprack.ir.reading.misfit_in."""
        return misfit_in(self.block, self.manager, desc, inputs, outputs, foreign_attrs, check_attrs)
