"""Limits on the memory and time of a program, so that an untrusted one can't exhaust memory or run forever."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from oprack.errors import InvalidArgumentError, LoopLimitError, MemoryLimitError
from oprack.records import dataclass

if TYPE_CHECKING:
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
