"""Programs of calls with global tensors: how they run on ranks and on one, and how the two are compared."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from unittest.mock import patch

import numpy as np
from oprack.autograd.walk import backward, grad
from oprack.eager_tensor.devices import RANDOM
from oprack.errors import UnimplementedError
from oprack.functional.tensor import Tensor, to_tensor
from oprack.interpreter.modes import current_mode
from oprack.interpreter.op_expr import OpExpr
from oprack.parallel.communicator import Communicator
from oprack.parallel.layouts.layout import Placement
from oprack.parallel.world import placement
from oprack.testing.splitting import TOLERANCE
from oprack.testing.worlds import ThreadWorld

_LARGEST = 4096
"""Of a tensor of a program, in elements."""
Lod = tuple[tuple[int, ...], ...]

# Seconds for which a rank waits for one that computes; a busy machine takes its time, and deadlocks are known at once.
PATIENCE = 600.0


@dataclass(frozen=True)
class Start:
    """A tensor with which a program begins.

    Attributes:
        name: By which calls name it.
        array: Its value.
        lod: Its offsets.
        sbps: How it lies over the axes of the grid.
        grad: Whether its gradient is asked for.
        from_whole: Whether every rank brings the whole, or its own part.
    """

    name: str
    array: np.ndarray = field(repr=False)
    lod: Lod
    sbps: tuple[str, ...]
    grad: bool
    from_whole: bool

    def __str__(self) -> str:
        lod = f", lod={list(map(list, self.lod))}" if self.lod else ""
        how = ("" if self.from_whole else ", each rank its part") + (", gradient" if self.grad else "")
        return f"{self.name} = {self.array.dtype}{list(self.array.shape)}{lod} in [{', '.join(self.sbps)}]{how}"


@dataclass(frozen=True)
class Call:
    """A call of an op: attributes, names of the tensors it reads, and of those it makes ("" for none)."""

    expr: OpExpr = field(repr=False)
    reads: tuple[str, ...]
    makes: tuple[str, ...]

    def __str__(self) -> str:
        attrs = ", ".join(f"{k}={v!r}" for k, v in self.expr.attrs.items())
        where = " in place" if self.expr.in_place else ""
        return f"{', '.join(n or '_' for n in self.makes)} = {self.expr.type}({', '.join(self.reads)}; {attrs}){where}"


@dataclass(frozen=True)
class Move:
    """A tensor in another layout, perhaps over another grid of the same ranks on the way."""

    reads: tuple[str, ...]
    makes: tuple[str, ...]
    sbps: tuple[str, ...]
    by: tuple[tuple[int, ...], tuple[str, ...]] | None

    def __str__(self) -> str:
        by = f" by {list(self.by[0])} [{', '.join(self.by[1])}]" if self.by else ""
        return f"{self.makes[0]} = {self.reads[0]}.to_global([{', '.join(self.sbps)}]){by}"


@dataclass(frozen=True)
class RankProgram:
    """What runs on one rank and on the ranks of a grid.

    Attributes:
        grid: The grid.
        starts: Its tensors.
        steps: Its calls.
        twice: Whether gradients are differentiated again.
    """

    grid: tuple[int, ...]
    starts: tuple[Start, ...] = ()
    steps: tuple[Call | Move, ...] = ()
    twice: bool = False

    def __str__(self) -> str:
        return "\n".join(
            [
                f"    grid {' x '.join(map(str, self.grid))}{', second gradients' * self.twice}",
                *(f"    {s}" for s in self.starts + self.steps),
            ]
        )

    @property
    def ranks(self) -> int:
        return math.prod(self.grid)


@dataclass
class Result:
    """What a run gave.

    Attributes:
        arrays: Values by name, and gradients of the starts as "gradient of t0" and "second gradient of t0".
        lods: The LoD of each value.
        layouts: The layout of each value, in words.
        shared: Names of values in whose memory another one lies; of runs on one process.
    """

    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    lods: dict[str, Lod] = field(default_factory=dict)
    layouts: dict[str, str] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)


# Running --------------------------------------------------------------------------------------------------------------
def run(program: RankProgram, grid: Placement | None = None, moved: float = 0.0, seed: int = 0) -> Result:
    """Run a program, gradients included.

    Args:
        program: The program.
        grid: The grid of the ranks, all of which run it; None: on this process alone.
        moved: By which part of itself each float that goes in is changed at most.
        seed: Of these changes.

    Returns:
        What it gave.
    """
    tensors: dict[str, Tensor] = {}
    leaves: dict[str, Tensor] = {}
    numbers = np.random.default_rng(seed)
    for s in program.starts:
        array = s.array
        if moved and array.dtype.kind == "f":
            array = (array * (1 + moved * numbers.uniform(-1, 1, array.shape))).astype(array.dtype)
        leaf = to_tensor(array.copy(), lod=[list(level) for level in s.lod] or None)
        leaf.requires_grad = s.grad
        leaves[s.name] = tensors[s.name] = leaf
        if grid is not None:
            tensors[s.name] = _laid_out(leaf, s, grid)
    for step in program.steps:
        if isinstance(step, Move):
            tensors[step.makes[0]] = _moved(tensors[step.reads[0]], step, grid)
            continue
        made = current_mode().interpreter.apply(step.expr, [tensors[n] for n in step.reads])
        if grid is not None and not step.reads:  # such a call makes tensors of this process alone
            whole = ["B"] * len(grid.shape)
            made = [None if y is None else y.to_global(grid, whole, from_whole=True) for y in made]
        tensors |= {name: y for name, y in zip(step.makes, made, strict=True) if name and y is not None}
    ends = [y for y in tensors.values() if y.requires_grad and y._node is not None and y._meta.differentiable]
    wanted = {n: leaf for n, leaf in leaves.items() if leaf.requires_grad}
    if ends and not program.twice:
        backward(ends, [_cotangent(y) for y in ends])
    gradients = {n: leaf.grad for n, leaf in wanted.items()} if not program.twice else _slopes(ends, wanted, True)
    arrays = {n: y.numpy() for n, y in tensors.items()}
    arrays |= {f"gradient of {n}": g.numpy() for n, g in gradients.items() if g is not None}
    if program.twice:
        again = [g for g in gradients.values() if g is not None and g._node is not None]
        found = _slopes(again, wanted, False)
        arrays |= {f"second gradient of {n}": g.numpy() for n, g in found.items() if g is not None}
    lods: dict[str, Lod] = {n: tuple(map(tuple, y.lod)) for n, y in tensors.items()}
    shared = _shared(tensors) if grid is None else set()
    return Result(arrays, lods, {n: str(y.layout) for n, y in tensors.items()}, shared)


def _slopes(ends: Sequence[Tensor], wanted: Mapping[str, Tensor], again: bool) -> dict[str, Tensor | None]:
    """Gradients by name, recorded where they are differentiated again."""
    if not ends or not wanted:
        return {}
    cotangents = [_cotangent(y) for y in ends]
    found = grad(ends, list(wanted.values()), cotangents, create_graph=again, allow_unused=True)
    return dict(zip(wanted, found, strict=True))


def _shared(tensors: Mapping[str, Tensor]) -> set[str]:
    memory = {n: np.asarray(y._value) for n, y in tensors.items()}
    return {n for n, a in memory.items() if any(m != n and np.may_share_memory(a, b) for m, b in memory.items())}


def _laid_out(leaf: Tensor, start: Start, grid: Placement) -> Tensor:
    if start.from_whole:
        return leaf.to_global(grid, start.sbps, from_whole=True)
    layout = grid.layout(start.sbps)
    part = start.array[layout.part(start.array.shape)]
    for k, s in enumerate(layout.sbps):
        if s.kind == "P":
            part = _summand(part, grid.shape[k], grid.coords[k])
    return to_tensor(part.copy()).to_global(grid, start.sbps)


def _summand(x: np.ndarray, ranks: int, rank: int) -> np.ndarray:
    """A rank's summand of x, by powers of 2, so that the sum of what `summable` gave has the same bits in any order.

    Of integers, small ones.
    """
    if x.dtype.kind == "f":
        return np.asarray(x * np.asarray(0.5 ** min(rank + 1, ranks - 1), x.dtype))
    return x - (ranks - 1) if rank == 0 else np.ones_like(x)


def summable(x: np.ndarray) -> np.ndarray:
    """An array without the last four bits of its floats: what half and a quarter of it add up to is then exact."""
    if x.dtype.kind != "f":
        return x
    bits = np.finfo(x.dtype).nmant - 3
    parts, exponents = np.frexp(x)
    rounded: np.ndarray = np.ldexp(np.round(np.ldexp(parts, bits)), exponents - bits)
    return rounded.astype(x.dtype, copy=False)


def _moved(x: Tensor, step: Move, grid: Placement | None) -> Tensor:
    if grid is None:
        return x
    if step.by is not None:
        x = x.to_global(placement("cpu", step.by[0]), step.by[1], from_whole=x.layout is None)
    return x.to_global(grid, step.sbps, from_whole=x.layout is None)  # a call without inputs makes one of this process


def _cotangent(y: Tensor) -> Tensor:
    values = np.cos(np.arange(y.size, dtype=np.float64)).reshape(y.shape).astype(y._meta.dtype)
    layout, start = y.layout, to_tensor(values)
    return start if layout is None else start.to_global(layout.placement, ["B"] * len(layout.sbps), from_whole=True)


def check(program: RankProgram, wanted: Result | None = None, ranks: Communicator | None = None) -> str:
    """Compare a program on its ranks with one rank.

    Args:
        program: The program.
        wanted: What one rank gives; default: it is run.
        ranks: The real ranks, all of which check the same program; default: simulated ones.

    Returns:
        What differs; "" when nothing does, or when the ranks say that they can't do something.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want = wanted or run(program)
        try:
            if ranks is not None:
                found = [run(program, placement("cpu", program.grid))]
            else:
                world = ThreadWorld(program.ranks, wait=PATIENCE)
                found = world.run(lambda _: run(program, placement("cpu", program.grid)))
        except UnimplementedError:
            return ""
        except Exception as e:
            return f"{type(e).__name__}: {e}"
        for rank, got in enumerate(found):
            text = _difference(want, got, program) or _other_layout(found[0], got)
            if text:
                return f"rank {ranks.rank if ranks is not None else rank}: {text}"
    return ""


def _other_layout(first: Result, other: Result) -> str:
    for name, text in first.layouts.items():
        if other.layouts[name] != text:
            return f"{name} lies in {other.layouts[name]}; on rank 0 in {text}"
    return ""


def _difference(want: Result, got: Result, program: RankProgram) -> str:
    for name, lod in want.lods.items():
        if lod != got.lods[name]:
            return f"{name} has LoD {got.lods[name]}; expected {lod}"
    tolerances = _tolerances(want, program)
    for name in sorted({*want.arrays, *got.arrays}):
        if (name in want.arrays) != (name in got.arrays):
            return f"{name} is {'there' if name in got.arrays else 'absent'}"
        text = _differs(name, want.arrays[name], got.arrays[name], program, tolerances[name])
        if text:
            return f"{name}: {text}"
    return ""


def _tolerances(want: Result, program: RankProgram) -> dict[str, float]:
    """By name, that of the coarsest floats a value was computed from: float32's rounding stays in what float64 adds."""
    found = {name: TOLERANCE.get(str(a.dtype), 1e-10) for name, a in want.arrays.items()}
    for step in program.steps:
        coarsest = max((found[n] for n in step.reads), default=0.0)
        found |= {n: max(found[n], coarsest) for n in step.makes if n in found}
    coarsest = max(found.values(), default=0.0)
    return found | {n: coarsest for n in found if "gradient of " in n}


def _differs(name: str, a: np.ndarray, b: np.ndarray, program: RankProgram, tolerance: float) -> str:
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{b.dtype}{list(b.shape)}; expected {a.dtype}{list(a.shape)}"
    if np.array_equal(a, b):
        return ""
    tolerance = tolerance if a.dtype.kind in ("f", "c") else 1e-10
    x, y = (v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in (a, b))
    allowed = tolerance * max(1.0, float(np.abs(x).max(initial=0.0)))
    wrong = ~np.isclose(x, y, rtol=tolerance, atol=allowed)
    # What rounding moves on one rank itself; the sign of a singular vector is one of two
    for seed in range(8) if wrong.any() else ():
        wrong &= np.isclose(x, run(program, moved=tolerance / 16, seed=seed).arrays[name], rtol=tolerance, atol=allowed)
    if not wrong.any():
        return ""
    at = tuple(np.argwhere(wrong)[0].tolist())
    return f"{int(wrong.sum())} of {a.size} elements differ; at {list(at)} {b[at]!s}, expected {a[at]!s}"


def accepted(program: RankProgram) -> Result | None:
    """What one rank gives; None where it refuses, or gives what nobody can compare.

    Random numbers are drawn by the place of an op and by parts, and two draws of few elements may be alike: what draws
    any is left out, not what differs when it is run again.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            with patch.object(RANDOM, "generator", wraps=RANDOM.generator) as drawn:
                found = [run(program), run(program)]
        except Exception:
            return None
    if drawn.called:
        return None
    for name, lod in found[0].lods.items():
        if lod and lod[-1][-1:] != found[0].arrays[name].shape[:1]:
            return None  # a reshape has made it no sequences
    for a, b in zip(*(r.arrays.values() for r in found), strict=True):
        finite = a.dtype.kind not in ("f", "c") or bool(np.isfinite(a).all())
        if a.size > _LARGEST or not finite or not np.array_equal(a, b):
            return None
    return found[0]


def smaller(program: RankProgram, wrong: Callable[[RankProgram], bool], seconds: float = 20.0) -> RankProgram:
    """A program with fewer steps, a smaller grid and plainer layouts that is still wrong."""
    end = time.monotonic() + seconds
    again = True
    while again and time.monotonic() < end:
        again = False
        for tried in _simpler(program):
            if time.monotonic() < end and wrong(tried):
                program, again = tried, True
                break
    return program


def _simpler(p: RankProgram) -> Iterator[RankProgram]:
    if p.twice:
        yield replace(p, twice=False)
    for k in reversed(range(len(p.steps))):
        steps = p.steps[:k] + p.steps[k + 1 :]
        read = {n for s in steps for n in s.reads}
        yield replace(p, steps=steps, starts=tuple(s for s in p.starts if s.name in read))
    for k, start in enumerate(p.starts):
        for axis, s in enumerate(start.sbps):
            if s != "B":
                plain = replace(start, sbps=(*start.sbps[:axis], "B", *start.sbps[axis + 1 :]))
                yield replace(p, starts=(*p.starts[:k], plain, *p.starts[k + 1 :]))
        if start.grad:
            yield replace(p, starts=(*p.starts[:k], replace(start, grad=False), *p.starts[k + 1 :]))
