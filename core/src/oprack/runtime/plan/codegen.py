"""Generates the function of a segment from the records of a run on the reference path; makes functions of source."""

from __future__ import annotations

import keyword
import linecache
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from oprack.cache import Cache
from oprack.python.records import dataclass
from oprack.runtime.kernel_call import OperatorContext
from oprack.runtime.plan.binding import Binder, BoundOp, Generated, Port, Source, present, reusable_buffer
from oprack.runtime.plan.kernel_code import KernelCode
from oprack.runtime.plan.record import SHAPES, OpRecord, ShapeCheck, shapes_text
from oprack.tensor import LoDTensor, ShapeOnly
from oprack.types import EMPTY_VAR

if TYPE_CHECKING:
    from oprack.runtime.plan.preparation import Preparation
    from oprack.runtime.plan.stretches import Joinable, NewContext, Stretch
    from oprack.runtime.run_context import RunContext

_number = count()
_LOCALS = ("run", "result", "segment", "met", "ready", "begun", "key", "joined", "made")


@dataclass(frozen=True)
class _Statements:
    """The statements of one op.

    Attributes:
        ask: Asks its shape rule.
        by_shapes: Whether what the rule says follows from shapes alone, so that it need not be asked of known ones.
        call: Calls the kernel.
        compare: Holds the shapes that the kernel returned against what the rule said.
        meet: Looks shapes up that only the kernel knew.
        dead: Names of what no later op reads.
        shape_only: Names of arrays of which later ops read the shape alone.
        joinable: The op as part of a stretch, or None.
    """

    ask: list[str]
    by_shapes: bool
    call: list[str]
    compare: list[str]
    meet: list[str]
    dead: list[str]
    shape_only: list[str]
    joinable: Joinable | None

    def lines(self, asked: bool) -> list[str]:
        """All statements. asked: whether the shape rule is."""
        asking, comparing = (self.ask, self.compare) if asked else ([], [])
        return [*asking, *self.call, *comparing, *self.meet, *_dropped(self.dead, self.shape_only)]


class SegmentGenerator:
    """Generates the functions of one segment.

    Args:
        records: What a run on the reference path decided, one for each op.
        keep: Variables that are read after the segment, and so are returned.
        outer: Those of them that belong to a scope above, and so outlive a run that fails.
        xp: NumPy or CuPy.
        parameters: Variables that the scope goes on holding.
        context: Makes the `ctx` of an op without LoD for what joins ops; None: nothing does.
        run: The run of all calls of an eager function; None: each call has its own.

    Attributes:
        names: Objects that the code uses, by name.
    """

    def __init__(
        self,
        records: Sequence[OpRecord],
        keep: Collection[str],
        outer: Collection[str],
        xp: Any,
        parameters: Collection[str],
        context: NewContext | None = None,
        run: RunContext | None = None,
    ) -> None:
        self._records, self._keep, self._xp, self._context, self._run = records, keep, xp, context, run
        self._binder = Binder(records, parameters, outer)
        self.names: dict[str, Any] = {"LoDTensor": LoDTensor, "KernelContext": OperatorContext}
        self.names |= {"ShapeOnly": ShapeOnly, "xp": xp}
        if run is not None:
            self.names |= {"run": run, "place": run.place}
        # By id, since functions of kernels need not hash; the namespace keeps them alive, so no id is used twice.
        self._functions: dict[int, str] = {}
        self._stretches: dict[int, Stretch] = {}
        self._preparations: dict[int, Preparation] = {}

    def generate(self) -> Generated:
        """Write both functions."""
        from oprack.runtime.plan.preparation import find_preparations  # modules that an eager call does not need
        from oprack.runtime.plan.stretches import find_stretches

        # every op is bound before any is written: only then is it known where each local is used last
        steps = [self._binder.bind(i, record) for i, record in enumerate(self._records)]
        inputs = self._binder.inputs
        entered = {id(local) for _, local in inputs}
        current = self._binder.current.items()
        returned = [(n, local) for n, local in current if n in self._keep and id(local) not in entered]
        for _, local in returned:
            # What is returned outlives every op, so that none of them takes its memory.
            local.used = len(steps)
        statements = [self._statements(i, step) for i, step in enumerate(steps)]
        # only now is it known which array has which LoD, and where each is read last
        candidates = [s.joinable for s in statements]
        self._stretches = find_stretches(steps, candidates)
        self._preparations = find_preparations(steps, candidates, self._stretches)
        values = [v for _, local in returned for v in (local.name, local.lod) if v]
        seen = Counter(local.buffer for _, local in (*inputs, *returned))
        # Views that leave together: later writers in place have to know.
        shared = {buffer for buffer, count in seen.items() if count > 1}
        return Generated(
            self._function(statements, values, asking=False),
            self._function(statements, values, asking=True),
            self.names,
            [Port(n, x.tensor, bool(x.lod), bool(x.flag), x.buffer in shared) for n, x in inputs],
            [Port(n, x.tensor, bool(x.lod), shared=x.buffer in shared) for n, x in returned],
            any(step.kernel_sized for step in steps),
            [step.ins for step in steps],
            self._binder.writes,
        )

    def one_op(self, check: ShapeCheck) -> tuple[BoundOp, list[str]]:
        """What an eager call takes of its only op: its local variables, and the statements that check and compute."""
        step = self._binder.bind(0, self._records[0], check)
        written = self._statements(0, step)
        return step, [*written.ask, *written.call, *written.compare]

    def _statements(self, i: int, step: BoundOp) -> _Statements:
        code, buffer = self._code(step), reusable_buffer(i, step, self._binder.buffers, self._xp)
        # A call in place writes to its argument's memory whichever kernel computes, for others may have views of it.
        assigned, after = code.assigned(buffer, "None" if self._run is None else buffer)
        first, *others = [*assigned, *after]
        call = [f"{first}  # {_comment(step.record)}", *others]
        asked, compared = self._ask(i, step), self._compare(i, step)
        dead, shape_only = _read_last(i, step)
        part = None if self._context is None else self._joinable(step, code, self._context)
        return _Statements(*(asked, step.check.by_shapes, call, compared, self._meet(i, step), dead, shape_only, part))

    @staticmethod
    def _joinable(step: BoundOp, code: KernelCode, context: NewContext) -> Joinable | None:
        from oprack.runtime.plan.stretches import joinable

        return joinable(step, code.specialized, context)

    def _function(self, statements: Sequence[_Statements], values: Sequence[str], asking: bool) -> Source:
        """The function for shapes that are new (asking), or for those that were met.

        The latter asks for nothing that follows from shapes, until an op comes that alone knows the shapes of its
        outputs: whether these are new is known only there.
        """
        entering = [f"{local.name} = {_printable(name)}" for name, local in self._binder.inputs]
        body = [f"    # {', '.join(entering[i : i + 4])}" for i in range(0, len(entering), 4)]
        if asking or any(s.meet for s in statements):
            body.append("    met = run.shapes_met")
        lines: dict[int, int] = {}
        every_rule, end, ahead, indent = asking, 0, 0, "    "
        for i, s in enumerate(statements):
            indent = "    " if i >= end else indent
            if every_rule and i in self._preparations:
                row = self._preparations[i]
                taken = ", ".join(["run", *(x.name for x in row.entering)])
                body.append(f"    ready, begun = {self._named(f'prepare{i}', row)}({taken})")
                ahead = row.end
            stretch = self._stretches.get(i)
            if stretch is not None and (not every_rule or stretch.end <= ahead):
                known = f"ready >= {stretch.end} and " if every_rule else "met is not None and " if asking else ""
                begins = every_rule and i in self._preparations
                for text in self._joined(stretch, statements, known, begins):
                    body.append("    " + text)
                    lines[len(body) + 1] = i
                end, indent = stretch.end, "        "
            for text in s.lines(asking or not s.by_shapes):
                body.append(indent + text)
                lines[len(body) + 1] = i
            # From here on shapes may be new although those of the inputs are not, so all rules below are asked.
            asking = asking or bool(s.meet)
        # What ops left in variables of scopes above counts, so an interruption on the way back may not lose it.
        body.append(f"    {'run.made = made = ' if self._binder.writes else 'return '}[{', '.join(values)}]")
        if self._binder.writes:
            body.append("    return made")
        parameters = [p for _, local in self._binder.inputs for p in (local.name, local.lod, local.flag) if p]
        return Source("\n".join([f"def segment({', '.join(['run', *parameters])}):", *body, ""]), lines)

    def _joined(self, stretch: Stretch, statements: Sequence[_Statements], known: str, begins: bool) -> list[str]:
        """The statements of a stretch, but for those of its ops one by one, which follow indented.

        known: the condition that all shapes were met, or that all of its ops were prepared for new ones.
        begins: whether it may have begun to run then.
        """
        ops = statements[stretch.begin : stretch.end]
        made = {x.name for s in ops if s.joinable for x in s.joinable.results if x is not None}
        kept = {x.name for x in (*stretch.entering, *stretch.leaving)}
        inner = made - kept
        dead = [name for s in ops for name in s.dead if name not in inner]
        shape_only = [name for s in ops for name in s.shape_only if name not in (*inner, *dead)]
        name = self._named(f"stretch{stretch.begin}", stretch.function)
        call = stretch.call(f"(begun or {name})" if begins else name)
        results = "".join(f"{x.name}, " for x in stretch.leaving).rstrip()
        return [
            f"if {known}(joined := {call}) is not None:  # {len(ops)} ops in one call, or else one by one",
            f"    {results} = joined",
            *(f"    {text}" for text in _dropped([*dead, "joined"], shape_only)),
            "else:",
        ]

    # Statements -------------------------------------------------------------------------------------------------------
    def _ask(self, i: int, step: BoundOp) -> list[str]:
        """The statement that asks the op's shape rule: when shapes are new, or always if its answer may differ."""
        check = step.check
        if not check.needed:
            return []
        code = self._code(step)
        values = [code.whole(x) for xs in step.ins.values() for x in xs]
        asked = f"_dims = {self._named(f'shapes{i}', check)}({', '.join(['run', *values])})"
        if not check.by_shapes:
            return [asked]
        shapes = shapes_text([x.name for x in present(step.ins)])
        new = f"{self._named(f'seen{i}', check.seen)}[{shapes}] is None"
        return [f"{asked} if {new if self._run is not None else f'met is None and {new}'} else None"]

    def _compare(self, i: int, step: BoundOp) -> list[str]:
        """The statement that holds what the kernel returned against what the shape rule said, when it was asked."""
        arrays = [x.name for x in (step.outs[slot][k] for slot, k in step.check.made) if x]
        if not step.check.needed:
            return []
        name = self._named(f"shapes{i}", step.check)
        return [f"if _dims: {name}." + (f"compare(_dims, {', '.join(arrays)})" if arrays else "accept(_dims)")]

    def _meet(self, i: int, step: BoundOp) -> list[str]:
        """Statements after an op that alone knows the shapes of some outputs: what follows depends on these as well."""
        if not step.kernel_sized:
            return []
        shapes = "".join(f"{x.name}.shape, " for x in step.kernel_sized).rstrip()
        after = self._named(f"after{i}", Cache(SHAPES, "shapes"))
        return [f"met = {after}[key := (met, {shapes})] or run.note_new_shapes({after}, key)"]

    def _code(self, step: BoundOp) -> KernelCode:
        return KernelCode(step.record, step.ins, step.outs, self._xp, self._named, self._run)

    def _named(self, hint: str, value: Any) -> str:
        """What the code calls an object; the same name for a function that it knows already."""
        if callable(value) and id(value) in self._functions:
            return self._functions[id(value)]
        # Names v0, lod0 and own0 are those of values.
        taken = keyword.iskeyword(hint) or hint in self.names or hint in _LOCALS or hint[:1] in "v_"
        name = f"{hint}_{len(self.names)}" if taken or hint.startswith(("lod", "own")) else hint
        self.names[name] = value
        if callable(value):
            self._functions[id(value)] = name
        return name


def _read_last(i: int, step: BoundOp) -> tuple[list[str], list[str]]:
    """Names of what op number `i` reads last: whole values, and arrays of which only shapes are read later."""
    own = {x.name: x for x in (*present(step.ins), *present(step.outs)) if not x.retained}.values()
    return [x.name for x in own if max(x.used, x.shaped) == i], [x.name for x in own if x.used == i < x.shaped]


def _dropped(dead: Sequence[str], shape_only: Sequence[str]) -> list[str]:
    """Statements that free values, and the memory of arrays of which only shapes are read later.

    They matter because memory that is free here can be taken by the next result.
    """
    texts = [f"{name} = ShapeOnly({name})" for name in shape_only]
    return [*texts, f"del {', '.join(dead)}"] if dead else texts


def _comment(record: OpRecord) -> str:
    """The variables that an op writes, for people who read the code."""
    return ", ".join(_printable(n) for names in record.op.outputs.values() for n in names if n != EMPTY_VAR)


def _printable(name: str) -> str:
    """A variable's name for a comment. Names come with the model: after a line break, one would go on as code."""
    return name if name.isprintable() else ascii(name)


def generated_function(source: str, name: str, title: str, names: dict[str, Any]) -> Callable[..., Any]:
    """Make a function of source that was generated. Tracebacks and debuggers find the source while the function lives.

    Args:
        source: The source. What it defines beside the function is left among the names.
        name: The function's name in it.
        title: What tracebacks say in place of a file, with a number.
        names: Objects that the code uses, by name.

    Returns:
        The function.
    """
    filename = f"<{title} {next(_number)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), names)
    function: Callable[..., Any] = names.pop(name)
    # The source goes with the function; otherwise a long session would fill linecache.
    weakref.finalize(function, linecache.cache.pop, filename, None)
    return function
