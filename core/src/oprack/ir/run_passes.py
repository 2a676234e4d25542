"""Runs passes over a program, and reports what each of them did."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import field

from oprack.desc import ProgramDesc
from oprack.errors import GraphError, PackError
from oprack.interruption import let_interruptions_pass
from oprack.ir.facts import ProgramFacts
from oprack.ir.graph import Graph
from oprack.ir.nodes import names_of
from oprack.ir.passes import Pass, select_passes
from oprack.ir.verify import verify
from oprack.packs.discovery import BrokenPackWarning, warn
from oprack.packs.manager import PackManager, default_manager
from oprack.records import dataclass
from oprack.tensor import Place, Scope

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
