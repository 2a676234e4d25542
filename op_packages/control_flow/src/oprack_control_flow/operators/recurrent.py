"""recurrent and recurrent_grad."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.kernel import ArrayModule
from oprack.runtime import OperatorBase, RunContext
from oprack.runtime.prepared import run_block, run_operators
from oprack.tensor import LoDTensor, Scope
from oprack.types import EMPTY_VAR, GRAD_SUFFIX

from oprack_control_flow.steps import (
    added,
    grad_names,
    is_read_by,
    own,
    reads_last,
    reference,
    release,
    scope_value,
    shared,
    zero_gradient,
    zeros_like,
)


def _place(tensor: LoDTensor, t: int) -> LoDTensor:
    """Place t along the first dim, on the same memory."""
    tensor.shared = True
    return LoDTensor(tensor.array[t, ...], place=tensor.place, shared=True)


class _Steps(OperatorBase):
    def length(self, scope: Scope) -> int:
        """Number of steps: the first dim of all inputs."""
        sizes = {n: self.get_input(scope, n).shape[0] for n in self.inputs.get("inputs", ())}
        if len(set(sizes.values())) != 1:
            raise InvalidArgumentError(f"op {self.type}: inputs have {sizes} steps; expected one and the same number")
        return int(next(iter(sizes.values())))

    def order(self, steps: int) -> range:
        """Places in the order of the forward run."""
        return range(steps - 1, -1, -1) if self.attrs["reverse"] else range(steps)


class RecurrentOp(_Steps):
    op_type = "recurrent"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        steps, outputs, states = self.length(scope), self.outputs.get("outputs", ()), self.attrs["states"]
        values = [self.get_input(scope, n) for n in self.inputs.get("initial_states", ())]
        parts: dict[str, dict[int, Any]] = {n: {} for n in outputs}
        kept: list[Scope] = []
        keeps_scopes = is_read_by(run, self.outputs.get("step_scopes", ()), "recurrent_grad")
        for t in self.order(steps):
            step = scope.new_scope()

            def link(local: Scope, t: int = t, values: list[Any] = values) -> None:
                self._link(scope, local, t, values)

            run_block(run, self.attrs["sub_block"], step, before=link)
            values = [self.get_input(step, n) for n in states]
            for name in outputs:
                parts[name][t] = self.get_input(step, name).array
            if keeps_scopes:
                kept.append(step)
            else:
                scope.delete_scope(step)
        for name in outputs:
            if steps:
                stacked = run.device.xp.stack([parts[name][t] for t in range(steps)])
                self.set_output(scope, name, LoDTensor(stacked, place=run.place))
        if "step_scopes" in self.outputs:
            self.set_output(scope, self.output("step_scopes"), kept)

    def _link(self, scope: Scope, local: Scope, t: int, values: Sequence[Any]) -> None:
        """Give step t its part of each input and the states of the step before, under the names of its block."""
        for name in self.inputs.get("inputs", ()):
            own(local, name, _place(self.get_input(scope, name), t))
        for name, value in zip(self.attrs["ex_states"], values, strict=True):
            own(local, name, reference(value))
        for name in (*self.attrs["states"], *self.outputs.get("outputs", ())):
            own(local, name, None)


class RecurrentGradOp(_Steps):
    op_type = "recurrent_grad"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        kept, xp = scope.get_var(self.input("step_scopes")).value or [], run.device.xp
        steps = self.length(scope)
        is_last = reads_last(run, self, self.inputs["step_scopes"])
        ex_states, states = self.attrs["ex_states"], self.attrs["states"]
        inputs = dict(self._wanted("inputs"))
        parameters = dict(self._wanted("parameters"))
        parts: dict[str, dict[int, Any]] = {n: {} for n in inputs}
        totals: dict[str, Any] = {}
        flow: list[Any] = [None] * len(states)
        local_names = grad_names([*inputs, *parameters, *ex_states, *states])
        for t, step in zip(reversed(self.order(steps)), reversed(kept), strict=True):

            def link(local: Scope, t: int = t) -> None:
                self._link(scope, local, t, local_names)

            grads = step.new_scope()
            self._run_block(run, grads, link, dict(zip(grad_names(states), flow, strict=True)))
            flow = [grads.var(n).value for n in grad_names(ex_states)]
            for name in inputs:
                value = grads.var(name + GRAD_SUFFIX).value
                parts[name][t] = zeros_like(step.var(name).value, xp) if value is None else value
            for name in parameters:
                totals[name] = added(totals.get(name), grads.var(name + GRAD_SUFFIX).value, xp)
            step.delete_scope(grads)
            if is_last:
                release([step])
        if is_last:
            kept.clear()
        for name, grad in inputs.items():
            stacked = run.device.xp.stack([parts[name][t].array for t in range(steps)])
            self.set_output(scope, grad, LoDTensor(stacked, place=run.place))
        self._hand_out(scope, totals, flow, xp)

    def _link(self, scope: Scope, local: Scope, t: int, names: Sequence[str]) -> None:
        """Give the gradient block of step t gradients of its own, and what arrived for the step's outputs."""
        for name in names:
            own(local, name, None)
        for name, outer in self._output_grads(scope):
            own(local, name + GRAD_SUFFIX, _place(outer, t))

    def _hand_out(self, scope: Scope, totals: dict[str, Any], flow: Sequence[Any], xp: ArrayModule) -> None:
        """Set gradients of parameters, summed over the steps, and of initial states, to which the first step leads."""
        first = dict(zip(self.inputs.get("initial_states", ()), flow, strict=True))
        for name, grad in (*self._wanted("parameters"), *self._wanted("initial_states")):
            value = totals.get(name) if name in totals else first.get(name)
            if value is None:
                value = zero_gradient(self.block, grad, self.get_input(scope, name), xp)
            self.set_output(scope, grad, value)

    def _wanted(self, slot: str) -> Iterator[tuple[str, str]]:
        """Variables of a slot whose gradient is asked for, with its name."""
        grads = self.outputs.get(slot + GRAD_SUFFIX, ())
        return ((n, g) for n, g in zip(self.inputs.get(slot, ()), grads, strict=False) if g != EMPTY_VAR)

    def _output_grads(self, scope: Scope) -> Iterator[tuple[str, LoDTensor]]:
        names = zip(self.inputs.get("outputs", ()), self.inputs.get("outputs@GRAD", ()), strict=False)
        return ((n, self.get_input(scope, g)) for n, g in names if g != EMPTY_VAR)

    def _run_block(self, run: RunContext, step: Scope, link: Callable[[Scope], None], flow: dict[str, Any]) -> None:
        """Run the gradient block; what flows in from the step after is added to what the block computes itself.

        flow: by name of a state's gradient. A block that reads such a gradient first finds it there; in one that
        writes it first, from the outputs of the step, it is added after the last write.
        """
        block = run.program.block(self.attrs["sub_block"])
        ends = {name: _last_write_before_reads(block.operators, name) for name in flow}
        block.create_variables(step)
        link(step)
        done = 0
        for name in sorted(flow, key=lambda n: ends[n]):
            run_operators(run, block.operators[done : ends[name]], step)
            done = max(done, ends[name])
            total = added(step.var(name).value, shared(flow[name]), run.device.xp)
            if total is None:  # nothing flows into the last step
                total = zeros_like(scope_value(step, name.removesuffix(GRAD_SUFFIX)), run.device.xp)
            own(step, name, total)
        run_operators(run, block.operators[done:], step)


def _last_write_before_reads(operators: Sequence[OperatorBase], name: str) -> int:
    """The number of operators after which a variable is complete; 0 when it is read before any of them writes it."""
    read = [i for i, op in enumerate(operators) if any(name in names for names in op.inputs.values())]
    written = [i for i, op in enumerate(operators) if any(name in names for names in op.outputs.values())]
    return written[-1] + 1 if written and (not read or written[0] < read[0]) else 0
