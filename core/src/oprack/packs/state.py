"""Which packs are in use: discovery, blocking, and the indices that follow from them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from oprack.errors import InvalidArgumentError, NotFoundError, PreconditionNotMetError
from oprack.packs import choice, discovery, report
from oprack.packs.changes import changed
from oprack.packs.choice import Choice, Settlement, names
from oprack.packs.discovery import Pack
from oprack.packs.entry_points import BUILTIN, CORE, HERE, FoundPack
from oprack.packs.index import OpIndex
from oprack.packs.info import BrokenPackWarning, PackInfo, PackWarning, warn
from oprack.packs.namespaces import NamespaceIndex
from oprack.packs.register import Register
from oprack.packs.roles import RoleIndex

if TYPE_CHECKING:
    from oprack.packs.cache import CachedSource


class PackState:
    """The packs of a manager and the indices of what they bring; see PackManager for the arguments."""

    def __init__(
        self,
        entry_points: Iterable[Any] | None = None,
        environ: Mapping[str, str] | None = None,
        cache: bool = True,
        blocked: Iterable[str] = (),
        prefer: Iterable[str] = (),
        priorities: Mapping[str, int] | None = None,
        allow: str | os.PathLike[str] | None = None,
    ) -> None:
        self._entry_points = None if entry_points is None else list(entry_points)
        self._environ = os.environ if environ is None else environ
        self._use_cache = cache and entry_points is None
        # Guards discovery, the list of packs and the revision; reentrant, since a question asked while packs change
        # asks others.
        self._lock = threading.RLock()
        self._packs: list[Pack] | None = None
        self._loading = False
        self._here = Pack(HERE)
        self._register = Register(HERE.name, HERE.distribution)
        self._here.contributions = self._register.contributions
        self._blocked = set(blocked)
        self._prefer = [*prefer, *names(self._environ.get("OPRACK_PREFER", ""))]
        self._priorities = choice.priorities(self._environ.get("OPRACK_PRIORITY", "")) | dict(priorities or {})
        self._allow = allow or self._environ.get("OPRACK_ALLOW", "")
        self._index = OpIndex(())
        self._layers = NamespaceIndex(())
        self._roles = RoleIndex((), ())
        self._undecided_roles: dict[str, Settlement] = {}
        self._warned: set[tuple[str, ...]] = set()
        self.cache_state = "not asked yet"
        self.revision = 0
        """Grows whenever ops or kernels are added or blocked; a key of whatever caches a choice of kernels."""
        self._forget()
        if CORE in self._blocked:
            raise InvalidArgumentError(report.UNBLOCKABLE)

    # Discovery --------------------------------------------------------------------------------------------------------
    def _loaded(self) -> OpIndex:
        if self._packs is None:
            with self._lock:
                if self._loading:
                    raise PreconditionNotMetError(
                        "a pack asks for ops while packs are being discovered; move that call out of its module's top "
                        "level and out of its hooks"
                    )
                if self._packs is None:
                    # Set under the lock: only a hook of this very thread can find it set, any other thread waits.
                    self._loading = True
                    try:
                        self._discover()
                    finally:
                        self._loading = False
        return self._index

    def _snapshot(self) -> tuple[OpIndex, int]:
        """The index and its revision; what is built from the index is valid while the revision stays."""
        with self._lock:
            return self._loaded(), self.revision

    def _source(self) -> CachedSource | discovery.FreshSource:
        if self._use_cache:
            from oprack.packs.cache import CachedSource, cache_directory

            if (directory := cache_directory(self._environ)) is not None:
                return CachedSource(directory)
        return discovery.FreshSource(self._entry_points)

    def _discover(self) -> None:
        source = self._source()
        found = source.found()
        left_out, messages = report.selection(found, self._environ, self._blocked)
        if self._allow:
            from oprack.packs import allow_list

            refused, differing = allow_list.left_out([f for f in found[1:] if f not in left_out], str(self._allow))
            left_out, messages = left_out | refused, messages + differing
        packs = []
        for f in found:
            if reason := left_out.get(f):
                packs.append(Pack(f, "blocked", reason=reason))
            else:
                packs.append(source.load(f))
        source.save()
        self.cache_state = source.state
        self._use(packs)
        for text in messages:
            warn(text, PackWarning)
        for pack in packs:
            if pack.status == "broken":
                self._warn(report.broken(pack), pack.owner, pack.found.name)

    def _use(self, packs: list[Pack]) -> None:
        """Take these packs and forget what was built from others."""
        here = [*packs, self._here]
        index = OpIndex(here, Choice([p.found for p in packs], self._prefer, self._priorities))
        (layers, layer_conflicts), (roles, role_conflicts) = index.unique("layer"), index.unique("role")
        for pack in here:
            pack.conflicts = tuple(n for n, s in index.settled.items() if pack in (s.winner, *s.others))
            pack.layer_conflicts = tuple(s.name for s in layer_conflicts if pack in (s.winner, *s.others))
        self._forget()
        self._layers, self._roles = NamespaceIndex(layers), RoleIndex(roles, packs)
        self._undecided_roles = {s.name: s for s in role_conflicts if not s.by_user}
        # Indices are never changed but replaced, so a thread that reads one goes on with what it had.
        self._index, self._packs = index, packs
        self.revision += 1
        changed()

    def _forget(self) -> None:
        """Drop what was built from the packs in use before; the classes above add what they keep."""

    def _warn(self, text: str, *key: str, category: type[PackWarning] = BrokenPackWarning) -> None:
        with self._lock:
            # Once per manager and cause, or a broken pack would warn with every op that is looked up.
            new = key not in self._warned
            self._warned.add(key)
        if new:
            warn(text, category)

    def _warn_settled(self, settled: Iterable[Settlement]) -> None:
        """Warn, once each, of what several packs bring and the user has not decided."""
        for one in settled:
            if not one.by_user:
                self._warn(report.settled(one), "settled", one.what, one.name, category=PackWarning)

    # Packs ------------------------------------------------------------------------------------------------------------
    @property
    def choice(self) -> Choice:
        """What decides where several packs bring the same thing."""
        return self._loaded().choice

    def settlements(self) -> list[Settlement]:
        """All that several packs bring, and whose is used."""
        return self._loaded().settlements()

    def prefer(self, *packs: str) -> None:
        """From now on, use what these packs bring wherever others bring the same, the most preferred one first.

        Args:
            packs: Names of packs or distributions; they go before those that were preferred until now.

        Raises:
            NotFoundError: For an unknown name.
        """
        with self._lock:
            self._require(f"prefer({', '.join(map(repr, packs))})", packs)
            self._prefer = list(dict.fromkeys([*packs, *self._prefer]))
            self._use(list(self._packs or ()))

    def set_priority(self, pack: str, added: int) -> None:
        """From now on, add a number to the priority that the kernels of a pack declare.

        Args:
            pack: Name of the pack or distribution.
            added: The number; negative ones make its kernels the last that are chosen.

        Raises:
            NotFoundError: For an unknown name.
        """
        with self._lock:
            self._require(f"set_priority({pack!r}, {added})", [pack])
            self._priorities = {**self._priorities, pack: added}
            self._use(list(self._packs or ()))

    def _require(self, where: str, given: Iterable[str]) -> None:
        self._loaded()
        found = [p.found for p in self._packs or ()]
        known = {name for f in found for name in f.names}
        for name in given:
            if name not in known:
                raise NotFoundError(report.unknown_pack(where, name, found))

    def packs(self) -> list[PackInfo]:
        """Every installed pack, the core's own first; broken and blocked ones with their reason."""
        self._loaded()
        here = [self._here] if self._here.contributions.defined() else []
        return [pack.info() for pack in [*(self._packs or ()), *here]]

    def found_packs(self) -> list[FoundPack]:
        """The entry points of all packs in use, the core's own first."""
        self._loaded()
        return [pack.found for pack in self._packs or () if pack.status == "ok"]

    def loaded_files(self) -> list[tuple[str, int, int]]:
        """Files of core and packs that this process loaded so far: (path, mtime in ns, size)."""
        from oprack.packs.code import loaded_files

        self._loaded()
        return loaded_files([pack for pack in self._packs or () if pack.status == "ok"])

    def block(self, name: str) -> None:
        """Leave out a pack, by its name or its distribution's, from now on.

        Raises:
            InvalidArgumentError: For the core's own pack.
            NotFoundError: For an unknown name.
        """
        if name in BUILTIN.names:
            raise InvalidArgumentError(report.UNBLOCKABLE)
        with self._lock:
            self._require(f"block({name!r})", [name])
            packs = list(self._packs or ())
            for pack in packs:
                if name in pack.found.names:
                    pack.remember_known()
                    pack.status, pack.exception, pack.reason = "blocked", None, "blocked by PackManager.block"
            self._use(packs)
