"""What each Python thread has of its own: chains, a stream, scratch memory and a number of threads for primitives."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
from oprack.cache import BUDGET, Cache

from oprack_onednn.c.runner import ThreadState
from oprack_onednn.chain.memory import scratch
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Stream
from oprack_onednn.threads.background import Background
from oprack_onednn.threads.pool import POOL
from oprack_onednn.threads.process import SignalStack

# Chains of a Python thread; what they take is bounded by the budget of all caches.
_PRIMITIVES = 1 << 16
_NONE = object()  # oneDNN has no primitive
SHAPES = 4096
"""Shapes whose bound primitives one op keeps, those of all threads counted, while the budget allows it."""
CHAINS, CHAIN = "chains", 4500
"""What chains are called in the budget's account, and about how many bytes each takes, without oneDNN's objects."""
# How many seconds a chain must take on one core to be shared among threads: to hand shares out, and to wait for the
# last one, takes the pool 1 or 2 us. libgomp wakes threads that sleep, and waits for them.
_SHARED, _SHARED_BY_LIBGOMP = 1e-5, 1e-4

# next() is one operation of the interpreter, so that no two threads get the same number.
_CACHE_KEYS = itertools.count(1)


class _Alive:
    """An object that a thread-local variable refers to, so that it is gone when its Python thread has ended."""


class _ScratchAccount:
    """Scratch memory in the account of `oprack.cache`, until this object goes."""

    def __init__(self) -> None:
        self._nbytes = 0

    def set(self, nbytes: int, count: Callable[[str, int, int], None] = BUDGET.count) -> None:
        count("scratch memory", nbytes - self._nbytes, 0)
        self._nbytes = nbytes

    def __del__(self) -> None:
        self.set(0)


class Arena:
    """Scratch memory, and what else the compiled runner needs for one stretch at a time.

    Attributes:
        state: What the runner knows of it.
        background: Runs stretches meanwhile, in the same memory.
        stream: What primitives are executed on; None until `open`.
    """

    def __init__(self) -> None:
        self.state = ThreadState()
        self.background = Background(self.state)
        self.stream: Stream | Any = None  # Any: chains are bound only once it is open
        self._memory = np.empty(0, np.uint8)
        self._account = _ScratchAccount()

    def open(self) -> None:
        """Write what the runner calls into the state, in place: chains hold its address."""
        self.stream = Stream()
        self._background_stream = Stream()
        LIBRARY.fill(self.state, self.stream.pointer)
        LIBRARY.fill(self.background.state, self._background_stream.pointer)

    def arena(self, size: int) -> int:
        """Address of at least `size` bytes of scratch memory."""
        self.background.settle()  # it may have lent its memory
        if size > self.state.capacity:
            # twice as much, of which nobody touches more than is needed: a larger one would be all fresh pages again
            self._memory = scratch(2 * size + 4096)
            start = self._memory.ctypes.data
            self.state.arena = -(-start // 4096) * 4096
            self.state.capacity = 2 * size
            self._account.set(2 * size)
        return self.state.arena or 0


class Thread(Arena, threading.local):
    """What one Python thread needs to run chains.

    Attributes:
        primitives: Chains by key, for the current number of threads, by which oneDNN chooses implementations.
        cache_key: A number that no other Python thread has, nor this one with another number of threads; begins the
            keys of PerThread.
        limit: How many threads primitives may use; 0 means as the library says.
        work: Seconds that the primitives added so far take on one core.
        prepared: What was bound for the op that was prepared last, until a stretch takes note of it.
        alive: An object that goes when the Python thread ends.
        revision: The library's revision when the number of threads was taken from it; -1 before the first use.
    """

    def __init__(self) -> None:
        Arena.__init__(self)
        self.primitives = Cache(_PRIMITIVES)
        self.limit = self._threads = 0
        self._team = 1
        self.work = 0.0
        self.prepared: Any = None
        self.cache_key = 0
        self.alive = _Alive()
        self._by_threads: dict[int, tuple[int, Cache]] = {}
        self.revision = self._opened_at = -1
        self._opened_for = -1

    @property
    def threads(self) -> int:
        """How many threads primitives use now."""
        return self.state.threads

    @property
    def max_threads(self) -> int:
        """How many threads primitives may use, as of the last time that a primitive was asked for."""
        return self._threads

    def open(self) -> None:
        """Use the number of threads that is set now."""
        if self.stream is None:
            lib = LIBRARY.lib
            assert lib is not None
            super().open()
            self.set_handle, self.execute = lib.dnnl_memory_set_data_handle, lib.dnnl_primitive_execute
            self._signal_stack = SignalStack()
        # implementations are chosen for the number of threads
        self._threads = self.state.threads = LIBRARY.apply_threads(self.limit)
        # A team that grows again after a smaller one starts new threads; regions of one thread leave it as it is.
        if self._threads not in (1, self._team):
            LIBRARY.start_workers(self._threads)
            self._team = self._threads
        if self._threads not in self._by_threads:
            self._by_threads[self._threads] = next(_CACHE_KEYS), Cache(_PRIMITIVES, CHAINS)
        # Chains for other numbers of threads are kept, since programs switch between them and back.
        self.cache_key, self.primitives = self._by_threads[self._threads]
        self.revision = self._opened_at = LIBRARY.threads_revision
        self._opened_for = self.limit
        LIBRARY.ran = True

    def ready(self) -> bool:
        """Whether oneDNN can be used in this process; if so, use the number of threads that is set now."""
        if self.revision != LIBRARY.threads_revision:
            if not LIBRARY.usable():
                return False
            self.open()
        return True

    def use(self, count: int) -> None:
        """Let the next primitives use `count` threads."""
        if count != self.state.threads:
            self.state.threads = LIBRARY.apply_threads(count)

    def limited(self, count: int) -> AbstractContextManager[None]:
        """Let primitives of this Python thread use `count` threads, for the length of a with block."""
        return _Limited(self, count)

    def limit_to(self, count: int) -> None:
        """Let primitives use `count` threads from now on; 0 means as the library says."""
        self.limit = count
        # A predictor sets its number in each run, mostly the one that is in use. Another one makes `open` run again
        # when the next primitive is asked for.
        in_use = count == self._opened_for or (count and count == self._threads)
        self.revision = self._opened_at if in_use else -1

    def primitive(self, key: Hashable, build: Callable[..., Any], *args: Any) -> Any:
        """The chain of primitives for `key`, or one primitive; made by `build(*args)` when it is new.

        Returns:
            What `build` returned, or None when oneDNN has no primitive.
        """
        if self.revision != LIBRARY.threads_revision:
            self.open()
        primitive = self.primitives[key]
        if primitive is None:
            try:
                primitive = self._build(build, args)
            except NotServedError:
                primitive = None
            # oneDNN is asked only once for a primitive that it lacks.
            self.primitives.keep(key, _NONE if primitive is None else primitive, CHAIN)
            return primitive
        return None if primitive is _NONE else primitive

    def threads_for(self, seconds: float) -> int:
        """How many threads share the work of a chain that takes one core so long."""
        return 1 if seconds < (_SHARED_BY_LIBGOMP if POOL.problem else _SHARED) else self._threads

    def _build(self, build: Callable[..., Any], args: Sequence[Any]) -> Any:
        """Build a chain, and once more for a single thread where its work is too little to be shared."""
        work, threads, self.work = self.work, self.threads, 0.0
        try:
            self.use(self._threads)
            primitive = build(*args)
            if self.threads_for(self.work) != self._threads:
                self.use(1)
                primitive = build(*args)
            return primitive
        finally:
            # `build` may ask for another chain; the outer one goes on with its own number of threads.
            self.work = work
            self.use(threads)


class _Limited:
    """A with block in which primitives of a Python thread use another number of threads."""

    __slots__ = ("_before", "_count", "_thread")

    def __init__(self, thread: Thread, count: int) -> None:
        self._thread, self._count, self._before = thread, count, 0

    def __enter__(self) -> None:
        self._before = self._thread.limit
        self._thread.limit_to(self._count)

    def __exit__(self, *error: object) -> None:
        self._thread.limit_to(self._before)


THREAD = Thread()


class PerThread(Cache):
    """A cache shared by Python threads, whose keys begin with THREAD.cache_key; a thread's entries go when it ends."""

    def __init__(self, most: int = SHAPES, kind: str = CHAINS) -> None:
        super().__init__(most, kind)
        self._threads: dict[int, weakref.ref[_Alive]] = {}

    def keep(self, key: tuple[Any, ...], value: Any, nbytes: int = CHAIN) -> Any:
        """Set an entry of the calling thread, and return it; see `Cache.keep`."""
        self._register(key[0])
        return super().keep(key, value, nbytes)

    def _register(self, cache_key: int) -> None:
        if cache_key not in self._threads:
            # a partial and no lambda: when the interpreter exits, this module's globals may be None before the thread
            # is gone, and a lambda would look `_forget` up there
            self._threads[cache_key] = weakref.ref(THREAD.alive, partial(_forget, weakref.ref(self), cache_key))


def _forget(entries_of: weakref.ref[PerThread], cache_key: int, _: Any) -> None:
    """Drop the entries of a thread that ended; called by its weak reference, so it may use no global name."""
    entries = entries_of()
    if entries is not None:
        entries._threads.pop(cache_key, None)
        for key in entries.keys():
            if key[0] == cache_key:
                entries.pop(key)
