"""while and while_grad."""

from __future__ import annotations

from typing import Any

from oprack.runtime import OperatorBase, RunContext
from oprack.tensor import LoDTensor, Scope
from oprack.types import EMPTY_VAR, GRAD_SUFFIX

from oprack_control_flow.steps import added, grad_names, is_read_by, own, scalar, shared, written_names, zeros_like


class WhileOp(OperatorBase):
    """Rounds share one scope unless a while_grad will ask for them."""

    op_type = "while"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        scopes = self.outputs.get("StepScopes", ())
        self._keeps_scopes = not self.attrs["is_test"] and is_read_by(self.block, scopes, ("while_grad",))
        body = self.block.program.blocks[self.attrs["sub_block"]]
        # An op that overwrites its own input (a counter's increment) is undone by its gradient block itself.
        in_place = {n for op in body.ops for n in set(op.input_arg_names()) & set(op.output_arg_names())}
        self._changing = [n for n in self.inputs.get("X", ()) if n in written_names(body) - in_place]

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        name = self.input("Condition")
        index = self.attrs["sub_block"]
        rounds: list[Scope] = []
        if self._keeps_scopes:
            while self._holds(scope, name):
                step = scope.new_scope()
                before = self._snapshot(scope)
                run.run_block(index, step)
                for changed, value in before.items():
                    own(step, changed, value)
                rounds.append(step)
        else:
            self._run_freely(scope, run, name)
        if "StepScopes" in self.outputs:
            self.set_output(scope, self.output("StepScopes"), rounds)

    def _run_freely(self, scope: Scope, run: RunContext, name: str) -> None:
        block = run.program.block(self.attrs["sub_block"])
        dying = block.dying(())
        step = scope.new_scope()
        try:
            block.create_variables(step)
            while self._holds(scope, name):
                run.run_operators(block.operators, step, dying)
                for local in step.local_var_names():
                    step.var(local).value = None
                step.drop_kids()
        finally:
            scope.delete_scope(step)

    def _holds(self, scope: Scope, name: str) -> bool:
        return bool(scalar(self.type, "Condition", self.get_input(scope, name)))

    def _snapshot(self, scope: Scope) -> dict[str, LoDTensor]:
        """Values that the round will replace, as its gradient will need them."""
        values = {n: (scope.find_var(n) or scope.var(n)).value for n in self._changing}
        return {n: shared(v) for n, v in values.items() if isinstance(v, LoDTensor)}


class WhileGradOp(OperatorBase):
    """Takes the scopes of the rounds apart from the last to the first."""

    op_type = "while_grad"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        outside = self.inputs.get("Out@GRAD", ())
        inside = self.attrs["original_output_grad"] or list(outside)
        flowing = {i: _value(scope, o) for i, o in zip(inside, outside, strict=True)}
        names = self.inputs.get("X", ())
        wanted = [(x, g) for x, g in zip(names, self.outputs.get("X@GRAD", ()), strict=True) if g != EMPTY_VAR]
        carried = {x + GRAD_SUFFIX for x in self.inputs.get("Out", ())} & {x + GRAD_SUFFIX for x, _ in wanted}
        totals: dict[str, Any] = {}
        rounds = scope.get_var(self.input("StepScopes")).value or []
        while rounds:
            step = rounds.pop()

            def link(local: Scope) -> None:
                for name in grad_names([x for x, _ in wanted]):
                    own(local, name, None)
                for name, value in flowing.items():
                    own(local, name, shared(value))

            run.run_block(self.attrs["sub_block"], step, before=link)
            for x, _ in wanted:
                name = x + GRAD_SUFFIX
                value = step.var(name).value
                if name in carried:
                    flowing[name] = value
                else:
                    totals[name] = added(totals.get(name), value)
            if step.parent is not None:
                step.parent.delete_scope(step)
        for x, grad in wanted:
            name = x + GRAD_SUFFIX
            value = flowing.get(name) if name in carried else totals.get(name)
            self.set_output(scope, grad, zeros_like(_value(scope, x)) if value is None else value)


def _value(scope: Scope, name: str) -> Any:
    var = scope.find_var(name)
    return var.value if var is not None else None
