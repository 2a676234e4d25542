"""What a run gave, and what two runs may differ by: the one statement of tolerances.

SAME: equal bits (NaN equals NaN, 0 equals -0). The prepared plan and eager calls run the same kernels on the same
arrays, so nothing may differ. FLUSHED: so does the predictor, for which denormal numbers are 0. ROUNDED: another
implementation of the same function (a kernel library, a rewrite that keeps sums in order). REORDERED: sums in another
order (a pass that declares `reorders_sums`, gradients that are added up in another order). INTEGERS: what a program
rounds to integers is multiplied as such, so a number half way between two of them may become the other one, and those
that are made of it differ by some steps of 1/127. HALVES: factors, and what is handed on, are rounded to bfloat16, and
what goes into the reference is moved by as much.

An element of a floating output may differ from the reference by rtol, times the largest finite magnitude of the output,
where rtol is that of the output's dtype below. Where a program makes rounding large (a difference of almost equal
numbers, a step function, an overflow), the reference says so itself: it is run again with every float that goes in
changed by ULPS units in the last place, and as much as its outputs then move, times AMPLIFIED, is allowed as well; what
becomes finite, infinite, NaN, or another integer thereby is not compared. It is also run in float64, and where float32
was off by more than rtol, as much as that, times AMPLIFIED, is allowed (all digits of an output may be lost where what
goes in cancels out exactly). Where an output comes within NEAR_OVERFLOW of the largest number, a sum may overflow on
its way or not, and what is finite is not compared. Numbers below the smallest normal number count as 0, since libraries
flush them. dtypes, shapes, LoD and errors have no tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from oprack.errors import OprackError
from oprack.python.interruption import let_interruptions_pass
from oprack.tensor import LoDTensor, LoDTensorArray, SelectedRows, SparseTensor

ULPS, AMPLIFIED, NEAR_OVERFLOW = 4, 16.0, 1024.0
_RTOL = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-12, "complex64": 2e-5, "complex128": 1e-12}


@dataclass(frozen=True)
class Tolerance:
    """How far an output may be from the reference: `factor` times the rtol of its dtype; 0 = equal bits.

    step: by which part of itself each number is moved that goes into the reference, to see what rounding does to it; 0:
    by ULPS.

    flushes: whether a denormal number may be 0.
    """

    name: str
    factor: float
    step: float = 0.0
    flushes: bool = False


SAME = Tolerance("same", 0.0)
FLUSHED = Tolerance("flushed", 0.0, flushes=True)
ROUNDED = Tolerance("rounded", 1.0)
REORDERED = Tolerance("reordered", 10.0)
INTEGERS = Tolerance("integers", 2000.0)
HALVES = Tolerance("halves", 2000.0, 2.0**-8)


@dataclass
class Outcome:
    """Of one run: values by variable (None = left unset), or why there are none.

    refused: the class of the oprack error. raised: of another exception, which no path may let out. text: its message.
    """

    values: dict[str, Any] = field(default_factory=dict)
    refused: str = ""
    raised: str = ""
    text: str = ""

    @property
    def ok(self) -> bool:
        return not (self.refused or self.raised)


@dataclass(frozen=True)
class Difference:
    """One way in which a path differs from the reference.

    kind: value, nan (values, and NaN or infinities among them or among the inputs), dtype, shape, lod, kind, accepted
    (the reference refuses), refused (it does not), raised, failed (a pass that fails), crash, hang. run: number
    of the run. text: what was found, for people.
    """

    path: str
    kind: str
    run: int
    variable: str = ""
    text: str = ""

    def __str__(self) -> str:
        where = f"run {self.run + 1}" + (f", {self.variable}" if self.variable else "")
        return f"{self.path}: {self.kind} ({where}): {self.text}"


def differing(path: str, run: int, want: Outcome, got: Outcome) -> Difference | None:
    """What differs between two outcomes apart from their values; None when both ran, or both refused."""
    if got.raised:
        return Difference(path, f"raised {got.raised}", run, "", got.text)
    if want.ok and got.refused:
        return Difference(path, "refused", run, "", f"{got.refused}: {got.text}")
    if got.ok and not want.ok:
        return Difference(path, "accepted", run, "", f"the reference raises {want.refused or want.raised}: {want.text}")
    return None


def compared(
    want: Mapping[str, Any],
    got: Mapping[str, Any],
    tolerance: Tolerance,
    moved: Sequence[Mapping[str, Any]] = (),
    exact: Mapping[str, Any] | None = None,
) -> tuple[str, str, str] | None:
    """(variable, kind, text) of the first value that differs by more than the tolerance; None when none does.

    moved: values of the reference with its inputs changed by rounding. exact: values of the reference in float64.
    """
    for name, value in want.items():
        if name not in got:
            continue
        found = _compare(value, got[name], tolerance, [m.get(name) for m in moved], (exact or {}).get(name))
        if found:
            return (name, *found)
    return None


def _compare(want: Any, got: Any, tolerance: Tolerance, moved: list[Any], exact: Any) -> tuple[str, str] | None:
    if type(want) is not type(got):
        return "kind", f"is {_kind(got)}, expected {_kind(want)}"
    if want is None:
        return None
    if isinstance(want, LoDTensorArray):
        return _compare_elements(want, got, tolerance, moved, exact)
    if isinstance(want, SelectedRows):
        return _compare_rows(want, got, tolerance, moved, exact)
    if isinstance(want, SparseTensor):
        return _compare_sparse(want, got, tolerance, moved, exact)
    if want.lod != got.lod:
        return "lod", f"has LoD {got.lod}, expected {want.lod}"
    near = [np.asarray(m.array) for m in moved if isinstance(m, LoDTensor)]
    known = np.asarray(exact.array) if isinstance(exact, LoDTensor) else None
    return _compare_arrays(np.asarray(want.array), np.asarray(got.array), tolerance, near, known)


def _compare_elements(
    want: LoDTensorArray, got: LoDTensorArray, tolerance: Tolerance, moved: list[Any], exact: Any
) -> tuple[str, str] | None:
    if len(want) != len(got):
        return "shape", f"has {len(got)} elements, expected {len(want)}"
    for i, (w, g) in enumerate(zip(want, got, strict=True)):
        beside = [m[i] for m in moved if isinstance(m, LoDTensorArray) and len(m) == len(want)]
        wide = exact[i] if isinstance(exact, LoDTensorArray) and len(exact) == len(want) else None
        found = _compare(w, g, tolerance, beside, wide)
        if found:
            return found[0], f"element {i} {found[1]}"
    return None


def _compare_rows(
    want: SelectedRows, got: SelectedRows, tolerance: Tolerance, moved: list[Any], exact: Any
) -> tuple[str, str] | None:
    """Rows may be listed in any order and several times, so the matrices that they stand for are compared."""
    if want.height != got.height:
        return "shape", f"has height {got.height}, expected {want.height}"
    if not (_in_range(want) and _in_range(got)):  # no dense matrix holds them
        found = _compare_arrays(np.asarray(want.rows), np.asarray(got.rows), SAME, [], None)
        return found or _compare_arrays(want.value, got.value, tolerance, [], None)
    dense = [m.to_dense() for m in moved if isinstance(m, SelectedRows) and _in_range(m)]
    total = exact.to_dense() if isinstance(exact, SelectedRows) and _in_range(exact) else None
    return _compare_arrays(want.to_dense(), got.to_dense(), tolerance, dense, total)


def _compare_sparse(
    want: SparseTensor, got: SparseTensor, tolerance: Tolerance, moved: list[Any], exact: Any
) -> tuple[str, str] | None:
    """Patterns are equal, element by element; values within the tolerance."""
    if want.shape != got.shape:
        return "shape", f"has shape {list(got.shape)}, expected {list(want.shape)}"
    for w, g in zip(want.pattern, got.pattern, strict=True):
        found = _compare_arrays(np.asarray(w), np.asarray(g), SAME, [], None)
        if found:
            return found
    near = [m.values for m in moved if isinstance(m, SparseTensor)]
    wide = exact.values if isinstance(exact, SparseTensor) else None
    return _compare_arrays(want.values, got.values, tolerance, near, wide)


def _in_range(value: SelectedRows) -> bool:
    rows = np.asarray(value.rows)
    return bool(((rows >= 0) & (rows < value.height)).all())


def _kind(value: Any) -> str:
    return "unset" if value is None else f"a {type(value).__name__}"


def _compare_arrays(
    want: np.ndarray, got: np.ndarray, tolerance: Tolerance, moved: list[np.ndarray], exact: np.ndarray | None
) -> tuple[str, str] | None:
    if want.dtype != got.dtype:
        return "dtype", f"has dtype {got.dtype}, expected {want.dtype}"
    if want.shape != got.shape:
        return "shape", f"has shape {list(got.shape)}, expected {list(want.shape)}"
    if np.array_equal(want, got) or not want.size:
        return None
    moved = [m for m in moved if m.shape == want.shape]
    if want.dtype.kind in "fc" or want.dtype.name == "bfloat16":
        return _compare_floats(want, got, tolerance, moved, exact)
    bad = want != got
    for m in moved:  # an integer that rounding changes in the reference itself, such as an index of a maximum
        bad &= m == want
    return ("value", _shown(want, got, bad)) if bad.any() else None


def _compare_floats(
    want: np.ndarray, got: np.ndarray, tolerance: Tolerance, moved: list[np.ndarray], exact: np.ndarray | None
) -> tuple[str, str] | None:
    rtol = _RTOL.get(want.dtype.name, 0.0) * tolerance.factor
    if want.dtype.itemsize == 2:  # a difference computed in 16 bits would itself be rounded
        want, got, moved = want.astype(np.float32), got.astype(np.float32), [m.astype(np.float32) for m in moved]
    if exact is not None and exact.shape != want.shape:
        exact = None
    tiny = float(np.finfo(want.dtype).tiny) if tolerance.factor or tolerance.flushes else 0.0
    with np.errstate(all="ignore"):
        finite = np.isfinite(want)
        # Judged apart from the others: differences with NaN or infinities are no numbers.
        odd = _differently_special(want, got)
        # the absolute value of a complex number overflows before its parts do
        size = min(float(np.abs(want[finite]).max(initial=0.0)), _largest(want))
        allowed = rtol * size + tiny + np.zeros(want.shape, np.abs(want).dtype)
        if exact is not None and exact.dtype != want.dtype:
            off = np.abs(exact[finite] - want[finite]).max(initial=0.0)
            allowed = allowed + (AMPLIFIED * off if off > rtol * size else 0.0)
            # sums of squares overflow in float32 sooner on one path than on another; float64 has room for them
            odd &= finite | ~np.isfinite(exact)
        for m in moved:
            changed = np.isfinite(m) != finite
            odd &= ~changed
            step = np.where(finite & ~changed, np.abs(m - want), 0)
            allowed = np.where(changed, np.inf, allowed + AMPLIFIED * step)
        largest = max(size, 0.0 if exact is None else float(np.abs(exact[np.isfinite(exact)]).max(initial=0.0)))
        if odd.any() and largest < _largest(want) / NEAR_OVERFLOW:
            return "nan", _shown(want, got, odd)
        bad = finite & np.isfinite(got) & ~(np.abs(got - want) <= allowed)
    return ("value", _shown(want, got, bad)) if bad.any() else None


def _differently_special(want: np.ndarray, got: np.ndarray) -> np.ndarray:
    """Where one is NaN or infinite and the other is not so in the same way."""
    nan, finite = np.isnan(want), np.isfinite(want)
    differ: np.ndarray = (nan != np.isnan(got)) | (~finite & ~nan & (want != got)) | (finite & ~np.isfinite(got))
    return differ


def _largest(array: np.ndarray) -> float:
    return float(np.finfo(array.dtype).max)


def _shown(want: np.ndarray, got: np.ndarray, bad: np.ndarray) -> str:
    at = tuple(np.argwhere(bad)[0].tolist())
    return f"{int(bad.sum())} of {want.size} elements differ; at {list(at)} {got[at]!s}, expected {want[at]!s}"


def attempt(run: Callable[[], dict[str, Any]]) -> Outcome:
    """What a run gives, or its error."""
    try:
        return Outcome(run())
    except OprackError as error:
        return Outcome(refused=type(error).__name__, text=str(error).partition("\n")[0][:300])
    except Exception as error:
        let_interruptions_pass()
        return Outcome(raised=type(error).__name__, text=str(error).partition("\n")[0][:300])
