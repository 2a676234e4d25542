"""Programs with global tensors, on several ranks and on one, which must agree: `python -m oprack.testing.fuzz ranks`.

A program is a few tensors, laid out over a grid of ranks at random, and calls of ops that have a rule of splitting,
whose sizes and attributes are changed from recorded calls. Sizes need not divide, and parts may be empty. One rank says
what is right: values, LoD, gradients and gradients of gradients. A call that one rank refuses, or whose results are
random or not finite, is left out.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from oprack.errors import OprackError
from oprack.interpreter.op_expr import OpExpr
from oprack.op.attrs import COMMON_ATTRS
from oprack.packs.manager import default_manager
from oprack.parallel.world import world
from oprack.tensor import LoDTensor
from oprack.testing.case_folder import collect_cases
from oprack.testing.fuzz.examples.calls import OpCall, seeds
from oprack.testing.fuzz.examples.values import fresh, lod_of
from oprack.testing.fuzz.ranks.runs import (
    Call,
    Lod,
    Move,
    RankProgram,
    Result,
    Start,
    accepted,
    check,
    smaller,
    summable,
)
from oprack.types import EMPTY_VAR

GRIDS = ((2, 2), (3, 2), (2, 3), (4, 2), (2, 1, 2), (2, 2, 2), (2,), (3,), (4,), (2, 4))
SIZES = (7, 5, 3, 1, 2, 4, 6, 8, 9)
_TRIES = 12


class Maker:
    """Makes programs; the same of the same seed, on every rank.

    Args:
        folders: Of recorded cases.
        records: Folders of case files.
        ops: Op types; default: all that have a rule of splitting.
        ranks: How many ranks the programs are for; default: any.
    """

    def __init__(
        self, folders: Sequence[Path] = (), records: Sequence[Path] = (), ops: Sequence[str] = (), ranks: int = 0
    ) -> None:
        manager = default_manager()
        self.ops = list(ops) or [t for t in sorted(manager.op_types()) if manager.op_info(t).sbp is not None]
        self.grids = [g for g in GRIDS if not ranks or math.prod(g) == ranks] or [(ranks,)]
        self._folders = list(folders)
        self._records = [case for folder in records for case in collect_cases(folder)]
        self._calls: dict[str, list[OpCall]] = {}

    def calls(self, op_type: str) -> list[OpCall]:
        """Recorded calls of an op whose inputs are dense."""
        if op_type not in self._calls:
            try:
                found = seeds(op_type, self._folders, self._records, most=6)
            except OprackError:
                found = []
            self._calls[op_type] = [c for c in found if all(isinstance(v, LoDTensor) for v in c.values.values())]
        return self._calls[op_type]

    def program(self, seed: int) -> tuple[RankProgram, Result]:
        """The program of a seed, and what one rank gives."""
        return _Making(self, random.Random(seed), np.random.default_rng(seed)).made()


class _Making:
    def __init__(self, maker: Maker, rng: random.Random, numbers: np.random.Generator) -> None:
        self.maker, self.rng, self.numbers = maker, rng, numbers
        self.now = RankProgram(rng.choice(maker.grids))
        self.result = Result()
        self.names = (f"t{k}" for k in itertools.count())

    def made(self) -> tuple[RankProgram, Result]:
        wanted, tries = self.rng.choice((1, 1, 2, 3, 4, 6)), 0
        while len(self.now.steps) < wanted and tries < _TRIES * wanted:
            tries += 1
            new = self._moved() if self.result.lods and self.rng.random() < 0.15 else self._called()
            result = None if new is None else accepted(new)
            if new is not None and result is not None:
                self.now, self.result = new, result
        if self.now.steps and self.rng.random() < 0.5:
            # Where all gradients have gradients
            twice = replace(self.now, twice=True)
            result = accepted(twice)
            if result is not None:
                return twice, result
        return self.now, self.result

    # A call -----------------------------------------------------------------------------------------------------------
    def _called(self) -> RankProgram | None:
        """The program with one more call: a recorded one, of other sizes, attributes and tensors."""
        calls = self.maker.calls(self.rng.choice(self.maker.ops))
        if not calls:
            return None
        call, info = self.rng.choice(calls), default_manager().op_info
        proto = info(call.type).proto
        sizes: dict[int, int] = {}
        starts, reads, changed = [], [], self.rng.random() < 0.7
        wide = self.rng.random() < 0.8
        for slot in proto.inputs:
            for name in call.inputs.get(slot, ()):
                value = call.values[name]
                taken = self._taken(value, sizes) if changed else None
                if taken is None:
                    starts.append(self._start(value, sizes, changed, wide))
                    taken = starts[-1].name
                reads.append(taken)
        attrs = {k: v for k, v in call.attrs.items() if k in proto.attrs and k not in COMMON_ATTRS}
        if self.rng.random() < 0.5:
            attrs = {k: [sizes.get(n, n) for n in v] if _is_ints(v) else v for k, v in attrs.items()}
        if self.rng.random() < 0.4 and attrs:
            name = self.rng.choice(sorted(attrs))
            attrs[name] = self._other_attr(attrs[name], sizes)
        inputs = tuple((s, len(call.inputs[s])) for s in proto.inputs if call.inputs.get(s))
        outputs = tuple(
            (s, tuple(n != EMPTY_VAR for n in call.outputs[s])) for s in proto.outputs if call.outputs.get(s)
        )
        tied = {s: o for s, o in (info(call.type).inplace or {}).items() if s in dict(inputs) and o in dict(outputs)}
        slots = (s for s, n in inputs for _ in range(n))
        over = {tied[s]: name for s, name in zip(slots, reads, strict=True) if s in tied}
        once = len({*over.values()}) == len(over)  # which of two results a tensor then holds, nothing says
        in_place = tied if tied and once and self._may_overwrite(reads, starts) else {}
        makes = [
            (over.get(slot) if in_place else None)
            or (next(self.names) if flag and not proto.outputs[slot].intermediate else "")
            for slot, flags in outputs
            for flag in flags
        ]
        try:
            checker = info(call.type).checker
            checked = checker.check(attrs) if checker is not None else attrs
            expr = OpExpr(info(call.type), checked, inputs, outputs, in_place, flat=True)
        except OprackError:
            return None
        step = Call(expr, tuple(reads), tuple(makes))
        return replace(self.now, starts=(*self.now.starts, *starts), steps=(*self.now.steps, step))

    def _may_overwrite(self, reads: Sequence[str], starts: Sequence[Start]) -> bool:
        """Now and then, where no tensor is a leaf with a gradient, or by a move two tensors here and one there.

        Nor may another one lie in its memory: here it is changed as well, while a write to a global tensor is seen in
        that alone.
        """
        moved = {n for s in self.now.steps if isinstance(s, Move) for n in (*s.reads, *s.makes)}
        kept = moved | {s.name for s in (*self.now.starts, *starts) if s.grad}
        return self.rng.random() < 0.2 and (kept | self.result.shared).isdisjoint(reads)

    def _taken(self, value: LoDTensor, sizes: dict[int, int]) -> str | None:
        """A tensor of the program that may stand for a recorded one, by which sizes then go."""
        rank, kind = len(value.array.shape), value.array.dtype.kind
        fitting = [
            name
            for name, lod in self.result.lods.items()
            if (array := self.result.arrays[name]).ndim == rank
            and array.dtype.kind == kind == "f"
            and bool(lod) == bool(value.lod)
        ]
        fitting = [
            n
            for n in fitting
            if all(sizes.get(a, b) == b for a, b in zip(value.array.shape, self.result.arrays[n].shape, strict=True))
        ]
        if not fitting or self.rng.random() < 0.25:
            return None
        name = self.rng.choice(fitting)
        sizes |= zip(value.array.shape, self.result.arrays[name].shape, strict=True)
        return name

    def _start(self, value: LoDTensor, sizes: dict[int, int], changed: bool, wide: bool) -> Start:
        old: np.ndarray = np.asarray(value.array)
        lod: Lod = tuple(tuple(level) for level in value.lod)
        shape = list(old.shape)
        for k, n in enumerate(old.shape if changed else ()):
            if n not in sizes:
                sizes[n] = n if n <= 1 or self.rng.random() < 0.4 else self.rng.choice(SIZES)
            shape[k] = sizes[n]
        if lod and changed:
            lod = self._lod(shape[0])
        dtype = np.dtype(np.float64) if wide and old.dtype == np.float32 else old.dtype
        if old.dtype.kind == "f" and changed and self.rng.random() < 0.7:
            array = fresh(self.numbers, shape, dtype)
        else:
            array = np.resize(old, shape).astype(dtype)
        whole = bool(lod) or self.rng.random() < 0.7
        grad = dtype.kind == "f" and whole and self.rng.random() < 0.6
        partial = dtype.kind == "f" or (dtype.kind == "i" and not lod)
        sbps = self._sbps(shape, bool(lod), partial)
        return Start(next(self.names), summable(array) if "P" in sbps else array, lod, sbps, grad, whole)

    def _lod(self, rows: int) -> Lod:
        empty = ["middle"] if self.rng.random() < 0.3 else []
        inner = lod_of(self.numbers, rows, self.rng.choice((1, 2, 3, 5, 8)), empty)
        if self.rng.random() < 0.7:
            return (tuple(inner),)
        return tuple(lod_of(self.numbers, len(inner) - 1, self.rng.choice((1, 2, 4, 6)), [])), tuple(inner)

    def _sbps(
        self, shape: Sequence[int], by_sequence: bool, partial: bool, grid: Sequence[int] = ()
    ) -> tuple[str, ...]:
        axes = len(grid or self.now.grid)
        if by_sequence:
            at = self.rng.randrange(axes + 1)  # along one axis, or none
            return tuple("S(0)" if k == at else "B" for k in range(axes))
        choices = ["B", *(f"S({k})" for k in range(len(shape)))] + (["P"] if partial else [])
        return tuple(self.rng.choice(choices) for _ in range(axes))

    def _other_attr(self, value: Any, sizes: Mapping[int, int]) -> Any:
        """An attribute's value that means something else, perhaps what the shape says."""
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return self.rng.choice((value + 1, value - 1, 0, 1, 2, -1, sizes.get(value, value)))
        if isinstance(value, float):
            return self.rng.choice((0.0, 1.0, -1.0, value * 2))
        if _is_ints(value):
            k = self.rng.randrange(max(1, len(value)))
            new = self.rng.choice((-1, 0, 1, 2, *sizes.values()))
            return self.rng.choice(
                ([], [*value[:k], new, *value[k + 1 :]], list(reversed(value)), value[:-1], [*value, new])
            )
        return value

    # A move -----------------------------------------------------------------------------------------------------------
    def _moved(self) -> RankProgram | None:
        overwritten = {n for s in self.now.steps if isinstance(s, Call) and s.expr.in_place for n in s.reads}
        names = sorted(set(self.result.lods) - overwritten)
        if not names:
            return None
        name = self.rng.choice(names)
        array, lod = self.result.arrays[name], self.result.lods[name]
        partial = array.dtype.kind in "fi" and not lod
        other = tuple(reversed(self.now.grid)) if self.rng.random() < 0.5 else (self.now.ranks,)
        by = None
        if not lod and self.rng.random() < 0.3:
            by = other, self._sbps(array.shape, False, partial, other)
        sbps = self._sbps(array.shape, bool(lod), partial)
        step = Move((name,), (next(self.names),), sbps, by)
        return replace(self.now, steps=(*self.now.steps, step))


def _is_ints(value: Any) -> bool:
    return isinstance(value, list) and all(type(v) is int for v in value)


@dataclass
class Tally:
    """Programs and calls that were run, and what was wrong."""

    programs: int = 0
    steps: int = 0
    failures: list[str] = field(default_factory=list)


def search(
    maker: Maker, seed: int, seconds: float = 0.0, programs: int = 0, say: Callable[[str], None] = print, most: int = 20
) -> Tally:
    """Check programs one after the other, on the ranks of this world, or on simulated ones where it has one rank.

    Args:
        maker: Makes them.
        seed: Of the first program; the next ones have the next seeds.
        seconds: How long; 0: until `programs` are done. Real ranks need a number of programs.
        programs: How many; 0: until the time is over.
        say: Gets what is wrong.
        most: After so many failures it ends.

    Returns:
        What was run and found.
    """
    here = world()
    ranks = here if here.size > 1 else None
    tally, end = Tally(), time.monotonic() + (seconds or math.inf)
    for k in itertools.count(seed):
        if (programs and k - seed >= programs) or time.monotonic() > end or len(tally.failures) >= most:
            return tally
        program, wanted = maker.program(k)
        if not program.steps:
            continue
        tally.programs, tally.steps = tally.programs + 1, tally.steps + len(program.steps)
        text = check(program, wanted, ranks)
        if not text:
            continue
        if ranks is None:
            program = smaller(program, _is_wrong)
            text = check(program) or text
        tally.failures.append(text)
        say(f"FAILED    seed {k}: {text}\n{program}")
    return tally


def _is_wrong(program: RankProgram) -> bool:
    try:
        return accepted(program) is not None and bool(check(program))
    except Exception:
        return False
