"""The one bounded cache, and the one budget in bytes that the caches of a process share.

Shapes, attributes and fetch lists come with the data, and something is made for each: plans, compiled primitives,
packed parameters. Each keeper of such things has a `Cache`. What may be large counts against `BUDGET` as well, which
drops what was used longest ago, whoever made it, when all of it together is too much.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from oprack.errors import InvalidArgumentError

__all__ = ["BUDGET", "Budget", "Cache", "cache_info", "set_cache_limit"]

LIMIT = "OPRACK_CACHE_LIMIT"
KEEPS_NOTHING = os.environ.get("OPRACK_CACHE", "").strip().lower() == "none"
"""Whether no cache keeps anything, for debugging: what was made for a call is made anew for the next one."""
_DEFAULT, _SHARE = 512 << 20, 4
# An epoch ends when as many bytes were added as this part of the limit. What was used in the last epochs is not
# dropped: a net that needs all of the budget for one size would make everything anew in each run.
_EPOCHS, _SAFE = 64, 16
# How far below the limit the budget goes once it is over it, as a part of the limit, so that not each new entry has to
# drop one.
_SLACK = 32


class Cache(dict[Any, Any]):
    """A mapping that keeps what was used last: at least `most` entries, and never more than twice as many.

    `cache[key]` gives an entry, or None where there is none, as fast as a dict does: no order of use is noted. Instead
    there are two generations. When the younger one is full it becomes the older one, which is dropped, and what is
    found there moves to the younger one again. So of forms in rotation, a few more than there is room for, a few are
    made anew in each round, where a list in the order of use would miss every one of them.

    Threads may share a cache: at worst something is made twice.

    Args:
        most: Entries that it keeps in any case.
        kind: What its entries are called in the account of `BUDGET`, against which they count; "": they are small, and
            count nowhere.
        budget: Another budget than the process's, for tests.
    """

    __slots__ = ("__weakref__", "_budget", "_kind", "_most", "_old", "_sizes")
    __hash__ = object.__hash__  # type: ignore[assignment]  # a budget knows caches by identity

    def __init__(self, most: int, kind: str = "", budget: Budget | None = None) -> None:
        super().__init__()
        self._most, self._kind = most, kind
        self._old: dict[Any, tuple[int, Any]] = {}  # with the epoch in which they were used last, in order
        self._sizes: dict[Any, int] = {}
        self._budget = BUDGET if budget is None else budget
        if kind:
            self._budget.register(self, self._sizes)

    # Looking up -------------------------------------------------------------------------------------------------------
    def __missing__(self, key: Any) -> Any:
        found = self._old.pop(key, None)
        if found is None:
            return None
        self._put(key, found[1])
        return found[1]

    def get(self, key: Any, default: Any = None) -> Any:
        """An entry, or the default; `cache[key]` is faster."""
        found = self[key]
        return default if found is None else found

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or key in self._old

    def __len__(self) -> int:
        return dict.__len__(self) + len(self._old)

    def __iter__(self) -> Iterator[Any]:
        return iter([*list(self._old), *dict.keys(self)])

    def keys(self) -> Any:
        """All keys, those used last at the end."""
        return list(self)

    def values(self) -> Any:
        """All entries, those used last at the end."""
        return [*(value for _, value in list(self._old.values())), *dict.values(self)]

    def items(self) -> Any:
        """All keys with their entries."""
        return [*((key, value) for key, (_, value) in list(self._old.items())), *dict.items(self)]

    # Changing ---------------------------------------------------------------------------------------------------------
    def __setitem__(self, key: Any, value: Any) -> None:
        self.keep(key, value)

    def keep(self, key: Any, value: Any, nbytes: int = 0) -> Any:
        """Set an entry, and return it; None can't be one.

        Args:
            key: The key.
            value: The entry.
            nbytes: About how many bytes are free again when the entry is dropped, without what accounts for itself
                (`Budget.count`).
        """
        if KEEPS_NOTHING:
            return value
        self._old.pop(key, None)
        self._put(key, value)
        if self._kind:
            before = self._sizes.get(key)
            self._sizes[key] = nbytes
            self._budget.count(self._kind, nbytes - (before or 0), 0 if before is not None else 1)
            self._budget.settle()
        return value

    def _put(self, key: Any, value: Any) -> None:
        if not dict.__contains__(self, key):
            if dict.__len__(self) >= self._most:
                dropped, self._old = self._old, {}
                self.age()
                self._forget([key for key in dropped if key not in self])
            elif dict.__len__(self) + len(self._old) >= 2 * self._most:
                self._drop_epochs()
        dict.__setitem__(self, key, value)

    def _drop_epochs(self) -> None:
        """Drop what was used last in the first epochs of the older generation, where enough is left without it."""
        for epoch, keys in self.by_epoch().items():
            if len(self) - len(keys) < self._most:
                return
            self.drop(keys, epoch)

    def age(self) -> None:
        """Let all entries count as not used since the present epoch of the budget began."""
        epoch, old, none = self._budget.epoch, self._old, (None,)
        for key in list(dict.keys(self)):
            value = dict.pop(self, key, none)  # another thread may have taken it out
            if value is not none:
                old[key] = epoch, value

    def drop(self, keys: Iterable[Any], epoch: int) -> int:
        """Drop those of the entries that were not used since an epoch, and say how many."""
        old, dropped = self._old, []
        for key in keys:
            entry = old.get(key)
            if entry is not None and entry[0] <= epoch and old.pop(key, None) is not None:
                dropped.append(key)
        self._forget(dropped)
        return len(dropped)

    def by_epoch(self) -> dict[int, list[Any]]:
        """Keys of what was not used in the present epoch, by the one in which it was used last."""
        found: dict[int, list[Any]] = {}
        for key, (epoch, _) in list(self._old.items()):
            found.setdefault(epoch, []).append(key)
        return found

    def pop(self, key: Any, default: Any = None) -> Any:
        """Take an entry out: the entry, or the default."""
        found = self[key]
        dict.pop(self, key, None)
        self._forget([key])
        return default if found is None else found

    def clear(self) -> None:
        """Drop all entries."""
        self._old.clear()
        dict.clear(self)
        self._forget(list(self._sizes))

    def _forget(self, keys: list[Any]) -> None:
        for key in keys:
            nbytes = self._sizes.pop(key, None)
            if nbytes is not None:
                self._budget.count(self._kind, -nbytes, -1)


class Budget:
    """The bytes that the caches of a process may take together.

    The account is one of estimates: who makes something large says what it takes, by measured constants where nothing
    else is known.

    Attributes:
        epoch: Grows with what is added; by it entries know when they were used last.
        dropped: How many entries were dropped because there was too much.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.epoch = self.dropped = 0
        self._limit, self._used, self._added = limit, 0, 0
        self._kinds: dict[str, list[int]] = {}  # bytes, number
        self._caches: dict[int, weakref.ref[Cache]] = {}
        self._idle: list[Callable[[], None]] = []
        # Bookings of all threads, and of finalizers, which run at any time: only who holds the lock adds them up.
        self._bookings: deque[tuple[str, int, int]] = deque()
        self._lock = threading.Lock()

    @property
    def limit(self) -> int:
        """Bytes: what `set_limit` said, else OPRACK_CACHE_LIMIT, else 512 MiB, or a quarter of the memory if less.

        Raises:
            InvalidArgumentError: The environment variable is no number of bytes.
        """
        if self._limit is None:
            text = os.environ.get(LIMIT, "").strip()
            if text and not (text.isascii() and text.isdigit()):
                raise InvalidArgumentError(f"{LIMIT} is {text!r}; expected a number of bytes, such as {_DEFAULT}")
            self._limit = int(text) if text else min(_DEFAULT, _memory() // _SHARE)
        return self._limit

    def set_limit(self, nbytes: int | None) -> None:
        """Set the limit, and drop what is over it; None: as the environment says."""
        if nbytes is not None and (not isinstance(nbytes, int) or isinstance(nbytes, bool) or nbytes < 0):
            raise InvalidArgumentError(f"set_cache_limit({nbytes!r}): expected a number of bytes, or None")
        self._limit = nbytes
        self.settle()

    def register(self, cache: Cache, sizes: dict[Any, int]) -> None:
        """Let a cache's entries be dropped; what it counted is given back when the cache goes.

        Args:
            cache: The cache.
            sizes: What its entries take; it outlives the cache.
        """
        kind, key = cache._kind, id(cache)

        def gone(_: Any, self: Budget = self, caches: dict[int, Any] = self._caches) -> None:
            caches.pop(key, None)
            self.count(kind, -sum(sizes.values()), -len(sizes))

        self._caches[key] = weakref.ref(cache, gone)

    def unlock(self) -> None:
        """In a process that was forked: a thread that is not in it may have had the lock."""
        self._lock = threading.Lock()

    def when_over(self, give_back: Callable[[], None]) -> None:
        """Call a function before entries are dropped: it gives memory back that nobody uses now, and books it."""
        self._idle.append(give_back)

    def give_back(self) -> None:
        """Give memory back that nobody uses now; what is booked for it is added up later."""
        for give_back in self._idle:
            give_back()

    # The account ------------------------------------------------------------------------------------------------------
    def count(self, kind: str, nbytes: int, number: int) -> None:
        """Book bytes that something takes, or no longer takes; for finalizers as well.

        Args:
            kind: What it is called in the account.
            nbytes: Bytes, below 0 of what is gone.
            number: 1 for a new one, -1 for one that is gone, else 0.
        """
        self._bookings.append((kind, nbytes, number))

    def taken(self, kind: str) -> int:
        """Bytes that are booked under a name, as they were added up last."""
        return self._kinds.get(kind, (0, 0))[0]

    def settle(self) -> None:
        """Add up what was booked, and drop what was used longest ago while it is too much."""
        # A finalizer may come here while this thread has the lock, and another thread that has it does the same.
        if self._lock.locked():
            return
        # By `with`, since a signal's handler may raise behind a call of acquire(), and in front of the try block.
        with self._lock:
            self._add_up()
            limit = self.limit
            epochs, self._added = divmod(self._added, limit // _EPOCHS + 1)
            if epochs:
                self.epoch += epochs
                for cache in self._alive():
                    cache.age()
            if self._used > limit:
                self._reduce(limit - limit // _SLACK)

    def _add_up(self) -> None:
        while self._bookings:
            kind, nbytes, number = self._bookings.popleft()
            account = self._kinds.setdefault(kind, [0, 0])
            account[0] += nbytes
            account[1] += number
            self._used += nbytes
            self._added += max(0, nbytes)

    def _alive(self) -> list[Cache]:
        return [cache for ref in list(self._caches.values()) if (cache := ref()) is not None]

    def _reduce(self, target: int) -> None:
        self.give_back()
        self._add_up()
        if self._used <= target:
            return
        rows: dict[int, list[tuple[Cache, list[Any]]]] = {}
        for cache in self._alive():
            for epoch, keys in cache.by_epoch().items():
                rows.setdefault(epoch, []).append((cache, keys))
        # What an entry takes may be free only when others are gone that hold it as well, so the account is looked at
        # after each cache.
        for epoch in sorted(e for e in rows if e <= self.epoch - _SAFE):
            for cache, keys in rows[epoch]:
                self.dropped += cache.drop(keys, epoch)
                self._add_up()
                if self._used <= target:
                    return

    def info(self) -> dict[str, Any]:
        """What `cache_info` returns."""
        with self._lock:
            self._add_up()
            kinds = {
                kind: {"bytes": nbytes, "entries": number}
                for kind, (nbytes, number) in sorted(self._kinds.items())
                if nbytes or number
            }
            return {"used": self._used, "limit": self.limit, "dropped": self.dropped, "kinds": kinds}


def _memory() -> int:
    """Bytes of memory that this process may use."""
    found = 1 << 62
    with contextlib.suppress(AttributeError, OSError, ValueError):
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError), open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
        found = min(found, int(file.read()))  # "max" where a container has no limit
    return found


BUDGET = Budget()
"""That of the process."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=BUDGET.unlock)


def set_cache_limit(nbytes: int | None) -> None:
    """Set how many bytes plans, compiled primitives and packed parameters of this process may take together.

    What was used longest ago is dropped beyond it, and made anew when it is wanted again. What the last inputs need is
    not dropped, so that a limit below that is exceeded.

    Args:
        nbytes: Bytes; None: what the environment variable OPRACK_CACHE_LIMIT says, else 512 MiB, or a quarter of the
            memory where that is less.

    Raises:
        InvalidArgumentError: It is no number of at least 0.
    """
    BUDGET.set_limit(nbytes)


def cache_info() -> dict[str, Any]:
    """What the caches of this process take.

    Returns:
        "used" and "limit" in bytes, "dropped": how many entries were dropped because there was too much, and "kinds":
        for each kind of entry its "bytes" and how many "entries" there are. Bytes are estimates.
    """
    return BUDGET.info()
