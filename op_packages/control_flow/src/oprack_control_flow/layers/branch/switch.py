"""The first branch whose condition is true."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable

from oprack_control_flow.layers._condition import check_condition
from oprack_control_flow.layers.branch.conditional_block import ConditionalBlock


class Switch:
    """The first case whose condition is true runs, else the default; for blocks that write outer variables.

        with layers.Switch() as switch:
            with switch.case(step < warmup):
                layers.assign(small, lr)
            with switch.default():
                layers.assign(large, lr)

    Ops conditional_block, logical_and, logical_not. Raises InvalidArgumentError.
    """

    def __init__(self, name: str | None = None) -> None:
        self._helper = LayerHelper("switch", name=name)
        self._none_before = None
        self._open = False

    def __enter__(self) -> Switch:
        self._open = True
        return self

    def __exit__(self, *error: object) -> None:
        self._open = False

    def case(self, condition: Variable):
        """A with block that runs when `condition` is true and no earlier one is."""
        self._check("case")
        check_condition(condition, "condition", "Switch.case")
        not_this = self._apply("logical_not", X=condition)
        if self._none_before is None:
            mine, self._none_before = condition, not_this
        else:
            mine = self._apply("logical_and", X=self._none_before, Y=condition)
            self._none_before = self._apply("logical_and", X=self._none_before, Y=not_this)
        return ConditionalBlock(mine).block()

    def default(self):
        """A with block that runs when no condition is true."""
        self._check("default")
        if self._none_before is None:
            raise InvalidArgumentError("Switch: default comes before any case; expected a case first")
        return ConditionalBlock(self._none_before).block()

    def _check(self, what: str) -> None:
        if not self._open:
            raise InvalidArgumentError(
                f"Switch: {what} outside of the switch; write `with Switch() as switch:` around it"
            )

    def _apply(self, op_type: str, **inputs: Variable) -> Variable:
        return self._helper.apply(op_type, inputs, stop_gradient=True)
