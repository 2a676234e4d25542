"""Layer of conditional_block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from oprack.layers import LayerHelper, Variable
from oprack.types import VarType

from oprack_control_flow.layers._blocks import outer_names, sub_block
from oprack_control_flow.layers._condition import check_condition


class ConditionalBlock:
    """A block that runs when a bool Variable of one element is true: `with ConditionalBlock(pred).block(): ...`.

    What it writes to outer variables stays; these keep their values when it does not run. Op conditional_block.
    """

    def __init__(self, condition: Variable, name: str | None = None) -> None:
        self.condition = check_condition(condition, "condition", "ConditionalBlock")
        self._helper = LayerHelper("conditional_block", name=name)

    @contextmanager
    def block(self) -> Iterator[ConditionalBlock]:
        """Layers go into the branch inside the with block."""
        with sub_block(self._helper.main_program) as block:
            yield self
        reads, writes = outer_names(block)
        self._helper.append_op(
            "conditional_block",
            {"Cond": self.condition, "Input": reads},
            {"Out": writes, "Scope": self._helper.create_variable(type=VarType.STEP_SCOPES)},
            {"sub_block": block, "is_scalar_condition": True},
        )
