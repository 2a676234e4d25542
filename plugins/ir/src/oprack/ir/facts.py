"""What passes may rely on: containers, dtypes and dims of variables that hold in every run.

A program declares dims and a dtype for every variable, and nothing makes a run keep to them: other sizes may be fed,
parameter files may hold other shapes, names are reused. So facts start from what is known or checked, the parameters in
the scope and the feeds (whose dtype and rank are checked, and sizes where the program asks for it), and go through the
ops' own rules. A fact is a VarDesc; a shape of None, a dim of -1 and a dtype of None mean that runs may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import cast

from oprack.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from oprack.errors import PreconditionNotMetError
from oprack.op.desc_rules import DescIdentityContext, DescInferShapeContext, DescInferVarTypeContext
from oprack.op.infer import Dims
from oprack.op.info import OpInfo
from oprack.packs.manager import PackManager
from oprack.python.interruption import let_interruptions_pass
from oprack.tensor import LoDTensor, Scope
from oprack.types import EMPTY_VAR, FLOATS, HALF_FLOATS, VarType


def from_outside(name: str, declared: VarDesc | None, scope: Scope | None) -> VarDesc:
    """The fact of a value that no op has written: that of a parameter, or what is checked when it is fed."""
    if declared is None:
        return VarDesc(name)
    fact = unknown(declared)
    fact.dtype = declared.dtype
    if declared.type != VarType.LOD_TENSOR:
        return fact
    fact.lod_level = declared.lod_level
    if declared.persistable and scope is not None:
        var = scope.find_var(name)
        if var is not None and isinstance(var.value, LoDTensor):
            return VarDesc(name, dtype=var.value.dtype, shape=var.value.shape, lod_level=len(var.value.lod))
    # Sizes are compared with what is fed where the program asks for it, else the rank alone; without a scope parameters
    # are as declared.
    if declared.need_check_feed or (declared.persistable and scope is None):
        fact.shape = declared.shape
    elif declared.shape:
        fact.shape = (-1,) * len(declared.shape)
    return fact


def unknown(declared: VarDesc) -> VarDesc:
    """The fact that says no more than what sort of value a variable holds."""
    return VarDesc(declared.name, declared.type, lod_level=declared.lod_level)


def join(a: VarDesc | None, b: VarDesc) -> VarDesc:
    """What holds of both; b alone when a is None."""
    if a is None:
        return b
    fact = unknown(b)
    fact.lod_level = max(a.lod_level, b.lod_level)
    fact.dtype = a.dtype if a.dtype == b.dtype else None
    if a.type == b.type and a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
        fact.shape = tuple(m if m == n else -1 for m, n in zip(a.shape, b.shape, strict=True))
    return fact


def meet(a: VarDesc, b: VarDesc) -> VarDesc:
    """What is known by either of two facts of one value."""
    fact = a.clone()
    fact.dtype = b.dtype if a.dtype is None else a.dtype
    if a.shape is None:
        fact.shape = b.shape
    elif b.shape is not None and len(a.shape) == len(b.shape):
        fact.shape = tuple(max(m, n) for m, n in zip(a.shape, b.shape, strict=True))
    return fact


def same(a: VarDesc | None, b: VarDesc | None) -> bool:
    if a is None or b is None:
        return a is b
    return (a.type, a.dtype, a.shape, a.lod_level) == (b.type, b.dtype, b.shape, b.lod_level)


_FLOATING = FLOATS | HALF_FLOATS
# NumPy has no arrays of more in all of its versions, and few programs have.
_MOST_DIMS = 9

SlotFacts = Mapping[str, Sequence[VarDesc]]
SlotInputs = Mapping[str, Sequence[VarDesc | None]]


class _Slots:
    """A block for the contexts of rules that has nothing but an op's operands, each under a name of its own."""

    idx = 0

    def __init__(self, op: OpDesc, inputs: SlotInputs, outputs: SlotFacts):
        self._vars: dict[str, VarDesc] = {}
        self.desc = op.with_variables(
            {slot: [self._name(f) for f in facts] for slot, facts in inputs.items()},
            {slot: [self._name(f) for f in facts] for slot, facts in outputs.items()},
        )

    @property
    def block(self) -> BlockDesc:
        """This, for contexts, which ask a block for no more than its variables."""
        return cast(BlockDesc, self)

    def _name(self, fact: VarDesc | None) -> str:
        if fact is None or fact.name == EMPTY_VAR:
            return EMPTY_VAR
        name = f"{fact.name}:{len(self._vars)}"  # one name may stand for several values
        self._vars[name] = fact
        return name

    def find_var_recursive(self, name: str) -> VarDesc | None:
        return self._vars.get(name)


class FactShapeContext(DescInferShapeContext):
    """As when a program is built, but without what is likely alone."""

    guesses = False


def infer(
    op: OpDesc,
    inputs: SlotInputs,
    outputs: SlotFacts,
    info: OpInfo | None,
) -> dict[str, list[VarDesc]]:
    """Work out what holds of an op's outputs. Raises what the op's rules raise.

    Args:
        op: The op.
        inputs: Facts of its inputs by slot, None for an absent one.
        outputs: Its output variables by slot.
        info: The op's rules; None where it has none.

    Returns:
        Facts of the outputs by slot.
    """
    results = {slot: [unknown(var) for var in found] for slot, found in outputs.items()}
    if info is None:
        return results
    known = [fact for facts in inputs.values() for fact in facts if fact is not None]
    slots = _Slots(op, inputs, results)
    types = DescInferVarTypeContext(slots.desc, slots.block, info)
    if all(fact.dtype is not None for fact in known):
        info.run_infer_var_type(types)
    every = [fact for facts in results.values() for fact in facts]
    if info.infer_shape is not None:
        context = partial(FactShapeContext, slots.desc, slots.block, info, types.attrs)
        _infer_dims(known, every, context, info.infer_shape)
    _forget(known, every)
    return results


def _infer_dims(
    inputs: Sequence[VarDesc],
    results: Sequence[VarDesc],
    context: Callable[[], FactShapeContext],
    rule: Callable[[FactShapeContext], None],
) -> None:
    """Ask the shape rule, which needs every rank; of one input that has none, the rank may follow from the rule."""
    unranked = [fact for fact in inputs if fact.shape is None]
    if not unranked:
        rule(context())
    elif len(unranked) == 1 and unranked[0].type == VarType.LOD_TENSOR:
        _infer_by_rank(unranked[0], results, context, rule)


def _forget(inputs: Sequence[VarDesc], results: Sequence[VarDesc]) -> None:
    """Take back what rules say of dtypes and dims that kernels do not keep to."""
    mixed = len({fact.dtype for fact in inputs if fact.dtype_name() in _FLOATING}) > 1
    for fact in results:
        if mixed or fact.type != VarType.LOD_TENSOR:  # kernels promote; what arrays hold is not known
            fact.dtype = None
        if fact.type != VarType.LOD_TENSOR:
            fact.shape = None


def _infer_by_rank(
    x: VarDesc,
    results: Sequence[VarDesc],
    context: Callable[[], FactShapeContext],
    rule: Callable[[FactShapeContext], None],
) -> None:
    """Where an op accepts an input of unknown rank for one rank alone, it has that rank in every run that succeeds."""
    found: list[list[Dims | None]] = []
    # All sizes are unknown, so what the rule accepts or refuses is the rank.
    for rank in range(_MOST_DIMS + 1):
        x.shape = (-1,) * rank
        for fact in results:
            fact.shape = None
        try:
            rule(context())
            found.append([fact.shape for fact in results])
        except Exception:  # rules meet ranks that no program has
            let_interruptions_pass()
            continue
    x.shape = None
    for i, fact in enumerate(results):
        fact.shape = found[0][i] if len(found) == 1 else None


class FactIdentityContext(FactShapeContext, DescIdentityContext):
    """What a rule `identity(ctx)` is told: facts instead of what the program declares."""

    def dim(self, slot: str, i: int = 0) -> Dims:
        """Raises PreconditionNotMetError when the rank is not known."""
        if self._in(slot, i).shape is None:
            raise PreconditionNotMetError(f"op {self.op_type}: the rank of input {slot}[{i}] is not known")
        return super().dim(slot, i)


def is_identity(op: OpDesc, inputs: SlotInputs, info: OpInfo) -> bool:
    """Whether an op gives back its first input in every run, as its pack declares it (`identity`)."""
    slots = _Slots(op, inputs, {})
    try:
        return info.identity is not None and info.identity(
            FactIdentityContext(slots.desc, cast(BlockDesc, slots), info)
        )
    except Exception:
        let_interruptions_pass()
        return False  # its attributes or slots are wrong, which running it says, or its dims are not known


# Rounds in which what loops write has to settle; the dims of each name change at most once per dim.
_ROUNDS = 12
# More blocks are not looked into: what they write is unknown.
_MOST_BLOCKS = 64

Named = Mapping[str, VarDesc]


class ProgramFacts:
    """Facts of a whole program, by block.

    Args:
        scope: Scope that holds the parameters; None means that they are as declared.

    Attributes:
        entering: For each block index, facts of the values that come from outside of the block.
        written: For each (block index, number of the op), facts of what the op writes.
        refused: Ops whose rule raises whatever the values are; running them says what is wrong.
        accepted: Ops whose attributes and rules were found to be right.
    """

    def __init__(self, program: ProgramDesc, scope: Scope | None, manager: PackManager) -> None:
        self.program, self.scope, self.manager = program, scope, manager
        self.entering: dict[int, dict[str, VarDesc]] = {}
        self.written: dict[tuple[int, int], dict[str, VarDesc]] = {}
        self.refused: set[tuple[int, int]] = set()
        self.accepted: set[tuple[int, int]] = set()
        self._inner = len(program.blocks) <= _MOST_BLOCKS
        users = [i for block in program.blocks for op in block.ops for i in op.sub_blocks()] if self._inner else []
        # A block that several ops run has several sets of facts, so none is worked out.
        self._walked = {i for i in users if users.count(i) == 1 and i != 0}
        # what several blocks write, or one run leaves to the next: one fact for all writes
        self._shared = dict[str, VarDesc | None].fromkeys(_shared_names(program))
        # What a loop writes is read by its next round, so the walk is repeated until no fact changes.
        for left in reversed(range(_ROUNDS)):
            before = dict(self._shared)
            self.refused.clear()
            self.accepted.clear()
            self._share_what_runs_change(self._walk(program.blocks[0], []))
            if len(before) == len(self._shared) and all(same(before[n], f) for n, f in self._shared.items()):
                break
            # It does not settle: the last round says nothing of what is shared, which holds whatever happens.
            if left == 1:
                self._shared = {name: unknown(self._declared(name)) for name in self._shared}

    def _share_what_runs_change(self, last: Named) -> None:
        """A persistable variable that the program leaves with other dims than it finds has one fact for both."""
        for name, first in self.entering[0].items():
            if name in last and name not in self._shared and self._declared(name).persistable:
                both = join(first, last[name])
                if not same(both, first):
                    self._shared[name] = both

    def _declared(self, name: str) -> VarDesc:
        found: VarDesc | None = next((b.vars[name] for b in self.program.blocks if name in b.vars), None)
        return found or VarDesc(name)

    def _walk(self, block: BlockDesc, outer: Sequence[Named]) -> Named:
        """Work out the facts of a block; returns those of the names that it writes, at its end."""
        known: dict[str, VarDesc] = {}
        self.entering[block.idx] = {}
        scopes = (known, *outer)
        for number, op in enumerate(block.ops):
            inputs = {
                slot: [None if n == EMPTY_VAR else self._read(n, block, scopes) for n in names]
                for slot, names in op.inputs.items()
            }
            # the blocks of an op run before it is done, so what it writes comes after what they write
            for index in op.sub_blocks():
                if index in self._walked:
                    self._walk(self.program.blocks[index], scopes)
            results = self._results(block, number, op, inputs)
            written = self.written[block.idx, number] = {}
            for name, fact in _by_name(op.outputs, results):
                known[name] = written[name] = self._joined(op, name, fact)
        return known

    def _read(self, name: str, block: BlockDesc, scopes: Sequence[Named]) -> VarDesc:
        """What holds of a variable where an op of the block reads it; `scopes` has the block's own writes first."""
        fact: VarDesc | None = self._shared.get(name)
        if fact is None:
            fact = next((facts[name] for facts in scopes if name in facts), None)
        if fact is None:
            fact = from_outside(name, block.find_var_recursive(name), self.scope)
        if name not in scopes[0]:
            self.entering[block.idx].setdefault(name, fact)
        return fact

    def _results(self, block: BlockDesc, number: int, op: OpDesc, inputs: SlotInputs) -> SlotFacts:
        """What the op's rules say of its outputs; nothing where it has none, or they refuse the inputs."""
        outputs = {
            slot: [VarDesc(n) if n == EMPTY_VAR else block.find_var_recursive(n) or VarDesc(n) for n in names]
            for slot, names in op.outputs.items()
        }
        if op.type == "feed":  # what is fed is checked against what the program declares
            return {s: [from_outside(v.name, v, None) for v in found] for s, found in outputs.items()}
        runs_itself = self.manager.operator_class(op.type) is not None
        info = None if runs_itself else self.manager.op_info(op.type)
        try:
            results = infer(op, inputs, outputs, info)
        except Exception:  # a rule that fails in any way says nothing; running the op says what is wrong
            let_interruptions_pass()
            self.refused.add((block.idx, number))
            return infer(op, inputs, outputs, None)
        if info is not None:
            self.accepted.add((block.idx, number))
        return results

    def _joined(self, op: OpDesc, name: str, fact: VarDesc) -> VarDesc:
        """The fact of a write; of a variable with several writers, what holds after each of them."""
        if name not in self._shared:
            return fact
        before = self._shared[name]
        # what an op with sub-blocks writes has been joined in there
        inside = before is not None and any(True for _ in op.sub_blocks())
        joined = before if inside and before else join(before, fact)
        self._shared[name] = joined
        return joined


def _shared_names(program: ProgramDesc) -> Iterator[str]:
    """Names that a block writes and another one declares."""
    for block in program.blocks[1:]:
        for op in block.ops:
            yield from (n for n in op.output_arg_names() if n not in block.vars and n != EMPTY_VAR)


def _by_name(slots: Mapping[str, Sequence[str]], facts: SlotFacts) -> Iterator[tuple[str, VarDesc]]:
    for slot, names in slots.items():
        yield from ((n, fact) for n, fact in zip(names, facts[slot], strict=True) if n != EMPTY_VAR)
