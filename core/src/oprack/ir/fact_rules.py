"""The rules of ops applied to facts: what holds of an op's outputs, given what holds of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from oprack.desc import BlockDesc, OpDesc, VarDesc
from oprack.errors import PreconditionNotMetError
from oprack.interruption import let_interruptions_pass
from oprack.ir.fact_values import unknown
from oprack.op.desc_infer import DescIdentityContext, DescInferShapeContext, DescInferVarTypeContext
from oprack.op.infer import Dims
from oprack.op.info import OpInfo
from oprack.types import EMPTY_VAR, FLOATS, HALF_FLOATS, VarType

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
