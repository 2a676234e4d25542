"""Updates: what an optimizer writes into a program, run on eager parameters and their gradients."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oprack.errors import InvalidArgumentError, NotFoundError, PreconditionNotMetError
from oprack.interpreter.devices import context, executor
from oprack.interpreter.kinds import CPU
from oprack.interpreter.tensor import Tensor
from oprack.layers import unique_name
from oprack.layers.variable import Parameter as ParameterVariable
from oprack.layers.variable import Variable
from oprack.program import ParameterInfo, Program
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, Place, Scope, SelectedRows, numpy_dtype
from oprack.types import GRAD_SUFFIX, VarType


class Updates:
    """The state of an optimizer for eager parameters, and its steps.

    optimizer: has `apply_gradients(pairs, startup_program)` and `get_lr()`. Each step runs the program that it appends
    for the parameters that have a gradient, so that clipping, decay and update rules are the same as in programs.
    Raises InvalidArgumentError for parameters without names, or with the same name.
    """

    def __init__(self, optimizer: Any, parameters: Sequence[Tensor]) -> None:
        self._optimizer = optimizer
        self.parameters = list(parameters)
        names = [p.name if isinstance(p, Tensor) else None for p in self.parameters]
        wrong = [
            repr(p) if n is None else n
            for p, n in zip(self.parameters, names, strict=True)
            if names.count(n) > 1 or n is None
        ]
        if wrong:
            raise InvalidArgumentError(
                f"{type(optimizer).__name__}: parameters {', '.join(wrong[:3])}; expected tensors, each with a name of "
                "its own, as module.parameters() gives them"
            )
        self.scope = Scope()
        self._programs: dict[Any, tuple[Program, Any, list[str]]] = {}
        self._executors: dict[Place, Executor] = {}
        self._restored: dict[str, Any] = {}

    def step(self) -> None:
        """Update every parameter that has a gradient. Raises PreconditionNotMetError when none has."""
        chosen = [p for p in self.parameters if p.requires_grad and p._grad is not None]
        if not chosen:
            raise PreconditionNotMetError(
                f"{type(self._optimizer).__name__}: no parameter has a gradient; call backward() before step()"
            )
        place = chosen[0].place
        key = (place, tuple([(p.name, p.dtype, p._grad.is_sparse) for p in chosen if p._grad is not None]))
        found = self._programs.get(key)
        if found is None:
            found = self._programs[key] = self._build(chosen, place)
        program, rate, _ = found
        runner = self._executor(place)
        prepared = runner.prepare(program.desc)
        scope = self.scope.new_scope()
        try:
            prepared.block(0).create_variables(scope)
            for p in chosen:
                assert p._grad is not None
                self.scope.var(str(p.name)).value = LoDTensor(p._value, place=place, shared=p._memory is not None)
                scope.var(f"{p.name}{GRAD_SUFFIX}").value = p._grad.value
            if rate is not None:
                self._set_rate(rate, place)
            runner.run_prepared(prepared, scope, keep=())
            for p in chosen:
                value = self.scope.get_var(str(p.name)).get()
                p._overwrite(value.array, None, f"{type(self._optimizer).__name__}.step")
        finally:
            self.scope.delete_scope(scope)

    def clear_grad(self) -> None:
        """Let go of the gradients of all parameters."""
        for p in self.parameters:
            p.clear_grad()

    def _executor(self, place: Place) -> Executor:
        found = self._executors.get(place)
        if found is None:
            found = self._executors[place] = executor(place)
        return found

    def _set_rate(self, rate: Variable, place: Place) -> None:
        value = np.full(rate.shape, self._optimizer.get_lr(), numpy_dtype(rate.dtype))
        known = self.scope.find_var(rate.name)
        if known is None or known.value is None or known.value.place != CPU or known.value.array != value:
            self.scope.var(rate.name).value = LoDTensor(value)

    def _build(self, chosen: Sequence[Tensor], place: Place) -> tuple[Program, Any, list[str]]:
        """The program that updates these parameters; state that is new is filled by its startup program."""
        program, startup = Program(), Program()
        block = program.global_block()
        pairs = []
        for p in chosen:
            assert p._grad is not None
            name, attr = str(p.name), getattr(p, "attr", None)
            desc = block.create_var(name, dtype=p.dtype, shape=p.shape, persistable=True, is_parameter=True)
            program.parameters[name] = (
                ParameterInfo()
                if attr is None
                else ParameterInfo(attr.learning_rate, attr.regularizer, attr.need_clip, attr.initializer)
            )
            kind = VarType.SELECTED_ROWS if p._grad.is_sparse else VarType.LOD_TENSOR
            grad = block.create_var(f"{name}{GRAD_SUFFIX}", type=kind, dtype=p._grad.dtype, shape=p.shape)
            pairs.append((ParameterVariable(program, block, desc), Variable(program, block, grad)))
        writer = copy.copy(self._optimizer)
        writer.forget_program()
        with unique_name.guard():
            writer.apply_gradients(pairs, startup)
        program.schedules.clear()
        state = [v.name for v in startup.global_block().vars.values()]
        new = [n for n in state if (var := self.scope.find_var(n)) is None or var.value is None]
        fresh = Scope()
        self._executor(place).run(startup, scope=fresh)
        for name in new:
            value = fresh.get_var(name).get()
            if name in self._restored:
                value = LoDTensor(self._restored.pop(name), place=CPU)
            self.scope.var(name).value = value
        return program, writer.rate_variable, state

    # State ------------------------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Arrays of the state by the names that programs give them, and "LR_Scheduler" when a schedule gives rates."""
        parameters = {p.name for p in self.parameters}
        found: dict[str, Any] = dict(self._restored)
        for name in self.scope.local_var_names():
            var = self.scope.find_var(name)
            if name not in parameters and var is not None and var.value is not None:
                value = var.value
                found[name] = value if isinstance(value, SelectedRows) else _host(value)
        schedule = self._optimizer.schedule
        if schedule is not None:
            found["LR_Scheduler"] = schedule.state_dict()
        return found

    def set_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state_dict; state that is not made yet takes its value when it is.

        Raises NotFoundError when the schedule's part is missing.
        """
        given = dict(state)
        schedule = self._optimizer.schedule
        if schedule is not None:
            if "LR_Scheduler" not in given:
                raise NotFoundError(f"{type(self._optimizer).__name__}: the state has no LR_Scheduler")
            schedule.set_state_dict(given.pop("LR_Scheduler"))
        for name, value in given.items():
            var = self.scope.find_var(name)
            array = value.numpy() if isinstance(value, Tensor) else value
            if var is None or var.value is None:
                self._restored[name] = array
            else:
                var.value = LoDTensor(array.copy())


def _host(value: LoDTensor) -> Any:
    return context(value.place).to_host(value.array).copy()
