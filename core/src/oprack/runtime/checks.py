"""What a run is held against: limits on memory and time, and the checks of kernels that can be switched on."""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.errors import InputOverwrittenError, InvalidArgumentError, LoopLimitError, MemoryLimitError, NanInfError
from oprack.python.records import dataclass
from oprack.tensor import LoDTensor, LoDTensorArray, ShapeOnly, SparseValue

if TYPE_CHECKING:
    from oprack.kernel import Candidate
    from oprack.runtime.operator import OperatorBase

Listed = Callable[[str, int], bool]
"""Whether output i of a slot lists its elements, so that its dims take no memory."""
MEMORY, ROUNDS = "OPRACK_MEMORY_LIMIT", "OPRACK_LOOP_LIMIT"


@dataclass(frozen=True)
class Limits:
    """Limits of a run; None means no limit.

    Attributes:
        memory: The most bytes that the outputs of one op may take together.
        rounds: How often the blocks of loops and branches may run in total in one run of a program.
    """

    memory: int | None = None
    rounds: int | None = None

    @classmethod
    def of(cls, memory: int | None = None, rounds: int | None = None) -> Limits:
        """Create limits; one that is None is read from OPRACK_MEMORY_LIMIT or OPRACK_LOOP_LIMIT.

        Raises:
            InvalidArgumentError: A limit is not an integer of at least 0.
        """
        return cls(_limit("memory_limit", memory, MEMORY), _limit("loop_limit", rounds, ROUNDS))

    def check_outputs(
        self,
        op: OperatorBase,
        dims: Mapping[tuple[str, int], Sequence[int]],
        dtype_of: Callable[[str, int], np.dtype | None],
        listed: Listed,
    ) -> None:
        """Check that the outputs of an op stay within the memory limit.

        Args:
            op: The op.
            dims: (slot, i) -> shape of each output.
            dtype_of: Returns the dtype of output i of a slot; None when it is unknown.
            listed: Whether output i of a slot takes no memory by its dims.

        Raises:
            MemoryLimitError: The outputs are too large.
        """
        if self.memory is None:
            return
        sizes = {}
        for (slot, i), shape in dims.items():
            dtype = dtype_of(slot, i)
            # An unknown dtype counts as 8 bytes, the largest common size, so that it errs towards refusing.
            sizes[slot, i] = _elements(shape) * (8 if dtype is None else dtype.itemsize)
        total = sum(sizes.values())
        if total > self.memory:
            total -= sum(size for position, size in sizes.items() if listed(*position))
        if total > self.memory:
            shapes = ", ".join(f"{slot}[{i}] {list(shape)}" for (slot, i), shape in dims.items())
            raise MemoryLimitError(
                f"op {op.type}: its outputs {shapes} take {total} bytes; the limit is {self.memory}. If the program "
                "may have them, allow more: Executor(memory_limit=...), Config.set_memory_limit(...), or the "
                f"environment variable {MEMORY}"
            )

    def check_rounds(self, count: int, block: int) -> None:
        """Raise LoopLimitError if blocks of loops and branches have run too often."""
        if self.rounds is not None and count > self.rounds:
            raise LoopLimitError(
                f"block {block} was to run as round {count} of the run; the limit is {self.rounds}. If the program may "
                "go on, allow more: Executor(loop_limit=...), Config.set_loop_limit(...), or the environment variable "
                f"{ROUNDS}"
            )


NO_LIMITS = Limits()


_ELSEWHERE: ContextVar[bool] = ContextVar("oprack_elsewhere", default=False)


@contextlib.contextmanager
def shapes_elsewhere() -> Iterator[None]:
    """Shapes inside a with block are of tensors that this machine need not hold: in parts on several, or simulated."""
    token = _ELSEWHERE.set(True)
    try:
        yield
    finally:
        _ELSEWHERE.reset(token)


def check_fits(op_type: str, output: tuple[str, int], name: str, shape: Sequence[int], listed: Listed) -> None:
    """Raise InvalidArgumentError for an output that exceeds the machine's memory even at one byte per element."""
    size = _elements(shape)
    if size > _memory() and not _ELSEWHERE.get() and not listed(*output):
        raise InvalidArgumentError(
            f"op {op_type}: output {output[0]} (variable {name!r}) would have shape {list(shape)}, "
            f"which takes {size} bytes or more; this machine has {_memory()}, so check the shapes and attributes that "
            "it follows from"
        )


def _elements(shape: Sequence[int]) -> int:
    """The least number of elements of an output: a dim of -1, which only the kernel knows, counts as 1."""
    return math.prod(map(abs, shape))


# Cached, since it does not change while the process runs and sysconf is slow next to the comparison.
@lru_cache(maxsize=1)
def _memory() -> int:
    """Physical memory of the machine in bytes; an unreachably large number where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 1 << 48


def _limit(name: str, value: int | None, variable: str) -> int | None:
    if value is None:
        text = os.environ.get(variable)
        if not text:
            return None
        if not text.isascii() or not text.isdecimal():
            raise InvalidArgumentError(f"{variable} is {text!r}; expected a number of at least 0")
        return int(text)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InvalidArgumentError(f"{name} is {value!r}; expected a number of at least 0, or None for no limit")
    return int(value)


# Checks of kernels ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Checks:
    """Checks of a run, all off by default.

    Attributes:
        nan_inf: Check that every floating output is finite.
        unused_input: Warn of inputs for which the kernel has no parameter.
        overwritten_input: Check that no kernel writes to an input that its op does not declare in place.
    """

    nan_inf: bool = False
    unused_input: bool = False
    overwritten_input: bool = False

    def __bool__(self) -> bool:
        return self.nan_inf or self.unused_input or self.overwritten_input


class UnusedInputWarning(UserWarning):
    """A kernel has no parameter for an input that its op has."""


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, LoDTensor):
        return [] if isinstance(value.array, ShapeOnly) else [value.array]
    if isinstance(value, SparseValue):
        return [value.elements]
    if isinstance(value, LoDTensorArray):
        return [t.array for t in value if t is not None]
    return []


def check_finite(op: OperatorBase, outputs: Mapping[str, Sequence[Any]]) -> None:
    """Raise NanInfError that names the op and the variable of the first output with a NaN or an infinity."""
    for slot, values in outputs.items():
        for name, value in zip(op.outputs.get(slot, ()), values, strict=False):
            for array in _arrays(value):
                array = array.get() if hasattr(array, "get") else array
                if array.dtype.kind not in "fc" and array.dtype.name != "bfloat16":
                    continue
                finite = np.isfinite(array)
                if not finite.all():
                    where = np.argwhere(~finite)[0].tolist()
                    raise NanInfError(
                        f"op {op.type}: output {slot} (variable {name!r}) has {int((~finite).sum())} of {array.size} "
                        f"elements that are NaN or infinite, the first at {where}; look at its inputs:\n{op.describe()}"
                    )


def check_unused(op: OperatorBase, chosen: Candidate) -> None:
    """Warn of inputs for which the kernel has no parameter, unless only their shape is needed."""
    taken = {slot for slot, _, _ in chosen.signature.inputs}
    unused = [s for s in op.inputs if s not in taken and s not in op.info.no_need_buffer_vars]
    if unused:
        warnings.warn(
            f"op {op.type}: kernel {chosen.spec.name} of {chosen.spec.owner} takes no part of input "
            f"{', '.join(unused)}; drop it from the op's inputs, or list it in no_need_buffer_vars if only its shape "
            "is needed",
            UnusedInputWarning,
            stacklevel=2,
        )


Fingerprint = dict[tuple[str, int], list[Any]]

# Bytes up to which an array is compared whole; of a larger one its ends and a sample in between are.
_WHOLE = 1 << 14
_SAMPLES = 1024


def fingerprint(
    op: OperatorBase, values: Mapping[str, Sequence[Any]], *, whole: bool = True, written: bool = False
) -> Fingerprint:
    """Take down what an op's inputs hold, to find out later whether a kernel wrote to them.

    Args:
        op: The operator.
        values: Its inputs by slot.
        whole: Whether to take every element. Otherwise memory of a device is left alone, since to read it would wait
            for the device, as are read-only arrays, and only samples of large arrays are taken, so that the first run
            of a model costs little more.
        written: Whether to take the inputs as well that the op declares in place.

    Returns:
        Bytes, LoD and rows by (slot, position).
    """
    return {
        (slot, i): [_bytes(a, whole) for a in _arrays(v)] + _structure(v, whole)
        for slot, vs in values.items()
        if written or not op.is_inplace(slot)
        for i, v in enumerate(vs)
    }


def _host(array: Any) -> np.ndarray:
    return np.asarray(array.get() if hasattr(array, "get") else array)


def _bytes(array: Any, whole: bool) -> bytes:
    if not isinstance(array, np.ndarray):
        return _host(array).tobytes() if whole else b""
    flags = array.flags
    if not whole and not flags.writeable:  # a kernel can't have written to it without an error
        return b""
    if whole or array.nbytes <= _WHOLE:
        return array.tobytes()
    if not flags.c_contiguous:  # as maps whose channels lie side by side: their order in memory is quicker
        array = array.transpose(sorted(range(array.ndim), key=lambda d: -array.strides[d]))
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    # What writes to an input by mistake writes all of it, or its first or last part.
    ends = flat[:_SAMPLES], flat[-_SAMPLES:], flat[:: array.size // _SAMPLES]
    return b"".join(part.tobytes() for part in ends)


def _structure(value: Any, whole: bool) -> list[Any]:
    if isinstance(value, LoDTensor):
        return [[list(level) for level in value.lod]]
    if isinstance(value, SparseValue) and (whole or isinstance(value.elements, np.ndarray)):
        return [_host(a).tolist() for a in value.pattern] + [value.shape]
    return []


def check_overwritten(
    op: OperatorBase, chosen: Candidate, values: Mapping[str, Sequence[Any]], before: Fingerprint, *, whole: bool = True
) -> None:
    """Raise InputOverwrittenError when an input is not what it was `before`, taken with the same `whole`."""
    for (slot, i), was in fingerprint(op, values, whole=whole).items():
        if before.get((slot, i)) != was:
            raise InputOverwrittenError(
                f"op {op.type}: kernel {chosen.spec.name} of {chosen.spec.owner} ({chosen.spec.where}) wrote to input "
                f"{slot} (variable {op.inputs[slot][i]!r}), which the op does not declare in place; copy it in the "
                "kernel, or declare inplace = {...} in the op's definition"
            )


def check_declined(
    op: OperatorBase, kernel: Candidate, values: Mapping[str, Sequence[Any]], before: Fingerprint, *, whole: bool = True
) -> None:
    """Raise InputOverwrittenError when a kernel that declined has changed an input, those in place included."""
    for (slot, i), now in fingerprint(op, values, whole=whole, written=True).items():
        if before.get((slot, i)) != now:
            raise InputOverwrittenError(
                f"op {op.type}: kernel {kernel.spec.name} of {kernel.spec.owner} ({kernel.spec.where}) declined after "
                f"it had written to input {slot} (variable {op.inputs[slot][i]!r}); decide before anything is written "
                "to `out`"
            )


def check_aliased(
    op: OperatorBase, chosen: Candidate, values: Mapping[str, Sequence[Any]], outputs: Mapping[str, Sequence[Any]]
) -> None:
    """Raise InputOverwrittenError when an output lies on an input's memory and neither `view` nor in place says so.

    An op in place on either of them would change the other.
    """
    first = chosen.signature.inputs[0][0] if chosen.signature.inputs else ""
    read = [
        (slot, i, a)
        for slot, vs in values.items()
        if not (chosen.spec.view and slot == first) and not op.is_inplace(slot)
        for i, v in enumerate(vs)
        for a in _arrays(v)
        if isinstance(a, np.ndarray)
    ]
    for slot, made in outputs.items():
        for k, value in enumerate(made):
            for out in _arrays(value):
                for x, i, a in read:
                    if np.may_share_memory(out, a) and out.size:
                        raise InputOverwrittenError(
                            f"op {op.type}: kernel {chosen.spec.name} of {chosen.spec.owner} ({chosen.spec.where}): "
                            f"output {slot} (variable {op.outputs[slot][k]!r}) lies on the memory of input {x} "
                            f"(variable {op.inputs[x][i]!r}); return a copy, or declare @kernel(..., view=True) when "
                            "it is a view of the kernel's first parameter"
                        )
