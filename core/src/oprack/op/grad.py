"""Gradient makers: from a forward op to its gradient ops, symbolically, so that programs and eager calls share them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

from oprack.errors import DefinitionError
from oprack.op.facets import GradOpMaker
from oprack.op.proto import OpProto, slot_name
from oprack.python.records import dataclass

Role = Literal["input", "output", "output_grad", "input_grad", "temporary"]


@dataclass(frozen=True)
class SlotRef:
    """All variables of a slot of the forward op, or their gradients.

    Attributes:
        role: Which of a slot's variables are meant, or "temporary" for one that the gradient ops of one forward op
            share.
        slot: The slot; for a temporary, its label.
        index: Position of the only variable that is meant; None for all.
    """

    role: Role
    slot: str
    index: int | None = None


class ForwardOp:
    """What a grad maker sees of the op it differentiates.

    Args:
        proto: The op.
        attrs: Its attributes.
        inputs: The input slots that are present, which hold at least one variable. A mapping also says how many.
        outputs: The output slots that are present.
        accumulated: Input slots whose variable has a gradient from later ops already.
        held: Output slots whose variable had, before the op, a value whose gradient may be of interest.
    """

    def __init__(
        self,
        proto: OpProto,
        attrs: Mapping[str, Any],
        inputs: Collection[str],
        outputs: Collection[str],
        accumulated: Collection[str] = (),
        held: Collection[str] = (),
    ) -> None:
        self.type = proto.type
        self.proto = proto
        self.attrs = dict(attrs)
        self._inputs, self._outputs, self._accumulated, self._held = inputs, outputs, accumulated, held

    def has_input(self, slot: str) -> bool:
        """Whether an input slot is present."""
        return slot in self._inputs

    def has_output(self, slot: str) -> bool:
        """Whether an output slot is present."""
        return slot in self._outputs

    def input_count(self, slot: str) -> int:
        """Number of variables of an input slot."""
        if isinstance(self._inputs, Mapping):
            return int(self._inputs.get(slot, 0))
        return int(slot in self._inputs)

    def input(self, slot: str) -> SlotRef:
        """The value of an input slot."""
        return self._ref("input", slot, self.proto.inputs)

    def output(self, slot: str) -> SlotRef:
        """The value of an output slot."""
        return self._ref("output", slot, self.proto.outputs)

    def has_grad(self, slot: str) -> bool:
        """Whether input `slot` has got a gradient from later ops, which a gradient op may read and change."""
        return slot in self._accumulated

    def held_before(self, slot: str) -> bool:
        """Whether the variable of output `slot` may have had a value before whose gradient is of interest."""
        return slot in self._held

    def output_grad(self, slot: str) -> SlotRef:
        """Gradient that flows in: of output `slot`."""
        return self._ref("output_grad", slot, self.proto.outputs)

    def input_grad(self, slot: str, i: int | None = None) -> SlotRef:
        """Gradient to compute: of input `slot`, or of its variable i only.

        Args:
            slot: The input slot.
            i: Number of the variable; None: all of them.

        Returns:
            A symbol for it.
        """
        return self._ref("input_grad", slot, self.proto.inputs, i)

    def temporary(self, label: str) -> SlotRef:
        """A variable that only the gradient ops of this op share."""
        return SlotRef("temporary", label)

    def _ref(self, role: Role, slot: str, slots: Collection[str], index: int | None = None) -> SlotRef:
        if slot not in slots:
            kind = "input" if role.startswith("input") else "output"
            raise DefinitionError(
                f"grad maker of {self.type}: {role}({slot!r}), but its {kind}s are {', '.join(slots) or 'none'}"
            )
        return SlotRef(role, slot, index)


@dataclass(frozen=True)
class GradBlock:
    """How gradients enter and leave the gradient block of an op with a block.

    Autodiff writes the gradient block from the forward block. It reads and writes gradients as `<variable>@GRAD`, by
    the names that the forward block has, and the gradient op connects these with the gradients outside.

    Attributes:
        out_slot: Output slot of the forward op. The gradient block starts from the gradients of these variables.
        in_slots: Input slots of the forward op. The gradient block computes the gradients of these variables.
        carried: Pairs (written, read): what one round of the block writes as `written`, the next one reads as `read`.
            In a block that repeats, a variable of both `out_slot` and `in_slots` is carried as well.
        initial: Input slot of what the first round reads, with one variable for each pair of `carried`.
        repeats: Whether the block runs any number of times. A variable that it reads and replaces has, when the
            gradient block runs, the value from before its round, unless the gradient block itself restores that value.
        keeps: Set where the block may not run at all, in which case its outputs keep their values: the input slot to
            which such outputs are added, so that their gradients are computed like those of inputs.
        names: Attribute of the gradient op that lists the gradients passed to it, so that those that nobody wants are
            left out. Without it they are "@EMPTY@".
        shadows_outer: Whether the variables of `out_slot` and `in_slots` belong to the block (slices, say) although
            outer variables have the same names.
    """

    out_slot: str
    in_slots: Sequence[str]
    carried: Sequence[tuple[str, str]] = ()
    initial: str = ""
    repeats: bool = False
    keeps: str = ""
    names: str = ""
    shadows_outer: bool = False


class GradOp:
    """A gradient op: `GradOp("relu_grad", Out=fwd.output("Out"), Out_grad=fwd.output_grad("Out"), X_grad=...)`.

    Keywords are slots (`Out_grad` is `Out@GRAD`). Those bound to `fwd.input_grad(...)` are outputs, all others inputs,
    and a slot bound to None is absent.

    Args:
        type: The op type.
        attrs: Its attributes.
        slots: The same as the keywords, for slots that Python can't spell.
        inputs: Inputs bound to `fwd.input_grad(...)`, when `fwd.has_grad(...)`: the gradient so far. Where that is an
            output as well, it is changed in place instead of being added up.
        outputs: Outputs that are bound to something else than a gradient of an input. `fwd.input(...)` is a forward
            input that the op restores, so that gradients of earlier ops find the value that they need.
            `fwd.temporary(...)` is a variable of the gradient ops alone. `fwd.output_grad(...)`, when
            `fwd.held_before(...)` and the forward op changed only a part of what the variable held, is the gradient
            less that part, which flows on to earlier ops.
        same: For an input slot the output slot that has the same gradient, so that no op has to compute it.
        block: For an op with a block, how gradients enter and leave it.
        spelled: The keywords.

    Raises:
        DefinitionError: A slot is bound to something that no method of `fwd` gave.
    """

    def __init__(
        self,
        type: str,
        *,
        attrs: Mapping[str, Any] | None = None,
        slots: Mapping[str, SlotRef | None] | None = None,
        inputs: Mapping[str, SlotRef] | None = None,
        outputs: Mapping[str, SlotRef] | None = None,
        same: Mapping[str, str] | None = None,
        block: GradBlock | None = None,
        **spelled: SlotRef | None,
    ) -> None:
        self.type = type
        self.attrs = dict(attrs or {})
        self.same = dict(same or {})
        self.block = block
        self.inputs: dict[str, SlotRef] = dict(inputs or {})
        self.outputs: dict[str, SlotRef] = dict(outputs or {})
        named = dict(slots or {}) | {slot_name(k, grads=True): v for k, v in spelled.items()}
        for slot, ref in named.items():
            if ref is None:
                continue
            if not isinstance(ref, SlotRef):
                raise DefinitionError(
                    f"GradOp({type!r}): slot {slot} is {ref!r}; expected fwd.input(...), fwd.output(...), "
                    "fwd.output_grad(...) or fwd.input_grad(...)"
                )
            (self.outputs if ref.role == "input_grad" else self.inputs)[slot] = ref

    @property
    def restores(self) -> bool:
        """Whether it computes no gradient, but only brings back values that the forward op overwrote."""
        return bool(self.outputs) and all(ref.role == "input" for ref in self.outputs.values())

    def __repr__(self) -> str:
        return f"GradOp({self.type!r}, inputs={self.inputs}, outputs={self.outputs})"


class FunctionGradOpMaker(GradOpMaker):
    """A maker from a function `make_grad(fwd)` that returns one GradOp or a list."""

    def __init__(self, function: Callable[[ForwardOp], GradOp | Sequence[GradOp]]) -> None:
        self.function = function

    def __call__(self, fwd: ForwardOp) -> GradOp | Sequence[GradOp]:
        return self.function(fwd)


class DefaultGradOpMaker(GradOpMaker):
    """`<type>_grad` with every input, every output and every output's gradient; computes every input's gradient.

    Convenient, but it keeps all forward values alive until backward: write a maker that passes only what is needed.
    """

    def __call__(self, fwd: ForwardOp) -> GradOp:
        slots: dict[str, SlotRef | None] = {}
        for slot in fwd.proto.inputs:
            if fwd.has_input(slot):
                slots[slot] = fwd.input(slot)
                slots[slot + "@GRAD"] = fwd.input_grad(slot)
        for slot in fwd.proto.outputs:
            if fwd.has_output(slot):
                slots[slot] = fwd.output(slot)
                slots[slot + "@GRAD"] = fwd.output_grad(slot)
        return GradOp(fwd.type + "_grad", attrs=fwd.attrs, slots=slots)


class EmptyGradOpMaker(GradOpMaker):
    """Emits no gradient op: nothing flows back through this op, on purpose (shape, compare ops, random draws)."""

    def __call__(self, fwd: ForwardOp) -> Sequence[GradOp]:
        return ()


empty_grad = EmptyGradOpMaker()
"""`make_grad = empty_grad` in a definition: the op is a constant to its inputs, on purpose."""
