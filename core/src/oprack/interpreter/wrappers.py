"""What can be put around eager calls: mixed precision, checks for NaN and infinities, times, a list of the calls."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

from oprack.errors import InvalidArgumentError, NanInfError
from oprack.interpreter.base import Interpreter, Wrapped
from oprack.interpreter.modes import Mode, wrapped
from oprack.interpreter.op_expr import OpExpr
from oprack.packs.vocabulary import op_for
from oprack.records import dataclass
from oprack.runtime.profiler import current_profiler, watch
from oprack.tensor import SparseValue
from oprack.tensor.eager_tensor import Tensor
from oprack.types import HALF_FLOATS, dtype_name


class Autocast(Wrapped):
    """Casts floating arguments before a call: to a half dtype for the ops in `half`, to float32 for those in `single`.

    Other ops whose floating arguments differ get them in the widest of their dtypes.
    """

    def __init__(self, inner: Interpreter, dtype: str, half: Collection[str], single: Collection[str]) -> None:
        super().__init__(inner)
        self.dtype, self.half, self.single = dtype, half, single

    def apply(self, expr: OpExpr, args: Sequence[Any]) -> Any:
        dtypes = {a.dtype for a in args if a is not None and a.dtype in (*HALF_FLOATS, "float32")}
        # A cast would be cast again without end, and what is written in place has to stay the caller's tensor.
        if expr.type == op_for("convert") or not dtypes or expr.in_place:
            return self.inner.apply(expr, args)
        if expr.type.removesuffix("_grad") in self.half:
            target = self.dtype
        # float32 is the widest of the dtypes that are cast; float64 is left alone.
        elif expr.type.removesuffix("_grad") in self.single or len(dtypes) > 1:
            target = "float32"
        else:
            return self.inner.apply(expr, args)
        return self.inner.apply(expr, [self._cast(a, target) for a in args])

    @staticmethod
    def _cast(value: Any, dtype: str) -> Any:
        if value is None or value.dtype == dtype or value.dtype not in (*HALF_FLOATS, "float32"):
            return value
        return value.astype(dtype)


class autocast(wrapped):
    """Mixed precision for the length of a with block; parameters stay float32 and so do their gradients.

    Args:
        dtype: float16 or bfloat16.
        half: Ops whose floating arguments are cast to that dtype.
        single: Ops whose floating arguments are cast to float32.

    Raises:
        InvalidArgumentError: The dtype is not half.
    """

    def __init__(self, dtype: object, half: Collection[str], single: Collection[str]) -> None:
        name = dtype_name(dtype)
        if name not in HALF_FLOATS:
            raise InvalidArgumentError(f"autocast: dtype is {name}; expected {' or '.join(sorted(HALF_FLOATS))}")
        super().__init__(lambda inner: Autocast(inner, name, half, single))


class FiniteCheck(Wrapped):
    """Raises NanInfError at the first call with a NaN or an infinity in a floating output."""

    def apply(self, expr: OpExpr, args: Sequence[Any]) -> Any:
        result = self.inner.apply(expr, args)
        for y in tensors_in(result):
            # what a sparse value does not list is zero
            value = y._value.elements if isinstance(y._value, SparseValue) else y._value
            if y._meta.differentiable and hasattr(value, "dtype"):
                bad = ~_finite(value)
                if bool(bad.any()):
                    given = ", ".join(a.describe() for a in args if isinstance(a, Tensor))
                    raise NanInfError(
                        f"op {expr.type}: {int(bad.sum())} of {y.size} elements of its output are NaN or infinite; its "
                        f"inputs are {given or 'none'}"
                    )
        return result


def _finite(array: Any) -> Any:
    import numpy as np

    return np.isfinite(array.get() if hasattr(array, "get") else array)


class check_finite(wrapped):
    """Calls inside raise NanInfError where they make a NaN or an infinity, backward's included."""

    def __init__(self) -> None:
        super().__init__(FiniteCheck)


@dataclass(frozen=True)
class Call:
    """One call that was seen: op type, what went in and came out in words, and attributes."""

    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: dict[str, Any]


class log_calls(wrapped):
    """`with log_calls() as calls:` fills a list with the calls that run inside, backward's included."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        super().__init__(lambda inner: _CallLog(inner, self.calls))

    def __enter__(self) -> list[Call]:  # type: ignore[override]
        super().__enter__()
        return self.calls


class _CallLog(Wrapped):
    def __init__(self, inner: Interpreter, calls: list[Call]) -> None:
        super().__init__(inner)
        self.calls = calls

    def apply(self, expr: OpExpr, args: Sequence[Any]) -> Any:
        result = self.inner.apply(expr, args)
        given = tuple(a.describe() for a in args if isinstance(a, Tensor))
        self.calls.append(Call(expr.type, given, tuple(y.describe() for y in tensors_in(result)), expr.attrs))
        return result


class _Timing(Wrapped):
    """Adds eager calls to the profiler that is active."""

    def apply(self, expr: OpExpr, args: Sequence[Any]) -> Any:
        profiler = current_profiler()
        if profiler is None:
            return self.inner.apply(expr, args)
        start = time.perf_counter_ns()
        result = self.inner.apply(expr, args)
        if tensors_in(result):  # and no Variables of a program that is being written
            profiler.add(expr.type, "op", start)
        return result


class _timed(wrapped):
    """Once is enough, for profilers within each other as well."""

    def __init__(self) -> None:
        super().__init__(_Timing)

    def _changed(self, now: Mode) -> Mode:
        return now if _Timing in now.wrappers else super()._changed(now)


watch(_timed)


def tensors_in(result: Any) -> list[Tensor]:
    """Tensors among what a call returned."""
    if isinstance(result, Tensor):
        return [result]
    return [y for r in result for y in tensors_in(r)] if isinstance(result, list | tuple) else []
