"""while and while_grad."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from oprack.kernel import ArrayModule
from oprack.runtime import OperatorBase, RunContext
from oprack.runtime.prepared import run_block, run_steps
from oprack.tensor import LoDTensor, Scope
from oprack.types import EMPTY_VAR, GRAD_SUFFIX

from oprack_control_flow.steps import (
    added,
    changeable,
    grad_names,
    is_read_by,
    own,
    reads_last,
    release,
    scalar,
    scope_value,
    shared,
    written_names,
    zero_gradient,
    zeros_like,
)


class WhileOp(OperatorBase):
    """Runs the block in one scope for all rounds, or in one per round if a while_grad reads these scopes."""

    op_type = "while"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        scopes = self.outputs.get("StepScopes", ())
        body = self.block.program.blocks[self.attrs["sub_block"]]
        # Not those that the gradient blocks write: such a block may, for example, count down a counter from its last
        # value.
        changed = written_names(body) - self._written_back(scopes)
        self._changing = [n for n in self.inputs.get("X", ()) if n in changed]

    def _written_back(self, scopes: Collection[str]) -> set[str]:
        """The variables that the gradient blocks of this loop write."""
        blocks = self.block.program.blocks
        grads = [op for b in blocks for op in b.ops if op.type == "while_grad"]
        own_grads = [op for op in grads if not set(scopes).isdisjoint(op.input("StepScopes"))]
        return {n for op in own_grads for index in op.sub_blocks() for n in written_names(blocks[index])}

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        name = self.input("Condition")
        index = self.attrs["sub_block"]
        rounds: list[Scope] = []
        if not self.attrs["is_test"] and is_read_by(run, self.outputs.get("StepScopes", ()), "while_grad"):
            while self._holds(scope, name):
                step = scope.new_scope()
                before = self._snapshot(scope)
                run_block(run, index, step)
                for changed, value in before.items():
                    own(step, changed, value)
                rounds.append(step)
        else:
            self._run_freely(scope, run, name)
        if "StepScopes" in self.outputs:
            self.set_output(scope, self.output("StepScopes"), rounds)

    def _run_freely(self, scope: Scope, run: RunContext, name: str) -> None:
        block = run.program.block(self.attrs["sub_block"])
        step = scope.new_scope()
        try:
            block.create_variables(step)
            while self._holds(scope, name):
                run_steps(run, block, step, ())
                for local in step.local_var_names():
                    step.var(local).value = None
                step.drop_kids()
        finally:
            scope.delete_scope(step)

    def _holds(self, scope: Scope, name: str) -> bool:
        return bool(scalar(self.type, "Condition", self.get_input(scope, name)))

    def _snapshot(self, scope: Scope) -> dict[str, LoDTensor]:
        """The values that the round will replace, which its gradient needs."""
        values = {n: (scope.find_var(n) or scope.var(n)).value for n in self._changing}
        return {n: shared(v) for n, v in values.items() if isinstance(v, LoDTensor)}


class WhileGradOp(OperatorBase):
    """Runs the gradient block for each round, from the last to the first, with the scope of the round."""

    op_type = "while_grad"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        grad_block = self.block.program.blocks[self.attrs["sub_block"]]
        self._written = written_names(grad_block)
        body = grad_block.forward_block
        in_place = {n for op in body.ops for n in op.input_arg_names() if n in op.output_arg_names()} if body else ()
        self._passed_on = set(grad_names(list(in_place)))
        pairs = zip(self.inputs.get("X", ()), self.outputs.get("X@GRAD", ()), strict=True)
        self._wanted = [(x, g) for x, g in pairs if g != EMPTY_VAR]
        self._carried = set(grad_names(self.inputs.get("Out", ())))

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        outside = self.inputs.get("Out@GRAD", ())
        is_last = reads_last(run, self, self.inputs["StepScopes"])
        inside = self.attrs["original_output_grad"] or list(outside)
        flowing = {i: changeable(scope_value(scope, o)) for i, o in zip(inside, outside, strict=True)}
        totals: dict[str, Any] = {}
        rounds = scope.get_var(self.input("StepScopes")).value or []
        for step in reversed(rounds):
            grads = step.new_scope()
            run_block(run, self.attrs["sub_block"], grads, before=lambda local: self._link(local, flowing))
            self._take(grads, flowing, totals, run.device.xp)
            step.delete_scope(grads)
            if is_last:
                release([step])
        if is_last:
            rounds.clear()
        for x, grad in self._wanted:
            name = x + GRAD_SUFFIX
            value = flowing.get(name) if name in self._carried else totals.get(name)
            if value is None:
                value = zero_gradient(self.block, grad, scope_value(scope, x), run.device.xp)
            self.set_output(scope, grad, value)

    def _take(self, grads: Scope, flowing: dict[str, Any], totals: dict[str, Any], xp: ArrayModule) -> None:
        """Collect the gradients of a round: into sums in `totals`, or in `flowing` for the preceding round."""
        for name in grad_names([x for x, _ in self._wanted]):
            if name not in self._carried:
                totals[name] = added(totals.get(name), grads.var(name).value, xp)
            else:
                flowing[name] = grads.var(name).value
        for name, value in flowing.items():
            if name in self._written:
                flowing[name] = grads.var(name).value
            # A round that overwrites a tensor without reading it cuts off the gradient of earlier rounds' values.
            elif name not in self._passed_on and isinstance(value, LoDTensor):
                flowing[name] = zeros_like(value, xp)

    def _link(self, step: Scope, flowing: Mapping[str, Any]) -> None:
        """Create the gradient variables of a round: those that the block computes, and those that flow in."""
        for name in grad_names([x for x, _ in self._wanted]):
            own(step, name, None)
        for name, value in flowing.items():
            own(step, name, shared(value))
