"""What a segment does with the values of its variables before generated code runs: their forms, and the arguments."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from oprack.cache import Cache

if TYPE_CHECKING:
    from oprack.runtime.plan.binding import Port

_ARRAY = attrgetter("array")
# Forms come with the data.
_FORMS = 1024


class Numbers:
    """Numbers for what takes long to hash, equal for equal ones; never one number for two that differ."""

    def __init__(self) -> None:
        self._known = Cache(_FORMS)
        self._next = itertools.count(1)

    def of(self, form: Any) -> int:
        """The number of a form; one that was not asked for lately may get another one."""
        number: int | None = self._known[form]
        if number is None:
            number = self._known[form] = next(self._next)
        return number


class SegmentArguments:
    """Makes the arguments of a segment's functions: of most variables, hundreds of parameters among them, the array.

    Args:
        ports: What the functions take.
        names: The variables whose values are given, in order; those of all ports are among them.
    """

    def __init__(self, ports: Sequence[Port], names: Sequence[str]) -> None:
        index = {name: i for i, name in enumerate(names)}
        self._taken = [index[port.var] for port in ports]
        self._all_tensors = all(port.tensor for port in ports)
        self._ports = list(ports)
        # Those that give more than an array, the last one first: what is put behind an array moves those that follow.
        self._with_more = [(i, port) for i, port in enumerate(ports) if port.tensor and (port.lod or port.flag)][::-1]
        self._shared = [i for i, port in enumerate(ports) if port.tensor and port.shared]

    def places(self) -> dict[str, tuple[int, int | None]]:
        """For each variable the position of its value among the arguments, and that of its offsets if they follow."""
        found, position = dict[str, tuple[int, int | None]](), 0
        for port in self._ports:
            has_lod = port.tensor and port.lod
            found[port.var] = position, position + 1 if has_lod else None
            position += 1 + has_lod + (port.tensor and port.flag)
        return found

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """The arguments, which refer to no more of the values than their arrays."""
        taken = [values[i] for i in self._taken]
        if self._all_tensors:
            arguments = list(map(_ARRAY, taken))
        else:
            arguments = [x.array if port.tensor else x for x, port in zip(taken, self._ports, strict=True)]
        for i, port in self._with_more:
            value = taken[i]
            more = [value.lod] if port.lod else []
            if port.flag:
                flags = value.array.flags
                mine = (flags.owndata and not value.shared) or value.shared is None
                more.append(mine and flags.c_contiguous and getattr(flags, "writeable", True))
            arguments[i + 1 : i + 1] = more
        # Two variables on one memory: neither may be overwritten by an op in place of a later segment.
        for i in self._shared:
            taken[i].shared = True
        return arguments
