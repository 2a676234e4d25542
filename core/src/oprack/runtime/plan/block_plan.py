"""The plan of a block: segments of code, compiled per signature of what they read, and ops that run themselves."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from oprack.cache import Cache
from oprack.errors import OpError
from oprack.kernel import KernelContext
from oprack.kernel.commit import Commit
from oprack.kernel.invoke import by_output_slot
from oprack.python.implementation import without_collecting
from oprack.python.interruption import is_interruption, let_interruptions_pass
from oprack.python.records import dataclass
from oprack.runtime.liveness import SegmentVariables, read_after, segment_variables
from oprack.runtime.operator import OperatorBase
from oprack.runtime.plan.arguments import Numbers, SegmentArguments
from oprack.runtime.plan.record import SHAPES, OpRecord, recording, shapes_of, signature
from oprack.tensor import LoDTensor, Scope
from oprack.types import EMPTY_VAR, PER_RUN_KINDS

if TYPE_CHECKING:
    from types import FrameType

    from oprack.desc import BlockDesc
    from oprack.device import DeviceContext
    from oprack.runtime.kernel_operator import OperatorWithKernel
    from oprack.runtime.plan.binding import Generated, Local, Port
    from oprack.runtime.run_context import RunContext
    from oprack.tensor import Variable

_SIGNATURES = 64
# Bytes, as measured: of what is generated, for each character of its source; of what is known of shapes, for each op.
_GENERATED, _SHAPES_MET = 30, 350


class _Recorded(NamedTuple):
    """What the first run for a signature decided, for the second one to compile."""

    records: list[OpRecord]
    shapes: Any
    device: DeviceContext
    context: Callable[[OperatorWithKernel], KernelContext]


def _contexts(run: RunContext) -> Callable[[OperatorWithKernel], KernelContext]:
    """What tells an op in which run it will take part."""
    manager, rules, device = run.program.manager, run.rules, run.device
    return lambda op: KernelContext(op.type, op.attrs, packs=manager, rules=rules, device=device)


@dataclass
class CompiledSegment:
    """The generated functions for one signature of what a segment reads.

    Attributes:
        generated: The sources, and how to call the functions.
        arguments: Makes the arguments of the functions.
        function: For shapes that were met before.
        lines: For each file of generated code, the number of the op that each line belongs to.
        asking: For shapes that are new; it is compiled when such come.
        shapes: Numbers of the combinations of shapes that all shape rules accepted, the latest last.
        numbers: Numbers that no combination has yet.
    """

    generated: Generated
    arguments: SegmentArguments
    function: Any
    lines: dict[str, Mapping[int, int]]
    asking: Any = None
    shapes: Cache = field(default_factory=lambda: Cache(SHAPES, "shapes"))
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def accept(self, shapes: Any, after: Sequence[tuple[Cache, Any]]) -> None:
        """Number shapes that all rules accepted, so that the rules are not asked about them again.

        Args:
            shapes: Shapes of what the segment reads.
            after: Shapes that kernels returned and that are new as well, as RunContext.shapes_after notes them.
        """
        number = self.shapes[shapes]
        if number is None:
            number = self.shapes.keep(shapes, next(self.numbers), _SHAPES_MET * len(self.generated.slots))
        for numbers, (before, *made) in after:
            key = number if before is None else before, *made
            number = numbers.keep(key, next(self.numbers), _SHAPES_MET)


class Segment:
    """Ops of a block that run kernels, without one that runs itself in between."""

    def __init__(self, operators: Sequence[OperatorWithKernel], variables: SegmentVariables) -> None:
        self.operators, self.variables = list(operators), variables
        self._compiled = Cache(_SIGNATURES, "plans")
        # What the first run for a signature recorded, which the second one compiles: many a process has no second run.
        self._recorded = Cache(_SIGNATURES)
        # The parameters of the last run, with the numbers of their signatures and shapes; threads may replace it at any
        # time, so it is read and written as one tuple.
        self._last: tuple[list[Any], int, int] = ([], 0, 0)
        self._numbers = Numbers()
        self._ops_text = f"{len(self.operators)} ops from {self.operators[0].key}"
        # Outputs that ops may leave out, and that are read: another value of the variable, such as a fed one, stays.
        self._left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Segment of {self._ops_text}>"

    @property
    def reads(self) -> list[str]:
        """Variables that it reads beside parameters; of those that an op may leave out, the value that was there."""
        return [*self.variables.reads, *self._left_out]

    # Running ----------------------------------------------------------------------------------------------------------
    def run(self, run: RunContext, scope: Scope) -> None:
        """Run in `scope`: generated code for a signature that was seen before, else the reference path, recorded."""
        for name in self._left_out:
            scope.var(name)
        parameters = scope.find_values(self.variables.parameters)
        temporaries = scope.find_values(self.reads)
        key, shapes = self._forms(run, parameters, temporaries)
        compiled: CompiledSegment | None = self._compiled[key] or self._compile_recorded(key)
        if compiled is None:
            del temporaries  # a reference here would keep memory that ops in place could take
            without_collecting(self._record, run, scope, key, shapes)
            return
        run.shapes_met = compiled.shapes[shapes]
        args = compiled.arguments([*parameters, *temporaries])
        del temporaries
        # What the segment reads last goes out of the scope before the code runs: its locals are then the only
        # references, and they end where the ops in the code end with them.
        self._drop(scope, self.variables.consumed)
        self.compute(compiled, shapes, args, run, scope)

    def compute(
        self,
        compiled: CompiledSegment,
        shapes: Any,
        args: Sequence[Any],
        run: RunContext,
        scope: Scope,
        stored: Collection[str] | None = None,
    ) -> list[Any]:
        """Call the generated code, and store what it returns in variables: its results.

        Args:
            compiled: As for `call`.
            shapes: As for `call`.
            args: As for `call`.
            run: As for `call`.
            scope: Has the variables.
            stored: The variables to store; None means all that are returned. If the code fails, those of scopes above
                get what finished ops wrote.
        """
        try:
            results = self.call(compiled, shapes, args, run)
            self._store(compiled.generated.outputs, results, run, scope, stored)
        except BaseException as error:
            self._leave_finished(compiled, error, run, scope, stored)
            raise
        # Kept per run and not per segment, since threads share segments.
        run.made = None
        return results

    def call(self, compiled: CompiledSegment, shapes: Any, args: Sequence[Any], run: RunContext) -> list[Any]:
        """Call the generated code: its results.

        Args:
            compiled: What was compiled for what the segment reads.
            shapes: Shapes of that.
            args: What `compiled.arguments` makes of it.
            run: The run; its `shapes_met` is the number of the shapes, None for new ones.
        """
        run.shapes_settled = True
        run.shapes_after.clear()
        try:
            if run.shapes_met is not None:
                results: list[Any] = compiled.function(run, *args)
            else:
                # Most signatures meet new shapes never again after the first run: this is compiled when they do.
                compiled.asking = compiled.asking or self._function(compiled.generated, compiled.lines, asking=True)
                results = compiled.asking(run, *args)
        except Exception as error:
            let_interruptions_pass()
            raise self.explained(compiled, error, run) from error
        if run.shapes_settled and (run.shapes_met is None or run.shapes_after):
            compiled.accept(shapes, run.shapes_after)
        return results

    def met(
        self, run: RunContext, parameters: Sequence[Any], temporaries: Sequence[Any]
    ) -> tuple[CompiledSegment, Any] | None:
        """(what was compiled for values of its parameters and of what it reads, their shapes); None: nothing was."""
        key, shapes = self._forms(run, list(parameters), temporaries)
        compiled: CompiledSegment | None = self._compiled[key] or self._compile_recorded(key)
        return None if compiled is None else (compiled, shapes)

    def _forms(self, run: RunContext, parameters: list[Any], temporaries: Sequence[Any]) -> tuple[Any, Any]:
        """(what the choice of kernels depends on, shapes) of what the segment reads."""
        # Parameters are the same objects from run to run unless they are trained, and the comparison of lists asks for
        # identity first: so the signatures and shapes of hundreds of them are worked out, and hashed, once.
        known, parameter_key, parameter_shapes = self._last
        if known != parameters:
            parameter_key = self._numbers.of(tuple(map(signature, parameters)))
            parameter_shapes = self._numbers.of(shapes_of(parameters))
            self._last = (parameters, parameter_key, parameter_shapes)
        key = (run.rules, run.place, parameter_key, tuple(map(signature, temporaries)))
        return key, (parameter_shapes, shapes_of(temporaries))

    def forget_parameters(self) -> None:
        """Let go of the parameters of the last run."""
        self._last = ([], 0, 0)

    def _drop(self, scope: Scope, names: Sequence[str]) -> None:
        """Clear variables of this scope that nothing reads any more."""
        for n in names:
            var = scope.find_local_var(n)
            if var is not None:
                var.value = None

    def _store(
        self,
        ports: Sequence[Port],
        results: list[Any],
        run: RunContext,
        scope: Scope,
        stored: Collection[str] | None = None,
    ) -> None:
        i = 0
        for port in ports:
            value = results[i]
            i += 1
            if port.tensor:
                lod: Any = []
                if port.lod:
                    lod = results[i]
                    i += 1
                value = LoDTensor(value, lod, place=run.place, check=False, shared=port.shared)
            if stored is None or port.var in stored:
                self._variable(port.var, scope).value = value

    def _variable(self, name: str, scope: Scope) -> Variable:
        """Where a value is written: a variable of a scope above there, since one of this scope may not hide it."""
        return (scope.find_var(name) if name in self.variables.outer else None) or scope.var(name)

    # Recording --------------------------------------------------------------------------------------------------------
    def _record(self, run: RunContext, scope: Scope, key: Any, shapes: Any) -> None:
        """Run on the reference path, which checks every shape, and compile what it decided for a new signature."""
        records: list[OpRecord] = []
        for op, dying in zip(self.operators, self.variables.dying, strict=True):
            for n in (n for names in op.outputs.values() for n in names if n not in self.variables.outer):
                scope.var(n)
            with recording(run, records):
                op.run(scope, run)
            self._drop(scope, dying)
        left_out = _left_out(records, {*self.variables.parameters, *self.variables.reads, *self._left_out})
        if left_out:
            self._left_out += left_out
            return  # what it reads is another signature from now on
        # Another thread may have compiled it while this one ran on the reference path.
        if key not in self._compiled and all(r.compilable for r in records):
            self._recorded[key] = _Recorded(records, shapes, run.device, _contexts(run))

    def _compile_recorded(self, key: Any) -> CompiledSegment | None:
        """Compile what was recorded for a signature; None when nothing was."""
        recorded = self._recorded.pop(key, None)
        if recorded is None:
            return None
        compiled = self._compile(recorded)
        self._compiled.keep(key, compiled, _GENERATED * len(compiled.generated.source.text))
        # Where shapes are known inside only, the numbers of what follows are not known here; this run asks the rules.
        if not compiled.generated.meets:
            compiled.accept(recorded.shapes, ())
        return compiled

    def _compile(self, recorded: _Recorded) -> CompiledSegment:
        from oprack.runtime.plan.codegen import SegmentGenerator  # with modules that a first run does not need

        device, variables = recorded.device, self.variables
        generated = SegmentGenerator(
            recorded.records, variables.keep, variables.outer, device.xp, variables.parameters, recorded.context
        ).generate()
        lines: dict[str, Mapping[int, int]] = {}
        function = self._function(generated, lines, asking=False)
        arguments = SegmentArguments(generated.inputs, [*variables.parameters, *self.reads])
        function = device.plan_function(function, {op.type for op in self.operators})
        return CompiledSegment(generated, arguments, function, lines)

    def _function(self, generated: Generated, lines: dict[str, Mapping[int, int]], asking: bool) -> Any:
        from oprack.runtime.plan.codegen import generated_function

        source = generated.asking if asking else generated.source
        title = f"plan of {self._ops_text}{', for new shapes' if asking else ''}"
        function = generated_function(source.text, "segment", title, generated.namespace)
        lines[function.__code__.co_filename] = source.lines
        return function

    # Errors -----------------------------------------------------------------------------------------------------------
    def _leave_finished(
        self,
        compiled: CompiledSegment,
        error: BaseException,
        run: RunContext,
        scope: Scope,
        stored: Collection[str] | None,
    ) -> None:
        """Write what finished ops left in variables of scopes above, as the reference path has done at that point."""
        if run.made is not None:  # all of them
            self._store(compiled.generated.outputs, run.made, run, scope, stored)
            return
        frame, index = _where(compiled, error)
        if frame is None and error.__cause__ is not None:
            error = error.__cause__
            frame, index = _where(compiled, error)
        if frame is None:
            return
        values, committed = frame.f_locals, {}
        if index is not None and is_interruption(error):
            # All outputs of an op are assigned at once; those that are there are those of finished ops.
            # of a kernel that was one of several, the result is there before it is taken apart
            result = values.get("result", NotImplemented)
            result = Commit.result_of(error) if result is NotImplemented else result
            committed, index = self._outputs(result, index, run), None
        for name, writes in compiled.generated.writes.items():
            found = committed.get(name)
            for i, local in [] if found is not None else reversed(writes):
                if local.name in values and i != index:
                    found = _held(values[local.name], values.get(local.lod, []), local, run)
                    break
            if found is not None:
                self._variable(name, scope).value = found

    def _outputs(self, result: Any, index: int, run: RunContext) -> dict[str, Any]:
        """The outputs of op number `index`, by variable, of what its kernel returned."""
        op, found = self.operators[index], dict[str, Any]()
        for _, slot, made in [] if result is None else by_output_slot(result, op.info.proto):
            arrays = made if isinstance(made, list) else [made]
            for name, array in zip(op.outputs.get(slot, ()), arrays, strict=False):
                if isinstance(array, run.device.xp.ndarray | run.device.xp.generic):
                    array = LoDTensor(run.device.xp.asarray(array), place=run.place, check=False, shared=True)
                if array is not None:
                    found[name] = array
        return found

    def explained(self, compiled: CompiledSegment, error: Exception, run: RunContext) -> Exception:
        """What to raise for an error of the generated code: an op that failed runs once more on the reference path.

        Args:
            compiled: What was compiled.
            error: The error.
            run: The run.

        Returns:
            What the reference path raised, which says what is wrong with the inputs.
        """
        frame, index = _where(compiled, error)
        if frame is None or index is None:
            return OpError(f"{self._ops_text} failed: {type(error).__name__}: {error}")
        # The frame still has the op's inputs, as deletions come after the call that failed.
        op, scope, values = self.operators[index], Scope(), frame.f_locals
        for slot, locals_ in compiled.generated.slots[index].items():
            for name, local in zip(op.inputs[slot], locals_, strict=True):
                if local is not None:
                    value, lods = values[local.name], values.get(local.lod, [])
                    if local.tensor:
                        value = LoDTensor(value, lods, place=run.place, check=False, shared=True)
                    scope.var(name).value = value
        try:
            op.run(scope, run)
        except Exception as explained:
            let_interruptions_pass()
            return explained
        failed = f"op {op.type} failed: {type(error).__name__}: {error}"
        return OpError(f"{failed}\n{op.raised_by(error)}{op.describe(scope)}")

    def sources(self) -> list[str]:
        """Generated code, one text per signature."""
        for key in list(self._recorded):
            self._compile_recorded(key)
        return [c.generated.source.text for c in self._compiled.values()]


def _where(compiled: CompiledSegment, error: BaseException) -> tuple[FrameType | None, int | None]:
    """The frame of the generated code that an exception came through, and the number of the op where that was."""
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename not in compiled.lines:
        step = step.tb_next  # a place may call the code in its own way
    if step is None:
        return None, None
    return step.tb_frame, compiled.lines[step.tb_frame.f_code.co_filename].get(step.tb_lineno)


def _held(value: Any, lod: Any, local: Local, run: RunContext) -> Any:
    """The value of a local variable as a variable of the program holds it; ops in place leave its memory alone."""
    if not local.tensor:
        return value
    if isinstance(value, LoDTensor):  # as the kernel returned it
        value, lod = value.array, value.lod
    return LoDTensor(run.device.xp.asarray(value), lod, place=run.place, check=False, shared=True)


def _left_out(records: Sequence[OpRecord], read: Collection[str]) -> tuple[str, ...]:
    """Variables that ops read although the op that is to write them has left them out, but for those in `read`."""
    found, written = dict[str, None](), set(read)
    for record in records:
        op = record.op
        names = (n for slot, vs in record.inputs.items() for n, v in zip(op.inputs[slot], vs, strict=True))
        found.update(dict.fromkeys(n for n in names if n not in written and n != EMPTY_VAR))
        for slot, made in record.outputs.items():
            written.update(n for n, v in zip(op.outputs[slot], made, strict=False) if v is not None)
    return tuple(found)


# The block ------------------------------------------------------------------------------------------------------------
class BlockPlan:
    """The steps of a block: segments, and the ops that run themselves.

    Args:
        block: The block.
        operators: Its operators.
        keep: Variables that are read afterwards; None means everything that the block writes.
    """

    def __init__(self, block: BlockDesc, operators: Sequence[OperatorBase], keep: Collection[str] | None) -> None:
        groups = [list(ops) for _, ops in groupby(operators, key=_runs_kernel)]
        needed = None if keep is None else set(keep)
        steps: list[Segment | OperatorBase] = []
        # From the last group to the first: what a segment has to return is what later ones read.
        for group in reversed(groups):
            if _runs_kernel(group[0]):
                steps.append(Segment(cast("list[OperatorWithKernel]", group), segment_variables(group, block, needed)))
            else:
                steps += reversed(group)
            if needed is not None:
                needed |= read_after([op.desc for op in group], block.program)
        self.steps = steps[::-1]
        self._local, self._persistable = _variables_to_create(block, operators, steps)

    def run(self, run: RunContext, scope: Scope) -> None:
        """Run every step in `scope`."""
        for name in self._local:
            scope.var(name)
        # As in Paddle, persistable variables live in the root scope unless a scope in between has them.
        for name in self._persistable:
            if scope.find_var(name) is None:
                scope.root().var(name)
        for step in self.steps:
            step.run(run, scope) if isinstance(step, Segment) else step.run(scope, run)

    def forget_parameters(self) -> None:
        """Let go of the parameters of earlier runs."""
        for step in self.steps:
            if isinstance(step, Segment):
                step.forget_parameters()

    def source(self) -> str:
        """The generated code, for people to read."""
        parts = []
        for step in self.steps:
            if isinstance(step, Segment):
                parts += step.sources() or [f"# {len(step.operators)} ops, not compiled yet\n"]
            else:
                parts.append(f"# {step.type} runs itself: {step.desc}\n")
        return "\n".join(parts)


def _variables_to_create(
    block: BlockDesc, operators: Sequence[OperatorBase], steps: Sequence[Segment | OperatorBase]
) -> tuple[list[str], list[str]]:
    """(local variables, persistable variables) of the block that have to be there before the steps run.

    Ops that run themselves write to a variable of any scope above unless this one has it, and a variable that is read
    before it is written must not be mistaken for one of a scope above that has the same name.
    """
    written = {n for op in operators for names in op.outputs.values() for n in names}
    own = [block.vars[n] for n in written if n in block.vars]
    looked_up = {n for s in steps for n in (s.variables.reads if isinstance(s, Segment) else _names_of(s))}
    local = [v for v in block.vars.values() if v.name in looked_up]
    return (
        [v.name for v in local if not v.persistable or v.type in PER_RUN_KINDS],
        [v.name for v in own if v.persistable and v.type not in PER_RUN_KINDS],
    )


def _names_of(op: OperatorBase) -> set[str]:
    return {n for slots in (op.inputs, op.outputs) for names in slots.values() for n in names}


def _runs_kernel(op: OperatorBase) -> bool:
    """Whether generated code can call the op's kernel: the place has one, and no attribute is taken from a variable."""
    return not op.runs_itself and not op.tensor_attrs and cast("OperatorWithKernel", op).has_kernels
