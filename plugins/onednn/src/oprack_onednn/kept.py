"""Which of the many shapes that come with data keep what was made for them."""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping
from typing import Any

# How many keys that were asked for once are known to have been. When there are more, all are forgotten, which costs
# each of them a second time that what belongs to it is made.
_MET = 1024


class Kept:
    """Bounds a mapping that threads share: it keeps most of what was asked for again, few of what was asked for once.

    Inputs whose sizes hardly ever repeat, such as pictures, would otherwise fill the memory with primitives that nobody
    runs a second time; and inputs of a few sizes that follow each other in whatever order have all of theirs at hand
    from the second time on.
    """

    def __init__(self) -> None:
        self._once: dict[Hashable, None] = {}  # keys in the mapping that were asked for once, the latest last
        self._met: set[int] = set()  # hashes of keys: the keys themselves would be larger than they are worth

    def add(self, entries: MutableMapping[Any, Any], key: Hashable, value: Any, most: int, few: int) -> None:
        """Set an entry that was just made, and drop the oldest one of its sort when there are too many.

        Args:
            entries: The mapping, whose order is that of age or of use.
            key: A key that is new to it, or whose value is to be replaced.
            value: The value.
            most: Entries that are kept of keys that came again.
            few: Entries that are kept of keys that came once.
        """
        entries.pop(key, None)
        self._once.pop(key, None)
        if hash(key) in self._met:
            again = len(entries) - len(self._once)
            if again >= most:
                entries.pop(next((k for k in list(entries) if k not in self._once), None), None)
        else:
            if len(self._met) >= _MET:
                self._met.clear()
            self._met.add(hash(key))
            self._once[key] = None
            if len(self._once) > few:
                # a list of all, since other threads may add some and drop some meanwhile
                for oldest in list(self._once)[:-few]:
                    self._once.pop(oldest, None)
                    entries.pop(oldest, None)
        entries[key] = value

    def forget(self, key: Hashable) -> None:
        """A key that came once is no longer in the mapping."""
        self._once.pop(key, None)
