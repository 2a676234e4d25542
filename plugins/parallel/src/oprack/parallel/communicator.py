"""Communicator: collectives among ranks, with a record, a check that ranks agree, and a limit on waiting."""

from __future__ import annotations

import collections
import functools
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.errors import CollectiveError, InvalidArgumentError
from oprack.parallel.links import Links
from oprack.parallel.reductions import require_reduction, scaled
from oprack.parallel.transfers import Running, Transfer
from oprack.parallel.watchdog import WATCHDOG, Pending

if TYPE_CHECKING:
    from oprack.eager_tensor import Tensor

CHECKED = 256
"""So many collectives of each communicator are compared among the ranks, unless OPRACK_CHECK_COLLECTIVES says."""
EVERY = 50
"""Of those after them, each of this number is compared, and all that ran since the last one by a checksum."""
KINDS = 1024
"""Later ones of another kind (name, dtype, shape) are compared as well, until there were so many kinds."""
DECISIONS = 4096
"""So many decisions of ranks, such as layouts that they choose, are compared."""
RECORDED = 32
_ALIKE = (
    "All ranks must call the same ops in the same order on tensors of the same shapes: look for an if or a loop that "
    "depends on the rank"
)


class Communicator(ABC):
    """Collectives among the ranks of a group, on arrays of the place that its engine serves.

    All ranks of the group must call the same methods in the same order. An engine derives from this class and writes
    the methods whose names begin with an underscore: they get C-contiguous arrays and return new ones. One that can
    let a collective go on while the rank computes writes `_start`; with others, what is started is done at once. The
    public methods record what runs, compare it among the ranks for the first calls (OPRACK_CHECK_COLLECTIVES: how many;
    0: none at all), for those of a new kind and for every 50th after them, and let the watchdog end the program when a
    call waits for longer than its limit.

    Args:
        rank: This rank in the group, from 0.
        size: Number of ranks.
        name: For messages: "world", or the axis of a placement.

    Attributes:
        record: The last collectives in words, oldest first.
    """

    rank: int
    size: int
    name: str
    engine = "none"
    grid: tuple[tuple[int, ...], tuple[str, ...]] | None = None
    """Shape and names of the axes of placements that say none; None: one axis of all ranks."""
    links = Links()
    """How long messages take, by which layouts are chosen; the same on all ranks."""
    hint = ""
    """What helps where other ranks do not come to what runs, for the message of one that waited too long."""
    place_kind = ""
    """Kind of the place of all tensors, whatever placements say; "" where they decide."""
    timed = True
    """Whether the watchdog looks after its calls; False for an engine that limits them itself."""

    def __init__(self, rank: int, size: int, name: str) -> None:
        self.rank, self.size, self.name = rank, size, name
        self.record: collections.deque[str] = collections.deque(maxlen=RECORDED)
        self.count = 0
        self._checked = _checked_calls() if size > 1 else 0
        self._ran, self._digest = 0, 0
        self._kinds: set[tuple[Any, ...]] = set()
        self._decisions: set[Any] = set()
        self.under_way: dict[int, Transfer] = {}  # what was started, by number
        self._beside: Communicator | None = None

    @property
    def compares(self) -> bool:
        """Whether ranks compare what they do, unless OPRACK_CHECK_COLLECTIVES is 0."""
        return self._checked > 0

    # Engines write these ----------------------------------------------------------------------------------------------
    @abstractmethod
    def _all_reduce(self, x: Any, op: str) -> Any: ...

    def _all_reduce_in_place(self, x: Any, op: str) -> Any:
        """As _all_reduce, for engines that can do so in the memory of `x`."""
        return self._all_reduce(x, op)

    def _start(self, collective: str, x: Any, *arguments: Any) -> Running | None:
        """Start a collective: "all_reduce" (x, op, factor, and out if it is given), "reduce_scatter" (x,
        counts, factor) or "all_gather" (result, counts). It may go on inside of `test` and `wait` alone. None: the
        engine can't start it.
        """
        return None

    def _ends(self, x: Any, running: Running | None = None) -> Callable[[], bool] | None:
        """What asks a device whether what was enqueued last is done, from any thread; None: calls return when it is."""
        return None

    def _get_ready(self) -> None:  # noqa: B027  most engines need nothing
        """Make what `_start` needs; collective. Called for communicators of what is started alone."""

    @abstractmethod
    def _all_gather(self, x: Any, counts: Sequence[int]) -> Any:
        """Arrays of all ranks one after the other along dim 0; rank r brings counts[r] rows."""

    @abstractmethod
    def _reduce_scatter(self, x: Any, counts: Sequence[int]) -> Any:
        """Rows of the sum over the ranks: rank r gets counts[r] of them."""

    @abstractmethod
    def _all_to_all(self, parts: Sequence[Any], shapes: Sequence[Sequence[int]]) -> list[Any]:
        """parts[r] goes to rank r; the array from rank r has shapes[r]."""

    @abstractmethod
    def _broadcast(self, x: Any, root: int) -> Any: ...

    @abstractmethod
    def _send(self, x: Any, to: int) -> None: ...

    @abstractmethod
    def _receive(self, shape: Sequence[int], dtype: Any, source: int) -> Any: ...

    @abstractmethod
    def _gather_facts(self, value: Any) -> list[Any]:
        """Small values that JSON can write, of all ranks, in order."""

    @abstractmethod
    def _split(self, color: int, key: int, name: str) -> Communicator: ...

    @abstractmethod
    def abort(self, code: int, reason: str = "") -> None:
        """End the program on all ranks with this exit status; the reason is for whoever launched it."""

    # Everybody calls these --------------------------------------------------------------------------------------------
    def all_reduce(self, x: Any, op: str = "sum", in_place: bool = False) -> Any:
        """Reduce the ranks' arrays element by element.

        Args:
            x: An array; the same shape and dtype on every rank.
            op: "sum", "max", "min" or "prod".
            in_place: Whether the result may take the memory of `x`, which the caller gives up.

        Returns:
            An array that is equal on all ranks, a new one unless in_place.

        Raises:
            CollectiveError: Ranks call different collectives.
            InvalidArgumentError: The reduction is unknown.
        """
        require_reduction(op)
        if self.size == 1:
            return x if in_place else x.copy()
        function = self._all_reduce_in_place if in_place else self._all_reduce
        return self._run(f"all_reduce_{op}", x, tuple(x.shape), lambda: function(_dense(x), op))

    def all_gather(self, x: Any, counts: Sequence[int] | None = None) -> Any:
        """Join the ranks' arrays along dim 0.

        Args:
            x: An array; all dims but the first are the same on every rank.
            counts: Rows that each rank brings; default: as many as this one.

        Returns:
            A new array, equal on all ranks.

        Raises:
            CollectiveError: Ranks call different collectives.
        """
        if self.size == 1:
            return x.copy()
        rows = list(counts) if counts is not None else [x.shape[0]] * self.size
        return self._run("all_gather", x, (sum(rows), *x.shape[1:]), lambda: self._all_gather(_dense(x), rows))

    def reduce_scatter(self, x: Any, counts: Sequence[int]) -> Any:
        """Sum the ranks' arrays and keep the rows of this rank.

        Args:
            x: An array; the same shape and dtype on every rank.
            counts: Rows that each rank gets.

        Returns:
            A new array of counts[rank] rows.

        Raises:
            CollectiveError: Ranks call different collectives.
        """
        if self.size == 1:
            return x.copy()
        return self._run("reduce_scatter", x, tuple(x.shape), lambda: self._reduce_scatter(_dense(x), list(counts)))

    def all_to_all(self, parts: Sequence[Any], shapes: Sequence[Sequence[int]]) -> list[Any]:
        """Give each rank one array and get one from each.

        Args:
            parts: The array for each rank.
            shapes: The shape of the array from each rank.

        Returns:
            The arrays from the ranks, in order.

        Raises:
            CollectiveError: Ranks call different collectives.
        """
        if self.size == 1:
            return [parts[0].copy()]
        given = [_dense(p) for p in parts]
        return self._run("all_to_all", given[0], (), lambda: self._all_to_all(given, shapes))  # type: ignore[no-any-return]

    def broadcast(self, x: Any, root: int = 0) -> Any:
        """The array of one rank, on all.

        Args:
            x: An array; shape and dtype are the same on every rank, the values of `root` count.
            root: The rank that has the values.

        Returns:
            A new array.

        Raises:
            CollectiveError: Ranks call different collectives.
        """
        if self.size == 1:
            return x.copy()
        return self._run("broadcast", x, (*x.shape, root), lambda: self._broadcast(_dense(x), root))

    def start_all_reduce(self, x: Any, op: str = "sum", factor: float = 1.0, out: Any = None) -> Transfer:
        """As `all_reduce`, of an array that stays as it is meanwhile; it goes on while the rank computes.

        Args:
            x: An array; the same shape and dtype on every rank.
            op: "sum", "max", "min" or "prod".
            factor: What each rank's array is multiplied by first, in the copy that is made anyway.
            out: An array in `memory` for the result: each rank writes a part of it, once all ranks have started. Who
                starts the next one with it lets go of what is there.

        Returns:
            The transfer, whose `wait` returns a new array, or one on the memory of `out`. Where ranks call different
            collectives, it raises.

        Raises:
            InvalidArgumentError: The reduction is unknown.
        """
        require_reduction(op)
        into = () if out is None else (out,)
        started = self._started(f"all_reduce_{op}", "all_reduce", x, tuple(x.shape), op, factor, *into)
        return started or Transfer.done(self.all_reduce(scaled(x, factor), op))

    def start_all_gather(self, whole: Any, counts: Sequence[int]) -> Transfer:
        """As `all_gather`, in the memory of the result; it goes on while the rank computes.

        Args:
            whole: The result: the rows that this rank brings are there, the others come.
            counts: Rows that each rank brings.

        Returns:
            The transfer, whose `wait` returns `whole`, with which the caller may then do as it likes. Where ranks call
            different collectives, it raises.
        """
        started = self._started("all_gather", "all_gather", whole, tuple(whole.shape), list(counts))
        if started is None and self.size > 1:
            whole[...] = self.all_gather(whole[sum(counts[: self.rank]) :][: counts[self.rank]], counts)
        return started or Transfer.done(whole)

    def memory(self, size: int, like: Any) -> Any:
        """Memory that is one for all ranks, collective: what a rank writes there, between barriers, all have.

        Args:
            size: Its number of elements, in one dim.
            like: An array of the same dtype and place.

        Returns:
            An array that is not initialised; None on all ranks where they can't have it.
        """
        return None

    def start_reduce_scatter(self, x: Any, counts: Sequence[int], factor: float = 1.0) -> Transfer:
        """As `reduce_scatter`, of an array that stays as it is meanwhile; it goes on while the rank computes.

        Args:
            x: An array; the same shape and dtype on every rank.
            counts: Rows that each rank gets.
            factor: What each rank's array is multiplied by first.

        Returns:
            The transfer, whose `wait` returns the array. Where ranks call different collectives, it raises.
        """
        started = self._started("reduce_scatter", "reduce_scatter", x, tuple(x.shape), list(counts), factor)
        return started or Transfer.done(self.reduce_scatter(scaled(x, factor), counts))

    def beside(self) -> Communicator:
        """A communicator of the same ranks for what is started, collective the first time.

        Collectives of one communicator come in one order on all ranks. What goes on while ranks compute may be started
        earlier on one rank than on another, so it needs an order of its own.
        """
        if self.size == 1:
            return self
        if self._beside is None:
            self._beside = self.split(0, self.rank, self.name, self.size, "what is under way")
            self._beside.record = self.record
            self._beside._get_ready()
        return self._beside

    def gather_facts(self, value: Any) -> list[Any]:
        """Values of all ranks, such as shapes or names.

        Args:
            value: A small value that JSON can write.

        Returns:
            The value of each rank, in order.
        """
        if self.size == 1:
            return [value]
        same = ["gather_facts", "", []]
        found: list[Any] = self._watched("gather_facts", lambda: self._agreed(same, "gather_facts", value))
        return found

    def agree(self, key: Any, decision: Any, what: str) -> None:
        """Compare among the ranks what each has decided, the first time that it is decided; collective.

        Layouts that ranks choose by themselves have to be the same, or they would wait for each other, or take parts of
        one array for those of another.

        Args:
            key: What is decided, hashable, made of what all ranks know, in one order on all of them.
            decision: A small value that JSON can write.
            what: For the message.

        Raises:
            CollectiveError: The ranks decide differently.
        """
        if not self._checked or key in self._decisions or len(self._decisions) >= DECISIONS:
            return
        self._decisions.add(key)
        with WATCHDOG.watching(WATCHDOG.note(Pending(self, f"agree on {what}", self.count))):
            facts = self._agreed(["agree", what, []], f"decides on {what}", decision)
        if any(f != facts[0] for f in facts):
            said = "; ".join(f"rank {r}: {f}" for r, f in enumerate(facts))
            raise CollectiveError(
                f"{self!r}: the ranks decide differently on {what}. {said}. Ranks decide by shapes, dtypes and layouts "
                "of whole tensors, which have to be the same on all of them"
            )

    def barrier(self) -> None:
        """Wait until every rank is here."""
        self.gather_facts(None)

    def send(self, x: Any, to: int) -> None:
        """Send an array to a rank, which must call `receive`."""
        self._watched(f"send to rank {to}: {_words(x.dtype, x.shape)}", lambda: self._send(_dense(x), to), x)

    def receive(self, shape: Sequence[int], dtype: Any, source: int) -> Any:
        """The array of this shape and dtype that a rank sends."""
        what = f"receive from rank {source}: {_words(dtype, shape)}"
        return self._watched(what, lambda: self._receive(tuple(shape), dtype, source))

    def adopt(self, x: Tensor) -> Tensor:
        """A tensor of this process, brought in place to where the engine's tensors lie; most engines leave it there."""
        return x

    def split(self, color: int, key: int, name: str, size: int | None = None, common: str = "") -> Communicator:
        """Groups of the ranks that give the same color, ordered by key; collective.

        Args:
            color: Which group.
            key: Order in the group.
            name: The group's name, for messages.
            size: Its number of ranks where the caller knows it, for engines that can't ask the other ranks.
            common: What all ranks say alike of these groups, which is compared.

        Returns:
            The group of this rank.

        Raises:
            CollectiveError: Ranks call other collectives, or open other groups.
        """
        if self.size > 1:
            with WATCHDOG.watching(WATCHDOG.note(Pending(self, f"split {name}", self.count + 1))):
                self._agreed(["split", common, []], f"split {name}", None)
        return self._watched(f"split {name}", lambda: self._split(color, key, name))  # type: ignore[no-any-return]

    # What runs around each --------------------------------------------------------------------------------------------
    def _run(self, name: str, x: Any, agreed: tuple[int, ...], call: Callable[[], Any]) -> Any:
        what = f"{name} {_words(x.dtype, x.shape)}"
        kind = (name, _name_of(x.dtype), agreed)
        if self._checked and self._is_its_turn(kind):
            with WATCHDOG.watching(WATCHDOG.note(Pending(self, what, self.count + 1))):
                digests = self._agreed([*kind[:2], list(agreed)], what, self._digest)
            self._require_same_past(digests)
        return self._watched(what, call, x)

    def _started(self, name: str, collective: str, x: Any, agreed: tuple[int, ...], *arguments: Any) -> Transfer | None:
        """The transfer of a collective; None for one rank, and where the engine has to run it at once."""
        if self.size == 1:
            return None
        # Compared by a message that is under way as well: to wait here would keep the rank from its own work.
        kind = (name, _name_of(x.dtype), agreed)
        own = None
        if self._checked and self._is_its_turn(kind):
            facts = np.zeros((self.size, 2), np.int64)
            facts[self.rank] = zlib.crc32(repr(kind).encode()), self._digest
            own = self._start("all_gather", facts, [1] * self.size)
        given = _dense(x)
        running = self._start(collective, given, *arguments)
        if running is None:
            return None
        what = f"{name} {_words(x.dtype, x.shape)}"
        pending = self._numbered(what, ", started")
        transfer = Transfer(pending, running, None if own is None else lambda: self._compare(own, what))
        WATCHDOG.follow(pending, self._ends(given, running))
        return transfer

    def _compare(self, facts: Running, what: str) -> None:
        """Raise CollectiveError where the ranks started different collectives, now or before."""
        found = facts.wait()
        if (found[:, 0] != found[0, 0]).any():
            said = "; ".join(f"rank {r}: {text}" for r, text in enumerate(self._gather_facts(what)))
            raise CollectiveError(f"{self!r}: the ranks start different collectives. {said}. {_ALIKE}")
        self._require_same_past(found[:, 1].tolist())

    def _is_its_turn(self, kind: tuple[str, str, tuple[int, ...]]) -> bool:
        """Whether this collective is compared among the ranks; else it goes into the checksum."""
        self._ran += 1  # not `count`, since ranks may send and receive each its own number of messages
        known = kind in self._kinds or len(self._kinds) >= KINDS
        if self._ran > self._checked and self._ran % EVERY and known:
            self._digest = zlib.crc32(repr(kind).encode(), self._digest)
            return False
        self._kinds.add(kind)
        return True

    def _require_same_past(self, digests: Sequence[int]) -> None:
        """Raise CollectiveError where the ranks ran different collectives since they were compared last."""
        if any(d != digests[0] for d in digests):
            records = "; ".join(f"rank {r}: {last}" for r, last in enumerate(self._gather_facts(list(self.record))))
            raise CollectiveError(
                f"{self!r}: the ranks ran different collectives since they were compared last, so results may be "
                f"wrong. The last ones were, {records}. {_ALIKE}"
            )

    def _agreed(self, same: list[Any], what: str, value: Any) -> list[Any]:
        """The value of each rank. Raises CollectiveError where ranks are about to run different collectives."""
        facts = self._gather_facts([same, what, value])
        if any(f[0] != facts[0][0] for f in facts):
            said = "; ".join(f"rank {r}: {f[1]}" for r, f in enumerate(facts))
            raise CollectiveError(f"{self!r}: the ranks run different collectives. {said}. {_ALIKE}")
        return [f[2] for f in facts]

    def _numbered(self, what: str, how: str = "") -> Pending:
        """A collective that comes now, with a number; it is recorded."""
        self.count += 1
        self.record.append(f"number {self.count} of {self.name}: {what}{how}")
        return WATCHDOG.note(Pending(self, what, self.count))

    def _watched(self, what: str, call: Callable[[], Any], x: Any = None) -> Any:
        pending = self._numbered(what)
        with WATCHDOG.watching(pending):
            found = call()
        WATCHDOG.follow(pending, self._ends(found if x is None else x))
        return found

    def __repr__(self) -> str:
        return f"<{self.engine} communicator {self.name}: rank {self.rank} of {self.size}>"


def _dense(x: Any) -> Any:
    """The array itself where it is C-contiguous, else a copy that is; it keeps 0-D arrays as they are."""
    return x if x.flags.c_contiguous else x.copy(order="C")


@functools.cache  # since NumPy puts a name together each time
def _name_of(dtype: Any) -> str:
    return str(getattr(dtype, "__name__", dtype))  # np.float32 is a dtype, too, and is called so


def _words(dtype: Any, shape: Sequence[int]) -> str:
    return f"{_name_of(dtype)}{list(shape)}"


def _checked_calls() -> int:
    if not (text := os.environ.get("OPRACK_CHECK_COLLECTIVES", "")):
        return CHECKED
    if not text.isdecimal():
        raise InvalidArgumentError(
            f"OPRACK_CHECK_COLLECTIVES={text!r}; expected how many collectives are compared among the ranks one by "
            "one, 0 for none"
        )
    return int(text)
