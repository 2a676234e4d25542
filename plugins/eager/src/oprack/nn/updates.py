"""Updates: runs the program that an optimizer appends on eager parameters and their gradients."""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from oprack.eager_tensor import Tensor
from oprack.eager_tensor.devices import context, executor
from oprack.eager_tensor.meta import CPU
from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.interpreter.modes import current_mode
from oprack.layers import unique_name
from oprack.layers.variable import Variable
from oprack.nn.offload import StateFiles
from oprack.nn.optimizer_state import NOT_UPDATED, SCHEDULE, Entry, StateNames
from oprack.nn.parameter import Region
from oprack.nn.update_program import clip_factors, norm_clips, scaled, square_of, update_program
from oprack.python.implementation import HAS_GIL
from oprack.runtime import Executor
from oprack.runtime.prepared_function import PreparedFunction
from oprack.tensor import LoDTensor, Place, Scope, SelectedRows, numpy_dtype
from oprack.types import GRAD_SUFFIX


def _alone() -> int:
    """What getrefcount says of an array that only a tensor has; it depends on the interpreter."""
    probe = Tensor()
    probe._value = np.empty(1)
    return sys.getrefcount(probe._value)


_ALONE = _alone() if HAS_GIL else 0
"""0 without the GIL, where a reference count says nothing for sure."""


class StatePart(NamedTuple):
    """What a rank has of an array of the state: shape and dtype of the whole, and the regions that are here."""

    shape: tuple[int, ...]
    dtype: str
    regions: list[tuple[Region, np.ndarray]]


class GlobalGradients(Protocol):
    """What a step asks about parameters that lie on several ranks; `oprack.parallel` serves it."""

    def settle(self, parameters: Sequence[Tensor]) -> None:
        """Add up the gradients that ranks have in summands, in messages of many; collective."""

    def settled(self, tensor: Tensor) -> Any:
        """The gradient of a parameter, an array or SelectedRows, in the parameter's layout; collective."""

    def squares_of_all(self, parts: np.ndarray, layouts: Sequence[Any]) -> np.ndarray:
        """For each tensor, the sum over the ranks that have parts of it, of which this one's is given; collective."""


_global_gradients: list[GlobalGradients] = []


def register_global_gradients(served: GlobalGradients) -> None:
    """Let steps of parameters that lie on several ranks be served.

    Args:
        served: Has the three functions of GlobalGradients; a module will do.
    """
    _global_gradients[:] = [served]


class Updates:
    """The state of an optimizer for eager parameters, and its steps.

    Each step runs the program that the optimizer appends for the parameters that have a gradient, so that clipping,
    decay and update rules are the same as in programs.

    Args:
        optimizer: An object with `apply_gradients(pairs, startup_program)`, `get_lr()` and `accumulators()`.
        parameters: The parameters, each with a unique name.
        paths: Names of the parameters in the state; default: their positions.

    Raises:
        InvalidArgumentError: A parameter is no tensor, or has the name of another one.
    """

    def __init__(self, optimizer: Any, parameters: Sequence[Tensor], paths: Sequence[str] | None = None) -> None:
        self._optimizer, self._paths = optimizer, paths
        self.parameters = list(parameters)
        for p in self.parameters:
            if isinstance(p, Tensor) and p.name is None:  # as oprack.to_tensor makes it
                p.name = unique_name.generate("tensor.w")
        names = [p.name if isinstance(p, Tensor) else None for p in self.parameters]
        wrong = [
            p.describe() if isinstance(p, Tensor) else repr(p)
            for p, n in zip(self.parameters, names, strict=True)
            if n is None or names.count(n) > 1
        ]
        if wrong:
            raise InvalidArgumentError(
                f"{type(optimizer).__name__}: parameters {', '.join(wrong[:3])}; expected tensors, each once "
                "and with a name of its own, as net.parameters() gives them"
            )
        self.scope = Scope()
        self._functions: dict[Any, tuple[PreparedFunction, Any]] = {}
        self._executors: dict[tuple[Place, bool], Executor] = {}
        self._names = StateNames(optimizer, self.parameters, paths)
        self._variables: dict[str, str] = {}  # key in the state -> name of the variable
        self._files: StateFiles | None = None
        self._restored: dict[str, np.ndarray] = {}  # key -> loaded value, until the variable is created
        self._restored_parts: dict[str, np.ndarray] = {}  # the same where what is here was loaded, and not the whole

    def step(self) -> None:
        """Update every parameter that has a gradient.

        Raises:
            PreconditionNotMetError: No parameter has a gradient.
        """
        chosen = self._with_gradient()
        if not chosen:
            raise PreconditionNotMetError(
                f"{type(self._optimizer).__name__}: no parameter has a gradient; call backward() before step()"
            )
        layouts = [p._meta.layout for p in chosen if p._meta.layout is not None]
        if layouts:
            _global_gradients[0].settle(chosen)
        in_parts = any(not layout.is_broadcast for layout in layouts)
        self._update(chosen, [_gradient(p) for p in chosen], in_parts)

    def _with_gradient(self) -> list[Tensor]:
        return [p for p in self.parameters if p.requires_grad and p._grad is not None]

    def _update(self, chosen: Sequence[Tensor], gradients: Sequence[Any], in_parts: bool) -> None:
        """Run the program of the optimizer; where ranks have parts of the parameters, clip by norms before it."""
        in_parts = in_parts or self._files is not None
        if in_parts and norm_clips(self._optimizer):
            gradients = self._clipped(chosen, gradients)
        if self._files is None:
            self._run(chosen, gradients, in_parts)
            return
        for group in self._files.groups(chosen):
            some = [chosen[k] for k in group]
            self._run(some, [gradients[k] for k in group], in_parts)
            paths = {self._names.paths[self._position(p)] for p in some}
            self._files.put(
                self.scope, [name for key, name in self._variables.items() if key.rpartition(".")[0] in paths]
            )

    def offload(self, directory: str | os.PathLike[str], group_mb: float = 64.0) -> None:
        """Keep the state in files on a disk, mapped into memory, and update some parameters at a time.

        `adam.updates.offload("/scratch")`. Of each parameter the state is in the memory of the process only while it is
        updated. Clips by norms are taken over all gradients before. The files have no names and end with the process;
        checkpoints are written as ever.

        Args:
            directory: Where the files lie.
            group_mb: The size in MiB of the parameters that are updated at a time.

        Raises:
            InvalidArgumentError: group_mb is not above 0.
            NotADirectoryError: There is no such directory.
        """
        self._files = StateFiles(directory, group_mb)
        self._functions = {}  # their programs update all parameters at once
        self._files.put(self.scope, list(self._variables.values()))

    def _position(self, parameter: Tensor) -> int:
        return next(k for k, p in enumerate(self.parameters) if p is parameter)

    def _run(self, chosen: Sequence[Tensor], gradients: Sequence[Any], in_parts: bool) -> None:
        if not chosen:
            return
        place = chosen[0].place
        sparse = [isinstance(g, SelectedRows) for g in gradients]
        forms = tuple([(p.name, p.dtype, rows) for p, rows in zip(chosen, sparse, strict=True)])
        key = (place, current_mode().deterministic, in_parts, forms)
        cached = self._functions.get(key)
        if cached is None:
            cached = self._functions[key] = self._build(chosen, sparse, place, in_parts)
        function, rate = cached
        given = list[LoDTensor]()
        try:
            for p in chosen:
                shared = self._is_shared(p)  # before this function has the array, too
                value = LoDTensor(p._value, place=place)
                value.shared = shared
                self.scope.var(str(p.name)).value = value
                given.append(value)
            if rate is not None:
                self._set_rate(rate, place)
            try:
                function(gradients, scope=self.scope)
                self._take(chosen)
            except BaseException:  # of a step that failed or was interrupted, too: what ops did is done
                self._take(chosen)
                raise
        finally:
            # The tensors alone have their memory, and not what a plan remembers of its last run.
            for value in given:
                value.array = None

    def _is_shared(self, p: Tensor) -> bool | None:
        """Whether others see a parameter's memory, which else takes the new value; None: also that of a view does."""
        return p._memory is not None and sys.getrefcount(p._value) > _ALONE

    def _take(self, parameters: Sequence[Tensor]) -> None:
        """Give the tensors what a step left in their variables."""
        for p in parameters:
            var = self.scope.get_var(str(p.name))
            if var.value is not None:
                p._overwrite(var.get().array, None, f"{type(self._optimizer).__name__}.step")
                var.value = None

    def _clipped(self, chosen: Sequence[Tensor], gradients: Sequence[Any]) -> list[Any]:
        """Gradients of parts, clipped by the norms of the whole gradients; collective."""
        squares = np.zeros(len(self.parameters))
        at = [self._position(p) for p in chosen]
        for k, gradient in zip(at, gradients, strict=True):
            squares[k] = square_of(gradient)
        factors = clip_factors(self._optimizer, self.parameters, self._summed(squares, set(at)))
        return [scaled(gradient, float(factors[k])) for k, gradient in zip(at, gradients, strict=True)]

    def _summed(self, squares: np.ndarray, chosen: set[int]) -> np.ndarray:
        """Sums over all parts of parameters, by position; those of this rank are given."""
        at = sorted(chosen)
        if _global_gradients:
            squares[at] = _global_gradients[0].squares_of_all(
                squares[at], [self.parameters[k]._meta.layout for k in at]
            )
        return squares

    def clear_grad(self) -> None:
        """Clear the gradients of all parameters."""
        for p in self.parameters:
            p.clear_grad()

    def _executor(self, place: Place) -> Executor:
        key = place, current_mode().deterministic
        cached = self._executors.get(key)
        if cached is None:
            cached = self._executors[key] = executor(place, deterministic=key[1])
        return cached

    def _set_rate(self, rate: Variable, place: Place) -> None:
        value = np.full(rate.shape, self._optimizer.get_lr(), numpy_dtype(rate.dtype))
        current = self.scope.find_var(rate.name)
        if current is None or current.value is None or current.value.place != CPU or current.value.array != value:
            self.scope.var(rate.name).value = LoDTensor(value)

    def _build(
        self, chosen: Sequence[Tensor], sparse: Sequence[bool], place: Place, in_parts: bool
    ) -> tuple[PreparedFunction, Any]:
        """Build the program that updates these parameters, and run its startup program for state that is new.

        Returns:
            (the program as a function of their gradients, the variable of the learning rate).
        """
        shapes = [p._value.shape for p in chosen]  # of this rank's parts, for global ones
        program, startup, writer = update_program(self._optimizer, chosen, shapes, sparse, in_parts)
        program.schedules.clear()
        keys, positions = {}, {}
        for e in self._names.entries().values():
            p = self.parameters[e.position]
            if any(p is c for c in chosen):
                keys[writer.state(p.name, e.accumulator).name] = e.key
                positions[e.key] = e.position
        self._variables |= {key: name for name, key in keys.items()}
        fresh = Scope()
        self._executor(place).run(startup, scope=fresh)
        for name in startup.global_block().vars:
            first = fresh.get_var(name).get()
            restored = self._restored.pop(keys.get(name, ""), None)
            part = self._restored_parts.pop(keys.get(name, ""), None)
            var = self.scope.var(name)
            if part is not None:
                var.value = LoDTensor(part, place=CPU)
            elif restored is not None:
                var.value = LoDTensor(self._part(positions[keys[name]], restored), place=CPU)
            elif var.value is None:
                var.value = first
            elif var.value.array.dtype != first.array.dtype:  # the parameter has another dtype than before
                var.value = LoDTensor(host_copy(var.value).astype(first.array.dtype))
        if self._files is not None:
            self._files.put(self.scope, list(keys))
        runner, inputs = self._executor(place), [f"{p.name}{GRAD_SUFFIX}" for p in chosen]
        return PreparedFunction(runner, runner.prepare(program.desc), inputs, ()), writer.rate_variable

    # State ------------------------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Copies of the state: arrays as `<parameter>.<accumulator>`, the state of a learning rate schedule as
        "LR_Scheduler", and as "not_updated" the parameters that have no state because no step has changed them yet.
        """
        state: dict[str, Any] = self._arrays()
        updated = {key.rpartition(".")[0] for key in state}
        stateful = self._names.entries().values()
        not_updated = list(dict.fromkeys(e.key.rpartition(".")[0] for e in stateful))
        not_updated = [path for path in not_updated if path not in updated]
        if not_updated:
            state[NOT_UPDATED] = not_updated
        schedule = self._optimizer.schedule
        if schedule is not None:
            state[SCHEDULE] = schedule.state_dict()
        return state

    def _arrays(self) -> dict[str, Any]:
        arrays = {}
        for key in self._names.entries():
            var = self.scope.find_var(self._variables.get(key, ""))
            if var is not None and var.value is not None:
                arrays[key] = self._whole(self._names.entries()[key].position, host_copy(var.value))
            elif key in self._restored_parts:
                arrays[key] = self._whole(self._names.entries()[key].position, self._restored_parts[key].copy())
            elif key in self._restored:
                arrays[key] = self._restored[key].copy()
        return arrays

    # Its parts on several ranks ---------------------------------------------------------------------------------------
    def state_parts(self) -> dict[str, StatePart]:
        """What this rank has of the arrays of the state, by key, on the memory of the state where that is the host's.

        Returns:
            The arrays that a step has changed or that were loaded; those of other parameters are missing.
        """
        found = {}
        for key, e in self._names.entries().items():
            var = self.scope.find_var(self._variables.get(key, ""))
            if var is not None and var.value is not None:
                value = context(var.value.place).to_host(var.value.array)
            elif key in self._restored_parts:
                value = self._restored_parts[key]
            elif key in self._restored:
                value = self._part(e.position, self._restored[key])
            else:
                continue
            regions = self._regions(e)
            shapes = [[stop - start for start, stop in region] for region in regions]
            ends = itertools.accumulate(map(math.prod, shapes), initial=0)
            spans = zip(shapes, itertools.pairwise(ends), strict=True)
            arrays = [value.reshape(-1)[a:b].reshape(shape) for shape, (a, b) in spans]
            found[key] = StatePart(e.shape, e.dtype, list(zip(regions, arrays, strict=True)))
        return found

    def set_state_parts(
        self,
        forms: Mapping[str, tuple[Sequence[int], str]],
        read: Callable[[str, Region], np.ndarray],
        schedule: Any = None,
    ) -> None:
        """Load a state of which each rank reads what it needs, in place of the current one.

        Args:
            forms: Shape and dtype of each array; those of a parameter that no step has changed are missing.
            read: Reads a region of an array.
            schedule: State of the learning rate's schedule; None: there is none.

        Raises:
            NotFoundError: Keys are missing or unknown; nothing is changed.
            InvalidArgumentError: A shape or dtype differs; nothing is changed.
        """
        self._names.require_forms(forms, schedule is not None)
        parts = {}
        for key, e in self._names.entries().items():
            if key in forms and (regions := self._regions(e)):
                parts[key] = self._joined(e, [read(key, region) for region in regions])
        if self._optimizer.schedule is not None:
            self._optimizer.schedule.set_state_dict(schedule)
        self._restored, self._restored_parts = {}, parts
        self.scope, self._functions, self._variables = Scope(), {}, {}

    def _lies_as_parameter(self, e: Entry) -> bool:
        """Whether an array of the state has an element for each one of its parameter, where that lies in parts."""
        layout = self.parameters[e.position]._meta.layout
        return layout is not None and not layout.is_broadcast and e.elementwise

    def _regions(self, e: Entry) -> list[Region]:
        """The regions of an array of the state that are here."""
        layout = self.parameters[e.position]._meta.layout
        if layout is not None and self._lies_as_parameter(e):
            return [layout.region(e.shape)]
        return [tuple((0, n) for n in e.shape)]

    def _joined(self, e: Entry, pieces: Sequence[np.ndarray]) -> np.ndarray:
        """What the scope has of an array whose regions are these."""
        (piece,) = pieces
        return piece

    def _whole(self, position: int, array: np.ndarray) -> np.ndarray:
        """State of a parameter as one rank has it; of one that lies in parts, the parts of all. Collective then."""
        layout = self.parameters[position]._meta.layout
        if layout is None or layout.is_broadcast or array.shape != self.parameters[position]._value.shape:
            return array
        found: np.ndarray = layout.gathered(array, self.parameters[position].shape)
        return found

    def _part(self, position: int, array: np.ndarray) -> np.ndarray:
        """This rank's part of what `_whole` returned."""
        layout = self.parameters[position]._meta.layout
        if layout is None or array.shape != self.parameters[position].shape:
            return array
        part: np.ndarray = array[layout.part(array.shape)]
        return part.copy()

    def set_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Load a state_dict, which replaces the current state.

        Args:
            state: The result of `state_dict`.
            strict: Whether its keys must be those of the optimizer; otherwise only matching keys are loaded.

        Raises:
            NotFoundError: Keys are missing or unknown, if strict; nothing is changed.
            InvalidArgumentError: A shape or dtype differs; nothing is changed.
        """
        arrays = self._names.checked(state, strict)
        schedule = self._optimizer.schedule
        if schedule is not None and SCHEDULE in state:
            schedule.set_state_dict(state[SCHEDULE])
        retained: dict[str, Any] = {} if strict else self._arrays()
        self._restored = retained | arrays
        self._restored_parts = {}
        # The next step creates the variables again, from the restored values.
        self.scope, self._functions, self._variables = Scope(), {}, {}


def _gradient(p: Tensor) -> Any:
    """The gradient as a scope holds it; of a global parameter, that of this rank's part."""
    assert p._grad is not None
    if p._meta.layout is None:
        return p._grad.value
    value = _global_gradients[0].settled(p)
    return value if isinstance(value, SelectedRows) else LoDTensor(value, place=p.place, shared=True)


def host_copy(value: LoDTensor) -> Any:
    """A copy of an array in the memory of the CPU."""
    return context(value.place).to_host(value.array).copy()
