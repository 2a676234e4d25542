"""The compiled runner: chains of primitives in one native call, for which the interpreter's lock is given away once.

Every call of a function of oneDNN gives the lock away and takes it back, and a Python thread that waits for it sleeps:
with hundreds of calls in a run, two threads would be no faster than one. Where the runner can't be loaded, a loop in
Python does the same (BoundChain).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from ctypes import CDLL, Structure, addressof, c_int, c_int64, c_size_t, c_void_p
from functools import lru_cache
from typing import Any

from oprack.python.interruption import let_interruptions_pass

from oprack_onednn.c.build import TARGET

_ABI = 30
NOT_ORDINARY = -1
"""What a run returns when an array that it looked at holds NaN or infinities."""
SWITCH = "OPRACK_ONEDNN_RUNNER"
"""Environment variable: with "0" the runner is not loaded."""


# The structs of runner.c, field by field -----------------------------------------------------------------------------
class ThreadState(Structure):
    """What the chains of one Python thread share. capacity: bytes of the arena. threads: what primitives use now."""

    set_handle: int | None
    execute: int | None
    set_threads: int | None
    stream: int | None
    arena: int | None
    capacity: int
    threads: int

    _fields_ = (
        *((name, c_void_p) for name in ("set_handle", "execute", "set_threads", "stream", "arena")),
        *((name, c_int64) for name in ("capacity", "threads")),
    )


class _Place(Structure):
    _fields_ = (("memory", c_void_p), ("operand", c_int64), ("offset", c_int64))


class _Step(Structure):
    _fields_ = (("primitive", c_void_p), ("arguments", c_void_p), ("count", c_int64), ("operand", c_int64))


class _Chain(Structure):
    _fields_ = (
        *((name, c_void_p) for name in ("places", "scratch", "steps")),
        *((name, c_int64) for name in ("place_count", "scratch_count", "step_count", "operands", "threads")),
        ("arena", c_void_p),
    )


class _Inner(Structure):
    _fields_ = (("value", c_int64), ("offset", c_int64))


class _Stretch(Structure):
    failed: int

    _fields_ = (
        *((name, c_void_p) for name in ("thread", "chains", "values", "slots", "inners")),
        *((name, c_int64) for name in ("chain_count", "inner_count")),
        ("arena", c_void_p),
        ("failed", c_int64),
    )


@lru_cache(maxsize=1024)
def array_type(element: type[Any], count: int) -> Any:
    """The type of a C array; kept, since ctypes makes a class anew when nobody has it, which is garbage of its own."""
    return element * count


class NativeChain:
    """A chain as the runner takes it.

    It holds plain pointers: who makes it keeps the memory objects, the primitives and their arguments.

    Args:
        operands: How many addresses a run takes.
        threads: Threads that its primitives use; 0 leaves the number as it is.
        places: (memory object, number of the operand, offset in bytes) of memory outside.
        scratch: (memory object, offset in the arena).
        steps: (primitive, address of its arguments, how many, 0), or (None, a struct spread, 0, number of the operand
            that is written), in the order in which they run.
        looks: (number of the operand, floats) of arrays that are looked at for NaN and infinities after the steps.
    """

    __slots__ = ("_arrays", "_chain", "operands", "pointer")

    def __init__(
        self,
        operands: int,
        threads: int = 0,
        places: Sequence[tuple[int, int, int]] = (),
        scratch: Sequence[tuple[int, int]] = (),
        steps: Sequence[tuple[int | None, int, int, int]] = (),
        looks: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.operands = operands
        outside = array_type(_Place, len(places))(*places)
        inside = array_type(_Place, len(scratch))(*((m, 0, o) for m, o in scratch))
        every = array_type(_Step, len(steps) + len(looks))(*steps, *((None, None, count, i) for i, count in looks))
        counts = len(outside), len(inside), len(every)
        self._arrays = outside, inside, every
        self._chain = _Chain(*map(addressof, self._arrays), *counts, operands, threads, None)
        self.pointer = addressof(self._chain)


class NativeStretch:
    """Chains that one call runs one after the other, in the thread that made them.

    Args:
        state: Of the thread.
        chains: The chains.
        slots: For each operand of each chain the number of its value.
        values: How many values there are.
        inners: (number of the value, offset in the arena) of those that lie in scratch memory.

    Attributes:
        values: Addresses, to be set before each run but for those in scratch memory.
        pointer: What the runner's function takes.
    """

    __slots__ = ("_arrays", "_stretch", "pointer", "values")

    def __init__(
        self,
        state: ThreadState,
        chains: Sequence[NativeChain],
        slots: Sequence[int],
        values: int,
        inners: Sequence[tuple[int, int]] = (),
    ) -> None:
        expected = sum(chain.operands for chain in chains)
        if len(slots) != expected or not all(0 <= slot < values for slot in slots):
            raise ValueError(f"slots {slots} of {values} values for chains of {expected} operands")
        self.values = array_type(c_size_t, values)()
        pointers = array_type(c_void_p, len(chains))(*(chain.pointer for chain in chains))
        numbers, inside = array_type(c_int64, len(slots))(*slots), array_type(_Inner, len(inners))(*inners)
        self._arrays = state, tuple(chains), pointers, numbers, inside
        places = map(addressof, (state, pointers, self.values, numbers, inside))
        self._stretch = _Stretch(*places, len(chains), len(inners), None, 0)
        self.pointer = addressof(self._stretch)

    @property
    def failed(self) -> int:
        """The number of the chain in which the last run ended."""
        return self._stretch.failed


_LOOP = (c_void_p, c_int64), None
LOOPS: dict[str, tuple[tuple[Any, ...], Any]] = {
    **dict.fromkeys(("update", "add_rows", "dense", "recurrent_grad", "batch_norm", "viterbi"), _LOOP),
    **dict.fromkeys(("plain_filter", "attention"), ((c_void_p, c_int64), c_int64)),
    "recurrent": ((c_void_p, c_int64, c_int64), None),
    **dict.fromkeys(("sgd_rows", "product"), ((c_void_p,), c_int64)),
    "pack": ((c_void_p,), None),
}
"""Arguments and result of the functions that kernels call beside the runner; each is an attribute of Runner."""
_STEP = (c_void_p, c_void_p, c_int64), c_int
_FUNCTIONS: dict[str, tuple[tuple[Any, ...], Any]] = LOOPS | {
    "runner_run": ((c_void_p,), c_int64),
    "memories_create": ((*(c_void_p,) * 6, c_int64), c_int64),
    "memories_destroy": ((c_void_p, c_void_p, c_int64), None),
    "spread": ((*(c_void_p,) * 3, c_int64), None),
    "compile_install": ((c_void_p, c_void_p), None),
    "compile_ahead": ((c_void_p, c_int64, c_int64), c_void_p),
    "compile_collect": ((c_void_p,), c_void_p),
    "compile_done": ((c_void_p,), c_int),
    "compile_end": ((), None),
    "background_start": ((c_void_p,), c_int),
    "background_busy": ((), c_int),
    "background_wait": ((), c_int64),
    "exit_install": ((c_void_p,), None),
    "exit_lost": ((), c_int),
    **dict.fromkeys(("exit_begin", "exit_enter", "exit_leave"), ((), None)),
    **dict.fromkeys(("winograd_serves", "widest_serves"), ((), c_int)),
    "convolution_room": ((c_void_p, c_void_p), c_int64),
    "filter_pack": ((c_void_p,), None),
    **dict.fromkeys(("winograd_forth", "winograd_back", "upsampled", "squeeze", "lstm_step", "take"), _STEP),
    **dict.fromkeys(("convolution", "layer_norm", "softmax"), _STEP),
}
"""The same of all functions that the library exports, by their names without oprack_, but for oprack_runner_abi."""
_SERVED = {"run": "runner_run", "lost": "exit_lost"}
_SERVED |= {name: name for name in LOOPS}
"""Attributes of Runner, and the functions that they are."""


class Runner:
    """The compiled runner in this process.

    Attributes:
        run: Runs the NativeStretch whose pointer it gets; returns 0, NOT_ORDINARY, or the status of the primitive that
            failed. None where the runner does not serve.
        lost: Whether this process was forked while another thread was in a native call, so that nobody gives back what
            it had locked. None where the runner does not serve.
        sgd_rows: Does what the struct says whose address it gets (`kernels.table_grad`); returns 0, or 1 when there is
            no memory. None where the runner does not serve.
        update, add_rows, dense, viterbi, recurrent_grad: Do what the struct says whose address they get, with so many
            threads (`kernels.update`, `kernels.table_grad`, `kernels._dense`, `kernels.crf_decoding`,
            `kernels._recurrent_grad`). None where the runner does not serve.
        pack: Packs the matrix of the struct whose address it gets (`kernels._recurrent`). None where the runner does
            not serve.
        product: Multiplies by the struct whose address it gets (`kernels._dense`); returns oneDNN's status. None where
            the runner does not serve.
        batch_norm: Computes what the struct says whose address it gets, forward (0) or back (1)
            (`kernels._batch_norm`). None where the runner does not serve.
        attention: Computes what the struct says whose address it gets (`kernels.sequence_attention`), with so many
            threads; returns 0, or 1 when there is no memory. None where the runner does not serve.
        plain_filter: Copies a filter by the struct whose address it gets, with so many threads (`kernels.conv2d_grad`).
            None where the runner does not serve.
        recurrent: Computes so many structs from the address on that it gets, with so many threads
            (`kernels._recurrent`). None where the runner does not serve.
        library: The whole library, for `compiler` and `memory_objects`; None where the runner does not serve.
        problem: Why it does not serve; "" when it does.
    """

    def __init__(self) -> None:
        self.library: CDLL | None = None
        self.run: Callable[[int], int] | None = None
        self.lost: Callable[[], int] | None = None
        self.update: Callable[[int, int], None] | None = None
        self.add_rows: Callable[[int, int], None] | None = None
        self.dense: Callable[[int, int], None] | None = None
        self.pack: Callable[[int], None] | None = None
        self.recurrent_grad: Callable[[int, int], None] | None = None
        self.batch_norm: Callable[[int, int], None] | None = None
        self.viterbi: Callable[[int, int], None] | None = None
        self.plain_filter: Callable[[int, int], int] | None = None
        self.attention: Callable[[int, int], int] | None = None
        self.recurrent: Callable[[int, int, int], None] | None = None
        self.sgd_rows: Callable[[int], int] | None = None
        self.product: Callable[[int], int] | None = None
        self.problem = "oneDNN was not opened yet"

    def load(self, path: str = str(TARGET)) -> None:
        """Find it beside this module; `problem` says why when it can't be used."""
        self.library = None
        for attribute in _SERVED:
            setattr(self, attribute, None)
        self.problem = ""
        again = "`python -m oprack_onednn.c.build` builds it where there is a C compiler"
        if os.environ.get(SWITCH) == "0":
            self.problem = f"{SWITCH}=0"
        elif sys.platform != "linux":
            self.problem = "it is for Linux alone"
        elif not os.path.isfile(path):
            self.problem = f"there was no C compiler when the plugin was installed; {again}"
        else:
            try:
                lib = CDLL(path)
                lib.oprack_runner_abi.restype = c_int64
                if lib.oprack_runner_abi() != _ABI:
                    self.problem = f"{path} is of another version of the plugin; {again}"
                    return
                for name, (arguments, result) in _FUNCTIONS.items():
                    function = getattr(lib, f"oprack_{name}")
                    function.argtypes, function.restype = arguments, result
                self.library = lib
                for attribute, name in _SERVED.items():
                    setattr(self, attribute, getattr(lib, f"oprack_{name}"))
            except (OSError, AttributeError) as error:
                let_interruptions_pass()
                self.problem = f"{path} can't be loaded: {error}; {again}"


RUNNER = Runner()
