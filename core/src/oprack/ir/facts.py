"""What passes may rely on: kinds, dtypes and dims of variables that hold in every run.

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
from oprack.op.desc_infer import DescIdentityContext, DescInferShapeContext, DescInferVarTypeContext
from oprack.op.infer import Dims
from oprack.op.info import OpInfo
from oprack.packs.manager import PackManager
from oprack.tensor import LoDTensor, Scope
from oprack.types import EMPTY_VAR, FLOATS, HALF_FLOATS, VarType

_FLOATING = FLOATS | HALF_FLOATS
# Rounds in which what loops write has to settle; the dims of each name change at most once per dim.
_ROUNDS = 12
# More blocks are not looked into: what they write is unknown.
_MOST_BLOCKS = 64
# NumPy has no arrays of more in all of its versions, and few programs have.
_MOST_DIMS = 9

Named = Mapping[str, VarDesc]
SlotFacts = Mapping[str, Sequence[VarDesc]]
SlotInputs = Mapping[str, Sequence[VarDesc | None]]


class ProgramFacts:
    """Facts of a whole program, by block. scope: holds the parameters; None = they are as declared.

    entering: by block index, values that come from outside of the block. written: by (block index, number of the op),
    what the op writes. refused: ops whose rule raises, whatever the values are: running them says what is wrong.
    accepted: ops whose attributes and rules were found to be right.
    """

    def __init__(self, program: ProgramDesc, scope: Scope | None, manager: PackManager) -> None:
        self.program, self.scope, self.manager = program, scope, manager
        self.entering: dict[int, dict[str, VarDesc]] = {}
        self.written: dict[tuple[int, int], dict[str, VarDesc]] = {}
        self.refused: set[tuple[int, int]] = set()
        self.accepted: set[tuple[int, int]] = set()
        self._inner = len(program.blocks) <= _MOST_BLOCKS
        users = [i for block in program.blocks for op in block.ops for i in op.sub_blocks()] if self._inner else []
        self._walked = {i for i in users if users.count(i) == 1 and i != 0}
        # what several blocks write, or one run leaves to the next: one fact for all writes
        self._shared = dict[str, VarDesc | None].fromkeys(_shared_names(program))
        for left in reversed(range(_ROUNDS)):
            before = dict(self._shared)
            self.refused.clear()
            self.accepted.clear()
            self._share_what_runs_change(self._walk(program.blocks[0], []))
            if len(before) == len(self._shared) and all(_same(before[n], f) for n, f in self._shared.items()):
                break
            if left == 1:
                self._shared = {name: unknown(self._declared(name)) for name in self._shared}

    def _share_what_runs_change(self, last: Named) -> None:
        """A persistable variable that the program leaves with other dims than it finds has one fact for both."""
        for name, first in self.entering[0].items():
            if name in last and name not in self._shared and self._declared(name).persistable:
                both = join(first, last[name])
                if not _same(both, first):
                    self._shared[name] = both

    def _declared(self, name: str) -> VarDesc:
        found: VarDesc | None = next((b.vars[name] for b in self.program.blocks if name in b.vars), None)
        return found or VarDesc(name)

    def _walk(self, block: BlockDesc, outer: Sequence[Named]) -> Named:
        """Work out the facts of a block; returns those of the names that it writes, at its end."""
        known: dict[str, VarDesc] = {}
        entering = self.entering[block.idx] = {}

        def read(name: str) -> VarDesc:
            fact: VarDesc | None = self._shared.get(name)
            if fact is None:
                fact = next((facts[name] for facts in (known, *outer) if name in facts), None)
            if fact is None:
                fact = from_outside(name, block.find_var_recursive(name), self.scope)
            if name not in known:
                entering.setdefault(name, fact)
            return fact

        for number, op in enumerate(block.ops):
            inputs = {slot: [None if n == EMPTY_VAR else read(n) for n in names] for slot, names in op.inputs.items()}
            outputs = {
                slot: [VarDesc(n) if n == EMPTY_VAR else block.find_var_recursive(n) or VarDesc(n) for n in names]
                for slot, names in op.outputs.items()
            }
            results = None
            if op.type == "feed":
                results = {s: [from_outside(v.name, v, None) for v in found] for s, found in outputs.items()}
            for index in op.sub_blocks():
                if index in self._walked:
                    self._walk(self.program.blocks[index], (known, *outer))
            if results is None:
                runs_itself = self.manager.operator_class(op.type) is not None
                info = None if runs_itself else self.manager.op_info(op.type)
                try:
                    results = infer(op, inputs, outputs, info)
                    if info is not None:
                        self.accepted.add((block.idx, number))
                except Exception:  # a rule that fails in any way says nothing; running the op says what is wrong
                    self.refused.add((block.idx, number))
                    results = infer(op, inputs, outputs, None)
            written = self.written[block.idx, number] = {}
            for name, fact in _by_name(op.outputs, results):
                if name in self._shared:
                    before = self._shared[name]
                    # what an op with sub-blocks writes has been joined in there
                    inside = before is not None and any(True for _ in op.sub_blocks())
                    self._shared[name] = fact = before if inside and before else join(before, fact)
                known[name] = written[name] = fact
        return known


def _shared_names(program: ProgramDesc) -> Iterator[str]:
    """Names that a block writes and another one declares."""
    for block in program.blocks[1:]:
        for op in block.ops:
            yield from (n for n in op.output_arg_names() if n not in block.vars and n != EMPTY_VAR)


def _by_name(slots: Mapping[str, Sequence[str]], facts: SlotFacts) -> Iterator[tuple[str, VarDesc]]:
    for slot, names in slots.items():
        yield from ((n, fact) for n, fact in zip(names, facts[slot], strict=True) if n != EMPTY_VAR)


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
    if declared.need_check_feed or (declared.persistable and scope is None):
        fact.shape = declared.shape
    elif declared.shape:
        fact.shape = (-1,) * len(declared.shape)
    return fact


def unknown(declared: VarDesc) -> VarDesc:
    """The fact that says no more than a variable's kind."""
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


def _same(a: VarDesc | None, b: VarDesc | None) -> bool:
    if a is None or b is None:
        return a is b
    return (a.type, a.dtype, a.shape, a.lod_level) == (b.type, b.dtype, b.shape, b.lod_level)


# Rules of ops ---------------------------------------------------------------------------------------------------------
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
    """Facts of what an op writes, given those of what it reads. outputs: the variables. info: None = it has no rule.

    Raises what the op's rules raise.
    """
    results = {slot: [unknown(var) for var in found] for slot, found in outputs.items()}
    if info is None:
        return results
    given = [fact for facts in inputs.values() for fact in facts if fact is not None]
    slots = _Slots(op, inputs, results)
    types = DescInferVarTypeContext(slots.desc, slots.block, info)
    if all(fact.dtype is not None for fact in given):
        info.run_infer_var_type(types)
    unranked = [fact for fact in given if fact.shape is None]
    if info.infer_shape is not None and not unranked:
        info.infer_shape(FactShapeContext(slots.desc, slots.block, info, types.attrs))
    elif info.infer_shape is not None and len(unranked) == 1 and unranked[0].type == VarType.LOD_TENSOR:
        every = [fact for facts in results.values() for fact in facts]
        by_rank = partial(FactShapeContext, slots.desc, slots.block, info, types.attrs)
        _infer_by_rank(unranked[0], every, by_rank, info.infer_shape)
    mixed = len({fact.dtype for fact in given if fact.dtype_name() in _FLOATING}) > 1
    for fact in (fact for facts in results.values() for fact in facts):
        if mixed or fact.type != VarType.LOD_TENSOR:  # kernels promote; what arrays hold is not known
            fact.dtype = None
        if fact.type != VarType.LOD_TENSOR:
            fact.shape = None
    return results


def _infer_by_rank(
    x: VarDesc,
    results: Sequence[VarDesc],
    context: Callable[[], FactShapeContext],
    rule: Callable[[FactShapeContext], None],
) -> None:
    """Where an op accepts an input of unknown rank for one rank alone, it has that rank in every run that succeeds."""
    found: list[list[Dims | None]] = []
    for rank in range(_MOST_DIMS + 1):
        x.shape = (-1,) * rank
        for fact in results:
            fact.shape = None
        try:
            rule(context())
            found.append([fact.shape for fact in results])
        except Exception:  # rules meet ranks that no program has
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
        return False  # its attributes or slots are wrong, which running it says, or its dims are not known
