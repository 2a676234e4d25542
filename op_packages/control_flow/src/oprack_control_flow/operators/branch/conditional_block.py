"""Operator of conditional_block."""

from __future__ import annotations

from typing import Any

from oprack.runtime import RunContext
from oprack.runtime.run_block import run_block
from oprack.tensor import LoDTensor, LoDTensorArray, Scope, SelectedRows
from oprack.types import EMPTY_VAR, GRAD_SUFFIX

from oprack_control_flow.operators.branch._conditional import ConditionalOperator
from oprack_control_flow.operators.branch.conditional_block_infer import ConditionalBlockInferOp
from oprack_control_flow.steps import (
    changeable,
    grad_names,
    is_read_by,
    own,
    reads_last,
    release,
    scope_value,
    shared,
    zero_gradient,
)


class ConditionalBlockOp(ConditionalBlockInferOp):
    """The block's scope is kept when a conditional_block_grad will ask for it."""

    op_type = "conditional_block"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._keeps_scope = is_read_by(self.block, self.outputs.get("Scope", ()), ("conditional_block_grad",))

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        kept: list[Scope] = []
        if self.runs(scope):
            if self._keeps_scope:
                kept.append(scope.new_scope())
                run_block(run, self.attrs["sub_block"], kept[0])
            else:
                self.run_freely(scope, run)
        if "Scope" in self.outputs:
            self.set_output(scope, self.output("Scope"), kept)


class ConditionalBlockGradOp(ConditionalOperator):
    """Whether the block ran is told by its scope, since the condition may have changed."""

    op_type = "conditional_block_grad"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._is_last = reads_last(self.block, self.index, self.inputs["Scope"])

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        kept = scope.get_var(self.input("Scope")).value or []
        pairs = list(zip(self.inputs.get("Input", ()), self.outputs.get("Input@GRAD", ()), strict=True))
        wanted = [(x, g) for x, g in pairs if g != EMPTY_VAR]
        flowing = self._flowing(scope)
        if not kept:
            for x, grad in wanted:  # what the block would have replaced keeps its gradient
                self._put(scope, run, x, grad, flowing.get(x + GRAD_SUFFIX))
            return
        grads = kept[0].new_scope()

        def link(local: Scope) -> None:
            for x, _ in wanted:
                own(local, x + GRAD_SUFFIX, None)
            for name, value in flowing.items():
                own(local, name, changeable(value))

        run_block(run, self.attrs["sub_block"], grads, before=link)
        for x, grad in wanted:
            self._put(scope, run, x, grad, grads.var(x + GRAD_SUFFIX).value)
        kept[0].delete_scope(grads)
        if self._is_last:
            release(kept)
            kept.clear()

    def _flowing(self, scope: Scope) -> dict[str, Any]:
        """Gradients of Out by the names that the gradient block knows."""
        outs, grads = self.inputs.get("Out", ()), self.inputs.get("Out@GRAD", ())
        # Paddle leaves out those without a gradient; then the names are the same inside
        inside = grad_names(outs) if len(outs) == len(grads) else grads
        found = {i: scope_value(scope, g) for i, g in zip(inside, grads, strict=True) if g != EMPTY_VAR}
        return {name: value for name, value in found.items() if value is not None}

    def _put(
        self, scope: Scope, run: RunContext, x: str, grad: str, value: LoDTensor | LoDTensorArray | SelectedRows | None
    ) -> None:
        """Set the gradient of x. It is 0 unless given; x may be missing when neither it nor the block was needed."""
        if value is None:
            value = zero_gradient(self.block, grad, scope_value(scope, x), run.device.xp)
        self.set_output(scope, grad, shared(value))
