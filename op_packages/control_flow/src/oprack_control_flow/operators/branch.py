"""Blocks that a condition runs or passes over, and what their results are joined by."""

from __future__ import annotations

from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.runtime import OperatorBase, RunContext
from oprack.runtime.prepared import run_block, run_steps
from oprack.tensor import LoDTensor, LoDTensorArray, Scope
from oprack.types import EMPTY_VAR, GRAD_SUFFIX, VarType

from oprack_control_flow.steps import (
    Value,
    changeable,
    grad_names,
    is_read_by,
    own,
    reads_last,
    reference,
    release,
    scalar,
    scope_value,
    shared,
    zero_gradient,
)


# Whether a branch runs.
class ConditionalOperator(OperatorBase):
    def runs(self, scope: Scope) -> bool:
        """Whether the condition holds."""
        if self.attrs["is_scalar_condition"]:
            return bool(scalar(self.type, "Cond", self.get_input(scope, self.input("Cond"))))
        values = [self.get_input(scope, n) for n in self.inputs.get("Input", ())]
        return all(v.array.size > 0 for v in values if isinstance(v, LoDTensor))


# What select_input and select_output share.
def passed_on(value: Value) -> Value:
    """The value for a second variable: same memory, but an array of its own."""
    if isinstance(value, LoDTensor):
        return reference(value)
    if isinstance(value, LoDTensorArray):
        return LoDTensorArray(None if t is None else reference(t) for t in value)
    return shared(value)


class SelectOperator(OperatorBase):
    def branch(self, scope: Scope, names: tuple[str, ...]) -> str:
        """The variable that Mask picks."""
        index = int(scalar(self.type, "Mask", self.get_input(scope, self.input("Mask"))))
        if not 0 <= index < len(names):
            raise InvalidArgumentError(f"op {self.type}: Mask is {index}; expected 0 <= Mask < {len(names)} branches")
        return names[index]

    def value(self, scope: Scope, name: str) -> Value:
        """Value of a variable; a tensor array that nothing was written to yet is an empty one."""
        var, declared = scope.find_var(name), self.block.find_var_recursive(name)
        if (var is None or var.value is None) and declared is not None and declared.type is VarType.LOD_TENSOR_ARRAY:
            return LoDTensorArray()
        return self.get_input(scope, name)


# Operator of conditional_block_infer.
class ConditionalBlockInferOp(ConditionalOperator):
    """The block's scope lives as long as its run."""

    op_type = "conditional_block_infer"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        if self.runs(scope):
            self.run_freely(scope, run)

    def run_freely(self, scope: Scope, run: RunContext) -> None:
        """Run the block in a scope that is dropped; its values die after their last use."""
        block = run.program.block(self.attrs["sub_block"])
        inner = scope.new_scope()
        try:
            block.create_variables(inner)
            run_steps(run, block, inner, ())
        finally:
            scope.delete_scope(inner)


# Operator of conditional_block.
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

    def _put(self, scope: Scope, run: RunContext, x: str, grad: str, value: Value | None) -> None:
        """Set the gradient of x to `value`, 0 for None; x may be missing if neither it nor the block was needed."""
        if value is None:
            value = zero_gradient(self.block, grad, scope_value(scope, x), run.device.xp)
        self.set_output(scope, grad, shared(value))


# Operator of select_input.
class SelectInputOp(SelectOperator):
    op_type = "select_input"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        value = self.value(scope, self.branch(scope, self.inputs["X"]))
        self.set_output(scope, self.output("Out"), passed_on(value))


# Operator of select_output.
class SelectOutputOp(SelectOperator):
    op_type = "select_output"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        value = self.value(scope, self.input("X"))
        self.set_output(scope, self.branch(scope, self.outputs["Out"]), passed_on(value))
