"""PreparedFunction: a prepared program as a function of values; executors, predictors, jit and optimizers run it.

Most programs are feed ops, one segment and fetch ops. What a run of such a program looks up, variables, signatures,
shapes and checks, is the same each time while its values keep their dtypes and shapes, and for a small net that takes
longer than its kernels. So the values go by position to the function that was generated for the segment, and results by
position to the caller. Everything else (several segments, control flow, profilers, observers, checks, other places than
the CPU, the reference path) runs in a scope of that run alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from contextvars import copy_context
from copy import deepcopy
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.cache import Cache
from oprack.python.interruption import let_interruptions_pass
from oprack.runtime.feed_fetch import FeedOp, FetchOp, as_fed_value, set_feeds
from oprack.runtime.plan.arguments import Numbers
from oprack.runtime.plan.block_plan import Segment
from oprack.runtime.plan.record import shapes_of, signature
from oprack.runtime.profiler import PROFILERS
from oprack.tensor import LoDTensor, Scope
from oprack.types import EMPTY_VAR

if TYPE_CHECKING:
    from oprack.runtime.executor import NaiveExecutor
    from oprack.runtime.plan.binding import Port
    from oprack.runtime.plan.block_plan import BlockPlan, CompiledSegment
    from oprack.runtime.prepared import PreparedProgram
    from oprack.runtime.run_context import RunContext

# Forms of values that a function remembers, which come with the data; bytes of each, and of each of its arguments.
_FORMS, _FORM, _ARGUMENT = 4096, 2000, 100
# In the place of an argument: that its memory may not be overwritten.
_NOT_MINE = -1


class PreparedFunction:
    """The main block of a prepared program: values of some variables in, values of others out.

    A value is a bare array of NumPy's, which is a tensor without LoD on the caller's memory, or what a variable holds
    (LoDTensor, SelectedRows, LoDTensorArray ...). Of the values that come out, a bare array is the caller's own; a
    LoDTensor that is `shared` lies on memory of something else.

    Threads may share a function. It stays right when packs change: the program is then prepared again.

    Args:
        executor: What runs it: place, limits, checks, random numbers.
        program: The prepared program.
        inputs: Names of the variables whose values are given.
        outputs: Names of the variables whose values are returned.
        checked: Whether values come from users: they are converted and held against what the program declares, once for
            all arrays of one dtype and shape.
        stateful: Whether persistable variables live in a scope that is given with each call. Otherwise they are inputs
            like others, of those that the program writes the new values are returned if they are outputs, and arrays
            on memory of something else come out bare as well, since the caller knows of what.
    """

    def __init__(
        self,
        executor: NaiveExecutor,
        program: PreparedProgram,
        inputs: Sequence[str],
        outputs: Sequence[str],
        checked: bool = False,
        stateful: bool = True,
    ) -> None:
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self._executor, self._checked, self._stateful = executor, checked, stateful
        self._plan = _Plan(executor, program, self.inputs, self.outputs, stateful)

    def __repr__(self) -> str:
        return f"<PreparedFunction {list(self.inputs)} -> {list(self.outputs)}>"

    @property
    def program(self) -> PreparedProgram:
        """The prepared program."""
        return self._plan.program

    def __call__(
        self, values: Sequence[Any], form: Any = None, scope: Scope | None = None, observers: Sequence[Any] = ()
    ) -> list[Any]:
        """Run.

        Args:
            values: Those of the inputs, in order.
            form: What is equal only for bare arrays of the same dtypes and shapes, where the caller knows such a thing.
            scope: That of the persistable variables, of a stateful function.
            observers: Observers of this run, besides those of packs.

        Returns:
            The values of the outputs, in order; None for one that no op has set.

        Raises:
            FeedError: A value does not fit what the program declares, where values are checked.
            OpError: An op failed. Ops may raise other errors of oprack as well.
        """
        plan, executor = self._plan, self._executor
        if plan.revision != executor.manager.revision or plan.changes != executor.changes:
            plan = self._prepare_again(plan.program)
        if self._checked:
            values = self._fed(plan, values)
        if observers or plan.segment is None or PROFILERS.stack:
            return self._run_in_scope(plan, values, scope, observers)
        state = scope.find_values(plan.state) if scope is not None and plan.state else []
        if form is None:
            form = tuple([(v.dtype, v.shape) if type(v) is np.ndarray else _form(v) for v in values])
        key = (plan.number(state), form) if state else form
        try:
            run = plan.idle.pop()
        except IndexError:
            run = executor.context(plan.program)
        found: _Form | None = plan.forms[key] or plan.new_form(run, key, values, self._tensors(plan, values), state)
        if found is None:
            results = self._run_in_scope(plan, values, scope)
        else:
            results = found.run([*values, *state] if state else values, run, scope)
        plan.idle.append(run)
        return results

    def _prepare_again(self, old: PreparedProgram) -> _Plan:
        program = self._executor.prepare(old.source, None, old.block_id, old.with_feed_fetch)
        # Threads see the old plan or the new one, whole.
        plan = self._plan = _Plan(self._executor, program, self.inputs, self.outputs, self._stateful)
        return plan

    def _fed(self, plan: _Plan, values: Sequence[Any]) -> Sequence[Any]:
        """What users gave, as values; arrays that are so already are checked when their form is new."""
        if all([type(v) is np.ndarray and v.flags.carray and v.dtype.isnative for v in values]):
            return values
        return [
            v if type(v) is np.ndarray and v.flags.carray and v.dtype.isnative else as_fed_value(name, v, var)
            for name, v, var in zip(self.inputs, values, plan.vars, strict=True)
        ]

    def _tensors(self, plan: _Plan, values: Sequence[Any]) -> list[Any]:
        """Values as variables hold them; those of users are held against what the program declares."""
        tensors = [_tensor(v) for v in values]
        if not self._checked:
            return tensors
        return [as_fed_value(n, v, var) for n, v, var in zip(self.inputs, tensors, plan.vars, strict=True)]

    def _run_in_scope(
        self, plan: _Plan, values: Sequence[Any], outer: Scope | None, observers: Sequence[Any] = ()
    ) -> list[Any]:
        """Run with variables, in a scope of this run alone; persistable ones live in `outer`."""
        # Threads with a scope in common have temporaries of their own.
        local = Scope() if outer is None else outer.new_scope()
        try:
            block = plan.program.main
            block.create_persistable(local)
            set_feeds(block.feeds, dict(zip(self.inputs, self._tensors(plan, values), strict=True)), local)
            keep = self.outputs if self._executor.prepared else None
            self._executor.run_prepared(plan.program, local, keep, observers)
            return _apart(local.find_values(self.outputs), plan.repeated)
        finally:
            if outer is not None:
                outer.delete_scope(local)
            if not self._stateful:  # who alone has the memory of a parameter may write to it
                plan.program.forget_parameters()


class _Plan:
    """What a function knows of a prepared program.

    Attributes:
        stateful: As of the function.
        segment: The only segment of the main block, where all runs may go straight to it; else None.
        revision: Of the packs that it was prepared with.
        changes: Of the executor, as often as it was changed until then.
        state: Names of the persistable variables that it reads from a scope.
        writes: Names of those that it writes to one.
        vars: What the program declares of each input.
        repeated: Which of the outputs come a second time, where each is to have memory of its own.
        forms: How to run values, by their form, and the number of that of the state.
        idle: Contexts of runs that have ended, for the next ones; each is one thread's alone while it is not here.
    """

    def __init__(
        self,
        executor: NaiveExecutor,
        program: PreparedProgram,
        inputs: Sequence[str],
        outputs: Sequence[str],
        stateful: bool,
    ) -> None:
        self.program, self._inputs, self._outputs, self.stateful = program, inputs, outputs, stateful
        self.revision, self.changes = program.packs_revision, executor.changes
        self.repeated = [i for i, name in enumerate(outputs) if stateful and name in outputs[:i]]
        block = program.main.block
        self.vars = [block.find_var_recursive(name) for name in inputs]
        self.segment = self._only_segment(executor, stateful)
        self.state: list[str] = []
        self.writes: Collection[str] = ()
        if self.segment is not None and stateful:
            self.state = self.segment.variables.parameters
            self.writes = {*self.segment.variables.outer} - {EMPTY_VAR}
        self.forms = Cache(_FORMS, "steady runs")
        self.idle: list[RunContext] = []
        # The values of the last run's state with the number of their form, as one tuple, since threads replace it.
        self._last: tuple[list[Any], int] = ([], 0)
        self._numbers = Numbers()

    def _only_segment(self, executor: NaiveExecutor, stateful: bool) -> Segment | None:
        program, given = self.program, set(self._inputs)
        if executor.place.kind != "cpu" or not executor.runs_plans:
            return None
        segment = _segment_of(program.main.plan(self._outputs))
        if segment is None:
            return None
        variables, persistable = segment.variables, program.main.persistable.keys()
        # A persistable variable that is fed keeps its value; what is read otherwise is fed, or set by an op.
        nothing = {EMPTY_VAR}
        inside = set(variables.outer) - nothing <= persistable and given | nothing >= set(variables.reads)
        known = not given & persistable if stateful else given >= set(variables.parameters)
        return segment if inside and known else None

    def number(self, state: list[Any]) -> int:
        """A number for the form of the persistable values, which are mostly the same objects from run to run."""
        last, number = self._last
        if last != state:
            number = self._numbers.of((tuple(map(signature, state)), shapes_of(state)))
            self._last = state, number
        return number

    def new_form(
        self, run: RunContext, key: Any, values: Sequence[Any], tensors: Sequence[Any], state: Sequence[Any]
    ) -> _Form | None:
        """How to run values like these, which are `tensors` as variables hold them; None while there is no code."""
        assert self.segment is not None
        given = dict(zip((*self._inputs, *self.state), (*tensors, *state), strict=True))
        variables = self.segment.variables
        met = self.segment.met(
            run, [given.get(n) for n in variables.parameters], [given.get(n) for n in self.segment.reads]
        )
        if self.writes or not self.stateful:  # else those of this run would stay in memory beside the trained ones
            self.segment.forget_parameters()
        if met is None or not {*given, *(port.var for port in met[0].generated.outputs)}.issuperset(self._outputs):
            return None  # not compiled yet, or an op has left an output out
        bare = {name for name, value in zip(self._inputs, values, strict=True) if type(value) is np.ndarray}
        form = _Form(self, self.segment, *met, list(given), bare, self._outputs)
        self.forms.keep(key, form, _FORM + _ARGUMENT * form.width)
        return form


class _Form:
    """How to run values of one form: which of them the generated code takes, and which results are returned.

    Args:
        plan: The plan.
        segment: Its segment.
        compiled: What was generated for values of this form.
        shapes: Their shapes.
        names: Names of the values, in the order in which they come.
        bare: Those of them that are bare arrays.
        outputs: Names of the values that are returned.

    Attributes:
        width: How many arguments the generated code takes.
    """

    def __init__(
        self,
        plan: _Plan,
        segment: Segment,
        compiled: CompiledSegment,
        shapes: Any,
        names: Sequence[str],
        bare: Collection[str],
        outputs: Sequence[str],
    ) -> None:
        self._segment, self._compiled, self._shapes = segment, compiled, shapes
        self._settled: Callable[..., list[Any]] | None = None  # the code, once all rules have accepted the shapes
        self._block = plan.program.main if plan.writes else None
        ports, index = compiled.generated.inputs, {name: i for i, name in enumerate(names)}
        self.width = len(ports)
        # Mostly the code takes arrays and nothing else. Of bare ones nobody may overwrite the memory.
        self._take: Callable[[Sequence[Any]], Sequence[Any]] | None = self._arguments
        if all(p.tensor and not p.lod and (p.var in bare or not (p.flag or p.shared)) for p in ports):
            taken = [i for p in ports for i in ((index[p.var], _NOT_MINE) if p.flag else (index[p.var],))]
            self._take = _taking(taken, len(names), all(p.var in bare for p in ports))
        variables = segment.variables
        # No code takes what is at the name of no variable.
        self._values = [index.get(name, 0) for name in (*variables.parameters, *segment.reads)]
        places: dict[str, tuple[int, Port]] = {}
        at = 0
        for port in compiled.generated.outputs:
            places[port.var] = at, port
            at += 1 + (port.tensor and port.lod)
        self._outputs: list[tuple[int, bool, bool, bool]] = []  # place, was given, has LoD, is on memory of others
        for name in outputs:
            if name in places:
                at, port = places[name]
                shared = (port.shared and plan.stateful) or name in plan.writes
                self._outputs.append((at, False, port.tensor and port.lod, port.tensor and shared))
            else:
                self._outputs.append((index[name], True, False, False))
        self._repeated = plan.repeated
        # Mostly outputs are arrays of the caller's own, and all that the code returns.
        own = not any(given or lod or shared for _, given, lod, shared in self._outputs)
        self._all = own and [at for at, *_ in self._outputs] == list(range(len(compiled.generated.outputs)))

    def _arguments(self, given: Sequence[Any]) -> Sequence[Any]:
        return self._compiled.arguments([_tensor(given[i]) for i in self._values])

    def run(self, given: Sequence[Any], run: RunContext, scope: Scope | None) -> list[Any]:
        """Run: the values of the outputs.

        Args:
            given: The values.
            run: The state of the run.
            scope: That of the persistable variables, of a stateful function.
        """
        arguments = given if self._take is None else self._take(given)
        before = _ignore_errors()
        try:
            if self._settled is None:
                results = self._run(arguments, run, scope)
            else:
                try:
                    results = self._settled(run, *arguments)
                except Exception as error:
                    let_interruptions_pass()
                    raise self._segment.explained(self._compiled, error, run) from error
        finally:
            _restore_errors(before)
        if self._all:
            return results
        return _apart([_output(results, given, *output) for output in self._outputs], self._repeated)

    def _run(self, arguments: Sequence[Any], run: RunContext, scope: Scope | None) -> list[Any]:
        """Run where rules are asked, kernels say shapes, or variables of a scope are written."""
        compiled, shapes, block = self._compiled, self._shapes, self._block
        run.shapes_met = compiled.shapes[shapes]
        if block is None and run.shapes_met is not None and not compiled.generated.meets:
            self._settled = compiled.function
        if block is None or scope is None:
            return self._segment.call(compiled, shapes, arguments, run)
        block.create_persistable(scope)
        return self._segment.compute(compiled, shapes, arguments, run, scope, block.persistable)


def _taking(places: Sequence[int], count: int, bare: bool) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """What takes the arrays of those of so many values that are at some places, False at `_NOT_MINE`.

    bare: whether these values are arrays themselves. None: all values are taken as they are.
    """
    if bare and places == list(range(count)):
        return None
    if bare and _NOT_MINE not in places and len(places) > 1:
        return itemgetter(*places)
    return lambda given: [False if i < 0 else v if type(v := given[i]) is np.ndarray else v.array for i in places]


def _error_state() -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """What begins and ends a time in which NumPy takes infinities and NaN for values like others.

    np.errstate takes longer than many an op. Where all that it does is to set a context variable, that is set.
    """
    outside = copy_context()
    with np.errstate(all="ignore"):
        changed = [(var, value) for var, value in copy_context().items() if outside.get(var) is not value]
    if len(changed) == 1:
        ((var, value),) = changed
        return functools.partial(var.set, value), var.reset

    def begin() -> Any:
        state = np.errstate(all="ignore")
        state.__enter__()
        return state

    return begin, lambda state: state.__exit__(None, None, None)


_ignore_errors, _restore_errors = _error_state()


def _output(results: list[Any], values: Sequence[Any], at: int, given: bool, lod: bool, shared: bool) -> Any:
    """The value of an output: what the code returned, or of a variable that it does not write what was given."""
    if given:
        return _tensor(values[at])
    if not (lod or shared):
        return results[at]
    return LoDTensor(results[at], results[at + 1] if lod else [], check=False, shared=shared)


def _apart(values: list[Any], repeated: Sequence[int]) -> list[Any]:
    """The values of the outputs, of which those that come a second time get memory of their own."""
    for i in repeated:
        values[i] = deepcopy(values[i])
    return values


def _tensor(value: Any) -> Any:
    """A value as a variable holds it."""
    return LoDTensor(value, shared=True) if type(value) is np.ndarray else value


def _form(value: Any) -> Any:
    """What generated code depends on of a value that is no bare array: never equal to that of one."""
    return signature(value), value.array.shape if type(value) is LoDTensor else getattr(value, "shape", None)


def _segment_of(plan: BlockPlan) -> Segment | None:
    """The segment of a plan that is feed ops, a segment and fetch ops; None of any other plan."""
    kinds = [kind for kind, _ in groupby(plan.steps, key=type)]
    segments = [step for step in plan.steps if isinstance(step, Segment)]
    in_order = kinds == [k for k in (FeedOp, Segment, FetchOp) if k in kinds]
    return segments[0] if len(segments) == 1 and in_order else None
