"""The forward op as a gradient maker sees it, and the symbols by which it names values and gradients."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from oprack.errors import DefinitionError
from oprack.op.proto import OpProto
from oprack.records import dataclass

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
        """Whether an input slot is present.

        Args:
            slot: The slot.

        Returns:
            Whether it has a variable.
        """
        return slot in self._inputs

    def has_output(self, slot: str) -> bool:
        """Whether an output slot is present.

        Args:
            slot: The slot.

        Returns:
            Whether it has a variable.
        """
        return slot in self._outputs

    def input_count(self, slot: str) -> int:
        """Number of variables of an input slot.

        Args:
            slot: The slot.

        Returns:
            The number.
        """
        if isinstance(self._inputs, Mapping):
            return int(self._inputs.get(slot, 0))
        return int(slot in self._inputs)

    def input(self, slot: str) -> SlotRef:
        """The value of an input slot.

        Args:
            slot: The slot.

        Returns:
            A symbol for it.
        """
        return self._ref("input", slot, self.proto.inputs)

    def output(self, slot: str) -> SlotRef:
        """The value of an output slot.

        Args:
            slot: The slot.

        Returns:
            A symbol for it.
        """
        return self._ref("output", slot, self.proto.outputs)

    def has_grad(self, slot: str) -> bool:
        """Whether input `slot` has got a gradient from later ops, which a gradient op may read and change.

        Args:
            slot: The input slot.

        Returns:
            Whether it has.
        """
        return slot in self._accumulated

    def held_before(self, slot: str) -> bool:
        """Whether the variable of output `slot` may have had a value before whose gradient is of interest.

        Args:
            slot: The output slot.

        Returns:
            Whether it may.
        """
        return slot in self._held

    def output_grad(self, slot: str) -> SlotRef:
        """Gradient that flows in: of output `slot`.

        Args:
            slot: The output slot.

        Returns:
            A symbol for it.
        """
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
        """A variable that only the gradient ops of this op share.

        Args:
            label: Tells temporaries of one op apart.

        Returns:
            A symbol for it.
        """
        return SlotRef("temporary", label)

    def _ref(self, role: Role, slot: str, slots: Collection[str], index: int | None = None) -> SlotRef:
        if slot not in slots:
            kind = "input" if role.startswith("input") else "output"
            raise DefinitionError(
                f"grad maker of {self.type}: {role}({slot!r}), but its {kind}s are {', '.join(slots) or 'none'}"
            )
        return SlotRef(role, slot, index)
