"""The registry of passes: which there are, in which order they run, and running them on a program."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from oprack.desc import ProgramDesc
from oprack.errors import GraphError, InvalidArgumentError, NotFoundError, PackError
from oprack.ir.facts import ProgramFacts
from oprack.ir.graph import Graph
from oprack.ir.names import names_of
from oprack.ir.verify import verify
from oprack.packs.info import BrokenPackWarning, warn
from oprack.packs.manager import PackManager, default_manager
from oprack.packs.register import STAGES
from oprack.packs.resolve import import_object
from oprack.tensor import CPUPlace, Place, Scope

DEBUG = "OPRACK_IR_DEBUG"
"""Environment variable: 1 = verify every graph before the first pass and after each."""

# Each block costs a look at all others.
_MOST_BLOCKS = 64

# Among which passes one that says no stage runs, unless its `after` and `before` say otherwise.
_DEFAULT_STAGE = "fuse"


class ModelWarning(UserWarning):
    """A program says of an op what the op contradicts; it is rewritten less than others, and may run all the same."""


@dataclass(frozen=True)
class Pass:
    """A registered pass.

    Attributes:
        owner: The distribution that brings it; the rest as for `register.pass_`.
    """

    name: str
    target: str
    owner: str
    stage: str = ""
    place: str | None = None
    library: str | None = None
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    reorders_sums: bool = False
    inference_only: bool = True

    @property
    def rank(self) -> tuple[int, bool]:
        """The stage by number, and whether it serves only one place or library; it runs after lower ones."""
        return STAGES.index(self.stage or _DEFAULT_STAGE), bool(self.place or self.library)

    def load(self) -> Any:
        """The function, imported now. Raises PackImportError."""
        return import_object(self.target, f"pass {self.name} of {self.owner}")


@dataclass
class PassReport:
    """What a pass did.

    Attributes:
        ops_before, ops_after: Number of ops in the whole program.
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
        unused: Parameters of the scope that the program reads no more.
    """

    program: ProgramDesc
    reports: list[PassReport] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)


# What a manager's packs bring, and the revision for which it holds: a model that is loaded asks several times
_KNOWN: WeakKeyDictionary[PackManager, tuple[int, tuple[Pass, ...]]] = WeakKeyDictionary()


def registered_passes(manager: PackManager | None = None) -> list[Pass]:
    """Every pass of the packs in use, in the order in which they run.

    Raises:
        InvalidArgumentError: When stages, `after` and `before` lead in a circle or two packs bring one name.
    """
    manager = manager or default_manager()
    targets = manager.targets("pass")
    revision, known = _KNOWN.get(manager, (-1, ()))
    if revision != manager.revision:
        revision, known = manager.revision, tuple(_passes(targets))
        _KNOWN[manager] = revision, known
    return list(known)


def _passes(targets: Iterable[tuple[str, str, Any]]) -> list[Pass]:
    found: dict[str, Pass] = {}
    for owner, key, target in targets:
        options = json.loads(key)
        options["after"], options["before"] = tuple(options["after"]), tuple(options["before"])
        one = Pass(target=target, owner=owner, **options)
        if one.name in found:
            raise InvalidArgumentError(
                f"pass {one.name!r} is brought by {found[one.name].owner} and by {owner}; leave one out: "
                f"OPRACK_BLOCK={owner} or OPRACK_BLOCK={found[one.name].owner}"
            )
        found[one.name] = one
    return _ordered(list(found.values()))


def _ordered(passes: Sequence[Pass]) -> list[Pass]:
    names = {p.name for p in passes}
    earlier = {p.name: {n for n in p.after if n in names} for p in passes}
    for p in passes:
        for n in p.before:
            if n in names:
                earlier[n].add(p.name)
    staged = [p for p in passes if p.stage]
    for p in staged:
        earlier[p.name].update(other.name for other in staged if other.rank < p.rank)
    ordered: list[Pass] = []
    waiting = sorted(passes, key=lambda p: p.rank)
    while waiting:
        done = {p.name for p in ordered}
        ready = next((p for p in waiting if earlier[p.name] <= done), None)
        if ready is None:
            raise InvalidArgumentError(
                f"passes wait for each other in a circle: {', '.join(p.name for p in waiting)}; change `after` or "
                "`before` of one of them"
            )
        waiting.remove(ready)
        ordered.append(ready)
    return ordered


def select_passes(
    place: Place | None = None,
    *,
    manager: PackManager | None = None,
    excluded_libraries: Collection[str] = (),
    strict: bool = False,
    inference: bool = True,
) -> list[Pass]:
    """The passes that serve a place and the kernel libraries that may run there, in order.

    Args:
        strict: Whether to leave out those that change the order of sums.
        inference: Whether to include those that take parameters for constants.
    """
    manager = manager or default_manager()
    kind = (place or CPUPlace()).kind
    passes = [p for p in registered_passes(manager) if p.place in (None, kind) and p.library not in excluded_libraries]
    if any(p.library for p in passes):
        broken = {name for name, library in manager.libraries().items() if isinstance(library, Exception)}
        passes = [p for p in passes if p.library not in broken]
    return [p for p in passes if not (strict and p.reorders_sums) and (inference or not p.inference_only)]


def find_pass(name: str, manager: PackManager | None = None) -> Pass:
    """A pass by its name.

    Raises:
        NotFoundError: The message lists the passes.
    """
    passes = registered_passes(manager)
    for p in passes:
        if p.name == name:
            return p
    raise NotFoundError(f"no installed pack brings pass {name!r}; there are {', '.join(p.name for p in passes)}")


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
        scope: Scope with the values of parameters; folded ones are added under fresh names.
        keep: Variables that are read after a run, besides those of fetch ops.
        passes: Default: all for inference at `place`.
        debug: Verify after every pass; default as the environment variable OPRACK_IR_DEBUG says.

    Raises:
        GraphError: Verification failed after a pass.
    """
    manager = manager or default_manager()
    chosen = list(select_passes(place, manager=manager) if passes is None else passes)
    verifying = os.environ.get(DEBUG, "") not in ("", "0") if debug is None else debug
    runner = _Runner(program, scope, frozenset(keep), place, manager, verifying)
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

    def _graph(self, program: ProgramDesc, index: int, facts: ProgramFacts | None = None) -> Graph:
        return Graph(
            *(program, index),
            scope=self.scope,
            keep=self.keep,
            manager=self.manager,
            place=self.place,
            facts=facts,
        )

    def run(self, passes: Sequence[Pass]) -> Optimized:
        """Run all passes over one block after the other. Raises _Failed when one can't be imported or fails."""
        reports = [PassReport(p.name, p.owner, error=self.failed.get(p.name, "")) for p in passes]
        program = self.program
        facts = ProgramFacts(program, self.scope, self.manager)  # a block is as it was until its own turn
        graphs: list[Graph] = []
        try:
            for index in range(min(len(program.blocks), _MOST_BLOCKS)):
                graphs.append(self._graph(program, index, facts))
                self._run_block(graphs[-1], passes, reports)
                program = graphs[-1].to_program()
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
                raise _Failed(one, error) from error
            report.matches += matches
            report.ops_after += len(graph) - ops
            report.milliseconds += (time.perf_counter() - start) * 1e3
