"""Looks for an example that differs, and shrinks it, with Hypothesis."""

from __future__ import annotations

import fnmatch
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oprack.testing.fuzz.check import Checker
from oprack.testing.fuzz.example import Example
from oprack.testing.fuzz.outcome import Difference
from oprack.testing.fuzz.reduce import reduced
from oprack.testing.fuzz.strategies import hypothesis


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
    run = check or checker.check
    parts = {p.name: p.parts for p in checker.paths}
    start = time.monotonic()
    found: Failure | None = None
    shrinking_until = 0.0
    count = 0

    def test(example: Example) -> None:
        nonlocal found, shrinking_until, count
        now = time.monotonic()
        if found is None:
            if now - start > seconds:
                return
            count += 1
            differences = run(example, first=True)
        else:
            if now > shrinking_until:
                return
            differences = run(example, names=[found.difference.path], first=True)
        for difference in differences:
            own = parts.get(difference.path, frozenset())
            if any(k.covers(difference, own, example.op_types) for k in known):
                continue
            if found is None:
                found = Failure(difference, example, seed, own, count, now - start)
                shrinking_until = now + shrink_seconds
            elif difference.kind != found.difference.kind:
                continue
            elif _size(example) <= _size(found.example):
                found.example, found.difference = example, difference
            raise _FoundError

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
    try:
        h.seed(seed)(settings(h.given(strategy)(test)))()
    except _FoundError:
        pass
    except Exception as error:
        # one that does not fail each time (foreign memory was read, or the time is over) is found all the same
        if found is None or not isinstance(error, (h.errors.HypothesisException, BaseExceptionGroup)):
            raise
    if found is not None:
        _reduce(found, checker, run, shrink_seconds)
    return found


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
