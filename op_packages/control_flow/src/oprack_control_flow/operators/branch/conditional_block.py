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
    """Runs the block, and retains its scope if a conditional_block_grad reads it."""

    op_type = "conditional_block"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        kept: list[Scope] = []
        if self.runs(scope):
            if is_read_by(run, self.outputs.get("Scope", ()), "conditional_block_grad"):
                kept.append(scope.new_scope())
                run_block(run, self.attrs["sub_block"], kept[0])
            else:
                self.run_freely(scope, run)
        if "Scope" in self.outputs:
            self.set_output(scope, self.output("Scope"), kept)


class ConditionalBlockGradOp(ConditionalOperator):
    """Runs the gradient block if the block ran: if there is a scope, since the condition may have changed since."""

    op_type = "conditional_block_grad"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        kept = scope.get_var(self.input("Scope")).value or []
        pairs = list(zip(self.inputs.get("Input", ()), self.outputs.get("Input@GRAD", ()), strict=True))
        targets = [(x, g) for x, g in pairs if g != EMPTY_VAR]
        flowing = self._flowing(scope)
        if not kept:
            # Without the block, outputs keep their old values, so their gradients pass through.
            for x, grad in targets:
                self._put(scope, run, x, grad, flowing.get(x + GRAD_SUFFIX))
            return
        grads = kept[0].new_scope()

        def link(local: Scope) -> None:
            for x, _ in targets:
                own(local, x + GRAD_SUFFIX, None)
            for name, value in flowing.items():
                own(local, name, changeable(value))

        run_block(run, self.attrs["sub_block"], grads, before=link)
        for x, grad in targets:
            self._put(scope, run, x, grad, grads.var(x + GRAD_SUFFIX).value)
        kept[0].delete_scope(grads)
        if reads_last(run, self, self.inputs["Scope"]):
            release(kept)
            kept.clear()

    def _flowing(self, scope: Scope) -> dict[str, Any]:
        """The gradients of Out, by their names in the gradient block."""
        outs, grads = self.inputs.get("Out", ()), self.inputs.get("Out@GRAD", ())
        # Paddle's programs leave out outputs without a gradient; their names are the same inside and outside.
        inside = grad_names(outs) if len(outs) == len(grads) else grads
        gradients = {i: scope_value(scope, g) for i, g in zip(inside, grads, strict=True) if g != EMPTY_VAR}
        return {name: value for name, value in gradients.items() if value is not None}

    def _put(
        self, scope: Scope, run: RunContext, x: str, grad: str, value: LoDTensor | LoDTensorArray | SelectedRows | None
    ) -> None:
        """Set the gradient of x to `value`, 0 for None; x may be missing if neither it nor the block was needed."""
        if value is None:
            value = zero_gradient(self.block, grad, scope_value(scope, x), run.device.xp)
        self.set_output(scope, grad, shared(value))
