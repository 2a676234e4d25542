"""What can be put around eager calls: mixed precision, checks for NaN and infinities, times, a list of the calls."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

from oprack.eager_tensor import Tensor
from oprack.eager_tensor.devices import home
from oprack.errors import InvalidArgumentError, NanInfError, OprackError
from oprack.interpreter.base import Interpreter, Wrapped
from oprack.interpreter.modes import Mode, wrapped
from oprack.interpreter.op_expr import OpExpr
from oprack.packs import op_for
from oprack.packs.changes import on_change
from oprack.packs.manager import PackManager, default_manager
from oprack.python.records import dataclass
from oprack.runtime.profiler import current_profiler, watch
from oprack.tensor import SparseValue
from oprack.types import HALF_FLOATS, dtype_name

_CAST = (*HALF_FLOATS, "float32")
_served: dict[tuple[str, str, str], bool] = {}
"""Whether an op has kernels, by its type, dtype and kind of place."""
on_change(_served.clear)


class Autocast(Wrapped):
    """Casts floating arguments before a call: to a half dtype for the ops in `half`, to float32 for those in `single`.

    Other ops whose floating arguments differ get them in the widest of their dtypes. Where an op, or its gradient, has
    no kernel for a half dtype at the place of its arguments, it gets float32.
    """

    def __init__(self, inner: Interpreter, dtype: str, half: Collection[str], single: Collection[str]) -> None:
        super().__init__(inner)
        self.dtype, self.half, self.single = dtype, half, single
        self._target = _Casting(dtype, frozenset(half), frozenset(single)).target

    def apply(self, expr: OpExpr, args: Sequence[Any]) -> Any:
        dtypes = {a.dtype for a in args if a is not None}
        place = next((a.place for a in args if isinstance(a, Tensor)), None) or home()
        # what is written in place has to stay the caller's tensor
        target = None if expr.in_place else self._target(expr.type, dtypes, place.kind)
        if target is None:
            return self.inner.apply(expr, args)
        try:
            return self.inner.apply(expr, [self._cast(a, target) for a in args])
        except OprackError as error:
            error.add_note(
                f"autocast had cast inputs of op {expr.type} to {target}; to leave the op as it is, call it within "
                "autocast(enable=False), or leave it out of autocast's half and single"
            )
            raise

    @staticmethod
    def _cast(value: Any, dtype: str) -> Any:
        if value is None or value.dtype == dtype or value.dtype not in _CAST:
            return value
        return value.astype(dtype)


def _serves(op_type: str, dtype: str, kind: str) -> bool:
    """Whether an op and its gradient have kernels for a dtype at a kind of place."""
    key = op_type, dtype, kind
    if key not in _served:
        manager = default_manager()
        types = [t for t in (op_type, f"{op_type}_grad") if manager.has_op(t)]
        _served[key] = all(_has_kernel(manager, t, dtype, kind) for t in types)
    return _served[key]


def _has_kernel(manager: PackManager, op_type: str, dtype: str, kind: str) -> bool:
    # An op without a kernel at a place runs on the CPU; one without any is made of others, each a call of its own.
    kernels = list(manager.kernel_map(op_type, kind)) or list(manager.kernel_map(op_type, "cpu"))
    return not kernels or any(dtype in spec.dtypes for spec in kernels)


@dataclass(frozen=True)
class _Casting:
    """Puts Autocast around an interpreter; equal ones make the same mode."""

    dtype: str
    half: frozenset[str]
    single: frozenset[str]

    def target(self, op_type: str, dtypes: Collection[str], kind: str) -> str | None:
        """The dtype that floating arguments are cast to; None where they stay.

        Args:
            op_type: The op.
            dtypes: Those of its arguments.
            kind: The kind of place where they are.
        """
        cast = {d for d in dtypes if d in _CAST}
        if op_type == op_for("convert") or not cast:  # a cast would be cast again without end
            return None
        bare = op_type.removesuffix("_grad")
        if bare in self.half:
            target = self.dtype
        # float32 is the widest of the dtypes that are cast; float64 is left alone.
        elif bare in self.single or len(cast) > 1:
            target = "float32"
        else:
            (target,) = cast
        if target != "float32" and not _serves(op_type, target, kind):
            target = "float32"
        return None if cast == {target} else target

    def __call__(self, inner: Interpreter) -> Interpreter:
        return Autocast(inner, self.dtype, self.half, self.single)


class autocast(wrapped):
    """Mixed precision for the length of a with block; parameters stay float32 and so do their gradients.

    An op that has no kernel for the dtype where its inputs are stays in float32. Of blocks within each other the
    innermost counts.

    Args:
        dtype: float16 or bfloat16.
        half: Ops whose floating arguments are cast to that dtype.
        single: Ops whose floating arguments are cast to float32.
        enable: False casts nothing inside.

    Raises:
        InvalidArgumentError: The dtype is not half.
    """

    def __init__(self, dtype: object, half: Collection[str], single: Collection[str], enable: bool = True) -> None:
        name = dtype_name(dtype)
        if name not in HALF_FLOATS:
            raise InvalidArgumentError(
                f"autocast: dtype is {name}; expected {' or '.join(sorted(HALF_FLOATS))}; enable=False casts nothing"
            )
        self._casting = _Casting(name, frozenset(half), frozenset(single))
        super().__init__(self._casting)
        self._enable = bool(enable)

    def target(self, op_type: str, dtypes: Collection[str], kind: str) -> str | None:
        """The dtype that floating arguments of an op are cast to, for who makes calls of a framework of its own.

        Args:
            op_type: The op.
            dtypes: Those of its arguments.
            kind: The kind of place where they are, such as "cpu".

        Returns:
            The dtype; None where they stay as they are.
        """
        return self._casting.target(op_type, dtypes, kind) if self._enable else None

    def _changed(self, now: Mode) -> Mode:
        others = tuple(w for w in now.wrappers if not isinstance(w, _Casting))
        return now.but(wrappers=(*others, self._wrapper) if self._enable else others)


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
