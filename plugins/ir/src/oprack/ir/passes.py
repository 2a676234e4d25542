"""Passes: which there are, in which order they run over a program, and what each of them did."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from oprack.desc import ProgramDesc
from oprack.errors import GraphError, NotFoundError, PackError
from oprack.ir.facts import ProgramFacts
from oprack.ir.graph import Graph
from oprack.ir.nodes import names_of
from oprack.ir.verify import verify
from oprack.packs.installed.resolve import import_object
from oprack.packs.manager import PackManager, default_manager
from oprack.packs.pack import BrokenPackWarning, PackWarning, warn
from oprack.packs.register import STAGES
from oprack.python.interruption import let_interruptions_pass
from oprack.python.records import dataclass
from oprack.tensor import CPUPlace, Place, Scope

_NONE: Mapping[str, Collection[str] | None] = MappingProxyType({})


@dataclass(frozen=True)
class Pass:
    """A registered pass; its fields are the arguments of `register.pass_`, which says more of them.

    Attributes:
        name: By which users switch it off.
        target: "module:name" of the function.
        owner: The distribution that brings it.
        stage: "fold", "canonicalize", "fuse" or "lower".
        place: The kind of place that it is for; None: all.
        library: The kernel library that it is for; None: all.
        after: Passes of the same stage that run before it.
        before: Passes of the same stage that run after it.
        reorders_sums: Whether it changes the order of float sums, or rounding.
        inference_only: Whether it treats parameters as constants.
        precision: The dtype that ops compute in after it; "" for their own.
        ops: With a precision, the op types that it is about.
        optional: Whether it runs for those alone who ask for it by name; a kernel library: where that one serves.
    """

    name: str
    target: str
    owner: str
    stage: str
    place: str | None = None
    library: str | None = None
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    reorders_sums: bool = False
    inference_only: bool = True
    precision: str = ""
    ops: tuple[str, ...] = ()
    optional: bool | str = False

    @property
    def rank(self) -> tuple[int, bool]:
        """The stage by number, and whether it serves only one place or library; it runs after lower ones."""
        return STAGES.index(self.stage), bool(self.place or self.library)

    def load(self) -> Any:
        """The function, imported now. Raises PackImportError."""
        return import_object(self.target, f"pass {self.name} of {self.owner}")


# What a manager's packs bring, and the revision for which it holds: a model that is loaded asks several times
_KNOWN: WeakKeyDictionary[PackManager, tuple[int, tuple[Pass, ...]]] = WeakKeyDictionary()


def registered_passes(manager: PackManager | None = None) -> list[Pass]:
    """Every pass of the packs in use, in the order in which they run.

    Args:
        manager: The packs; default: those of the process.

    Passes that wait for each other in a circle, as those of two packs may, stop nobody: the first of them by name runs
    first, with a PackWarning.

    Returns:
        The passes.
    """
    manager = manager or default_manager()
    targets = manager.targets("pass")
    revision, known = _KNOWN.get(manager, (-1, ()))
    if revision != manager.revision:
        revision, known = manager.revision, tuple(_passes(targets))
        _KNOWN[manager] = revision, known
    return list(known)


def _passes(targets: Iterable[tuple[str, str, Any]]) -> list[Pass]:
    found = []
    for owner, key, target in targets:
        options = json.loads(key)
        options |= {name: tuple(options.get(name, ())) for name in ("after", "before", "ops")}
        found.append(Pass(target=target, owner=owner, **options))
    return _ordered(found)


def _ordered(passes: Sequence[Pass]) -> list[Pass]:
    """The passes so that each comes after those that it names, and by rank where nobody names anything."""
    earlier = _predecessors(passes)
    ordered: list[Pass] = []
    # Stages and names fix the rest, so that the order does not depend on the order of installation.
    waiting, done = sorted(passes, key=lambda p: p.rank), set[str]()
    while waiting:
        ready = next((p for p in waiting if earlier[p.name] <= done), None) or _first_of_circle(waiting, earlier)
        waiting.remove(ready)
        ordered.append(ready)
        done.add(ready.name)
    return ordered


def _first_of_circle(waiting: Sequence[Pass], earlier: Mapping[str, set[str]]) -> Pass:
    """The pass that runs though others should run before it; with a warning."""
    circle = list(waiting)
    # What is in no circle waits for one: no pass waits for it.
    while inner := [p for p in circle if any(p.name in earlier[other.name] for other in circle)]:
        if len(inner) == len(circle):
            break
        circle = inner
    circle.sort(key=lambda p: (p.rank, p.name))
    owners = sorted({p.owner for p in circle})
    warn(
        f"passes wait for each other in a circle: {', '.join(f'{p.name} of {p.owner}' for p in circle)}; "
        f"{circle[0].name} runs first. Change `after` or `before` of one of them, or leave a pack out: "
        + " or ".join(f"OPRACK_BLOCK={owner}" for owner in owners),
        PackWarning,
    )
    return circle[0]


def _predecessors(passes: Sequence[Pass]) -> dict[str, set[str]]:
    """For each pass the names of those that run before it: by `after`, by `before`, and by stage."""
    ranks = {p.name: p.rank for p in passes}
    names = ranks.keys()
    earlier = {p.name: {n for n in p.after if n in names} for p in passes}
    for p in passes:
        for n in names & p.before:
            earlier[n].add(p.name)
    for name, rank in ranks.items():
        earlier[name].update([other for other in names if ranks[other] < rank])
    return earlier


def select_passes(
    place: Place | None = None,
    *,
    manager: PackManager | None = None,
    excluded_libraries: Collection[str] = (),
    strict: bool = False,
    inference: bool = True,
    precisions: Mapping[str, Collection[str] | None] = _NONE,
    enabled: Collection[str] = (),
) -> list[Pass]:
    """The passes that serve a place and the kernel libraries that may run there, in order.

    Args:
        place: The place; default: the CPU.
        manager: The packs; default: those of the process.
        excluded_libraries: Kernel libraries whose passes are left out.
        strict: Whether to leave out those that change the order of sums.
        inference: Whether to include those that take parameters for constants.
        precisions: Dtypes that ops may compute in other than their own, each with the op types that may; None: all.
        enabled: Names of optional passes that run.

    Returns:
        The passes.
    """
    manager = manager or default_manager()
    kind = (place or CPUPlace()).kind
    passes = [p for p in registered_passes(manager) if p.place in (None, kind) and p.library not in excluded_libraries]
    passes = [p for p in passes if p.optional is not True or p.name in enabled]
    wanted = {n for p in passes for n in (p.library, p.optional) if isinstance(n, str)}
    if wanted:  # asking for the libraries loads them
        libraries = manager.extensions.libraries()
        idle = {name for name in wanted & libraries.keys() if not _is_usable(libraries[name])}
        serve = libraries.keys() - idle - {*excluded_libraries}
        passes = [p for p in passes if p.library not in idle and (p.optional not in serve or p.name in enabled)]
    return [p for p in passes if _serves(p, strict, inference) and _asked_for(p, precisions)]


def _is_usable(library: Any) -> bool:
    """Whether a kernel library was imported, and says of itself that it serves this process, if it says anything."""
    return not isinstance(library, Exception) and (not hasattr(library, "usable") or library.usable())


def _asked_for(one: Pass, precisions: Mapping[str, Collection[str] | None]) -> bool:
    """Whether a pass leaves ops their precision, or users want the one that it brings, for some of its ops."""
    if not one.precision:
        return True
    ops = precisions.get(one.precision, ())
    return ops is None or not {*one.ops}.isdisjoint(ops)


def _serves(one: Pass, strict: bool, inference: bool) -> bool:
    return not (strict and one.reorders_sums) and (inference or not one.inference_only)


def find_pass(name: str, manager: PackManager | None = None) -> Pass:
    """A pass by its name.

    Args:
        name: The name.
        manager: The packs; default: those of the process.

    Returns:
        The pass.

    Raises:
        NotFoundError: The message lists the passes.
    """
    passes = registered_passes(manager)
    for p in passes:
        if p.name == name:
            return p
    raise NotFoundError(f"no installed pack brings pass {name!r}; there are {', '.join(p.name for p in passes)}")


# Running them --------------------------------------------------------------------------------------------------------
DEBUG = "OPRACK_IR_DEBUG"
"""Environment variable: 1 = verify every graph before the first pass and after each."""

# Each block costs a look at all others.
_MOST_BLOCKS = 64


class ModelWarning(UserWarning):
    """A program says of an op what the op contradicts; it is rewritten less than others, and may run all the same."""


@dataclass
class PassReport:
    """What a pass did.

    Attributes:
        name: The pass.
        owner: The distribution that brings it.
        matches: How many rewrites it made.
        ops_before: Number of ops in the whole program before it.
        ops_after: The same after it.
        milliseconds: How long it took.
        error: Why it was left out, "" when it ran.
    """

    name: str
    owner: str
    matches: int = 0
    ops_before: int = 0
    ops_after: int = 0
    milliseconds: float = 0.0
    error: str = ""


@dataclass
class Optimized:
    """A rewritten program.

    Attributes:
        program: The program.
        reports: What each pass did.
        unused: Parameters of the scope that the program reads no more.
    """

    program: ProgramDesc
    reports: list[PassReport] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)


def optimize(
    program: ProgramDesc,
    scope: Scope,
    *,
    keep: Iterable[str] = (),
    passes: Sequence[Pass] | None = None,
    place: Place | None = None,
    manager: PackManager | None = None,
    debug: bool | None = None,
) -> Optimized:
    """Run passes over every block of a copy of the program.

    A pass that fails is reported and leaves no trace in the program.

    Args:
        program: The program; it is not changed.
        scope: Scope with the values of parameters; folded ones are added under fresh names.
        keep: Variables that are read after a run, besides those of fetch ops.
        passes: Default: all for inference at `place`.
        place: Where it will run; default: the CPU.
        manager: The packs; default: those of the process.
        debug: Verify after every pass; default as the environment variable OPRACK_IR_DEBUG says.

    Returns:
        The rewritten program, and a report for each pass.

    Raises:
        GraphError: Verification failed after a pass.
    """
    manager = manager or default_manager()
    chosen = list(select_passes(place, manager=manager) if passes is None else passes)
    verifying = os.environ.get(DEBUG, "") not in ("", "0") if debug is None else debug
    runner = _Runner(program, scope, frozenset(keep), place, manager, verifying)
    # A pass that failed may have left the graph half rewritten, so all passes begin anew without it; each round leaves
    # one out, so this ends.
    while True:
        try:
            return runner.run(chosen)
        except _Failed as failed:
            if verifying and isinstance(failed.cause, GraphError):
                raise GraphError(f"pass {failed.one.name} of {failed.one.owner}: {failed.cause}") from failed.cause
            runner.leave_out(failed)


class _Failed(Exception):
    """A pass raised; the program may be half rewritten."""

    def __init__(self, one: Pass, cause: Exception) -> None:
        super().__init__(one.name)
        self.one, self.cause = one, cause


class _Runner:
    """Runs passes over the blocks of a program; begins anew without those that failed."""

    def __init__(
        self,
        program: ProgramDesc,
        scope: Scope,
        keep: frozenset[str],
        place: Place | None,
        manager: PackManager,
        verifying: bool,
    ) -> None:
        self.program, self.scope, self.keep, self.place = program, scope, keep, place
        self.manager, self.verifying = manager, verifying
        self.failed: dict[str, str] = {}
        self.flaw: str | None = None
        self.warned = False

    def leave_out(self, failed: _Failed) -> None:
        """Report a pass that failed, and skip it from now on.

        Who is to blame says the program as it came: one that has no flaw makes it a defect of the pack.
        """
        one = failed.one
        self.failed[one.name] = f"{type(failed.cause).__name__}: {failed.cause}"
        text = f"pass {one.name} of {one.owner} is left out: {self.failed[one.name]}"
        # Looked for once, and only when something failed: verifying takes as long as many passes.
        if self.flaw is None:
            self.flaw = self._find_flaw()
        if not self.flaw:
            warn(text, BrokenPackWarning)
        elif not self.warned:
            self.warned = True
            warn(
                f"the program contradicts itself, so passes can't rewrite all of it: {self.flaw}; {text}", ModelWarning
            )

    def _find_flaw(self) -> str:
        """What contradicts what in the program before any pass; "" when nothing does."""
        for index in range(min(len(self.program.blocks), _MOST_BLOCKS)):
            try:
                verify(self._graph(self.program, index))
            except GraphError as error:
                return str(error)
        return ""

    def _graph(self, program: ProgramDesc, index: int, facts: ProgramFacts | None = None, own: bool = False) -> Graph:
        return Graph(
            *(program, index),
            scope=self.scope,
            keep=self.keep,
            manager=self.manager,
            place=self.place,
            facts=facts,
            own=own,
        )

    def run(self, passes: Sequence[Pass]) -> Optimized:
        """Run all passes over one block after the other. Raises _Failed when one can't be imported or fails."""
        reports = [PassReport(p.name, p.owner, error=self.failed.get(p.name, "")) for p in passes]
        program = self.program
        facts = ProgramFacts(program, self.scope, self.manager)  # a block is as it was until its own turn
        graphs: list[Graph] = []
        try:
            for index in range(min(len(program.blocks), _MOST_BLOCKS)):
                graphs.append(self._graph(program, index, facts, own=program is not self.program))
                self._run_block(graphs[-1], passes, reports)
                program = graphs[-1].to_program()
                graphs[-1].take_apart()
        # An interrupt, too, must not leave parameters of half a rewrite in the scope.
        except BaseException:
            for graph in graphs:
                graph.discard()
            raise
        ops = sum(len(block.ops) for block in self.program.blocks)
        for report in reports:
            report.ops_before, ops = ops, ops + report.ops_after
            report.ops_after = ops
        gone = names_of(self.program) - names_of(program) - self.keep
        persistable = {v.name for b in self.program.blocks for v in b.vars.values() if v.persistable}
        return Optimized(program, reports, sorted(persistable & gone))

    def _run_block(self, graph: Graph, passes: Sequence[Pass], reports: Sequence[PassReport]) -> None:
        # What held before is compared with what holds after each pass.
        facts = verify(graph) if self.verifying else None
        for one, report in zip(passes, reports, strict=True):
            if report.error:
                continue
            start, ops = time.perf_counter(), len(graph)
            try:
                matches = one.load()(graph)
                if not isinstance(matches, int):
                    raise PackError(f"{one.target!r} returned {matches!r}; expected how often it rewrote the graph")
                if matches and self.verifying:
                    verify(graph, facts)
            except Exception as error:
                let_interruptions_pass()
                raise _Failed(one, error) from error
            report.matches += matches
            report.ops_after += len(graph) - ops
            report.milliseconds += (time.perf_counter() - start) * 1e3
