"""Looks for an example that differs, and shrinks it, with Hypothesis."""

from __future__ import annotations

import fnmatch
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oprack.testing.fuzz.examples.example import Example
from oprack.testing.fuzz.examples.strategies import hypothesis
from oprack.testing.fuzz.reduce import reduced
from oprack.testing.fuzz.runs.check import Checker
from oprack.testing.fuzz.runs.outcome import Difference


@dataclass(frozen=True)
class Known:
    """A known difference: examples that have all of `ops` may differ on the paths and in the kinds that match.

    path, kind: patterns as of fnmatch. parts: instead of a path, those that a path must have. reason: why it is no
    defect, or why it stays.
    """

    path: str
    kind: str
    ops: frozenset[str]
    parts: frozenset[str] = frozenset()
    reason: str = ""

    def covers(self, difference: Difference, parts: frozenset[str], op_types: Sequence[str]) -> bool:
        """Whether a difference on a path of these parts is the known one."""
        on_path = self.parts <= parts if self.parts else fnmatch.fnmatchcase(difference.path, self.path)
        return on_path and fnmatch.fnmatchcase(difference.kind, self.kind) and self.ops <= set(op_types)


def read_known(path: Path) -> list[Known]:
    """Known differences of a TOML file: tables [[known]] with path, kind, ops (each may be left out) and reason."""
    rows = tomllib.loads(path.read_text("utf-8")).get("known", [])
    return [
        Known(r.get("path", "*"), r.get("kind", "*"), frozenset(r.get("ops", ())), reason=r["reason"]) for r in rows
    ]


@dataclass
class Failure:
    """A difference and the smallest example of it. parts: of its path. after, seconds: until it was found."""

    difference: Difference
    example: Example
    seed: int
    parts: frozenset[str]
    after: int
    seconds: float

    @property
    def known(self) -> Known:
        """What examples with the same difference have in common."""
        return Known(self.difference.path, self.difference.kind, frozenset(self.example.op_types), self.parts)


class _FoundError(Exception):
    pass


def search(
    strategy: Any,
    checker: Checker,
    *,
    seed: int,
    examples: int = 50,
    seconds: float = 60.0,
    shrink_seconds: float = 20.0,
    known: Sequence[Known] = (),
    check: Callable[..., list[Difference]] | None = None,
) -> Failure | None:
    """The first example that differs in a way that is not known, made as small as the time lets; None without one.

    examples, seconds: after which the search ends. check: in place of checker.check.
    """
    h = hypothesis()
    one = _Search(checker, check or checker.check, seed, seconds, shrink_seconds, known)
    settings = h.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=h.Verbosity.quiet,
        suppress_health_check=list(h.HealthCheck),
        phases=[h.Phase.generate, h.Phase.shrink],
    )

    # a plain function, since Hypothesis takes a method's self for an argument of the test
    def test(example: Example) -> None:
        one.test(example)

    try:
        h.seed(seed)(settings(h.given(strategy)(test)))()
    except _FoundError:
        pass
    except Exception as error:
        # one that does not fail each time (foreign memory was read, or the time is over) is found all the same
        if one.found is None or not isinstance(error, (h.errors.HypothesisException, BaseExceptionGroup)):
            raise
    if one.found is not None:
        _reduce(one.found, checker, one.run, shrink_seconds)
    return one.found


class _Search:
    """One search: examples until a difference is found, then smaller examples with the same difference.

    Attributes:
        found: The failure, with the smallest example so far; None before there is one.
    """

    def __init__(
        self,
        checker: Checker,
        run: Callable[..., list[Difference]],
        seed: int,
        seconds: float,
        shrink_seconds: float,
        known: Sequence[Known],
    ) -> None:
        self.run = run
        self.found: Failure | None = None
        self._seed, self._seconds, self._shrink_seconds, self._known = seed, seconds, shrink_seconds, known
        self._parts = {p.name: p.parts for p in checker.paths}
        self._start = time.monotonic()
        self._shrinking_until = 0.0
        self._count = 0

    def test(self, example: Example) -> None:
        """What Hypothesis calls. Raises _FoundError when the example differs in the way that is looked for."""
        now = time.monotonic()
        for difference in self._differences(example, now):
            own = self._parts.get(difference.path, frozenset())
            if any(k.covers(difference, own, example.op_types) for k in self._known):
                continue
            if self.found is None:
                self.found = Failure(difference, example, self._seed, own, self._count, now - self._start)
                self._shrinking_until = now + self._shrink_seconds
            elif difference.kind != self.found.difference.kind:
                continue
            elif _size(example) <= _size(self.found.example):
                self.found.example, self.found.difference = example, difference
            raise _FoundError

    def _differences(self, example: Example, now: float) -> list[Difference]:
        """What differs by any path, or once there is a failure, by its path alone; nothing when the time is over."""
        if self.found is not None:
            over = now > self._shrinking_until
            return [] if over else self.run(example, names=[self.found.difference.path], first=True)
        if now - self._start > self._seconds:
            return []
        self._count += 1
        return self.run(example, first=True)


def _reduce(found: Failure, checker: Checker, run: Callable[..., list[Difference]], seconds: float) -> None:
    """Make a failure's program smaller."""

    def fails(example: Example) -> bool:
        for difference in run(example, names=[found.difference.path], first=True):
            if difference.kind == found.difference.kind:
                found.difference = difference
                return True
        return False

    variable = found.difference.variable
    found.example = reduced(found.example, variable, fails, checker.reference, seconds)


def _size(example: Example) -> tuple[int, int, int]:
    values = [v for run in [*example.runs, example.params] for v in run.values()]
    sizes = [getattr(getattr(v, "array", getattr(v, "value", None)), "size", 1) for v in values]
    return sum(len(b.ops) for b in example.program.blocks), len(example.runs), int(sum(sizes))
