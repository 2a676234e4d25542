"""PackManager: the packs in use, and the look-up of everything that they bring."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from oprack.errors import DuplicateOpError, InvalidArgumentError, PreconditionNotMetError, UnknownOpError
from oprack.packs import advice, checks, choice
from oprack.packs.changes import changed
from oprack.packs.choice import Choice, Settlement, names
from oprack.packs.extensions import Extensions
from oprack.packs.here import Here
from oprack.packs.index import Definer, OpIndex, build_info, build_kernel_map
from oprack.packs.installed import discovery
from oprack.packs.installed.cache import CachedSource, cache_directory
from oprack.packs.installed.entry_points import BUILTIN, CORE
from oprack.packs.installed.resolve import REGENERATE, import_object, require_no_rules
from oprack.packs.pack import Pack, PackInfo, PackWarning, WarnOnce, warn

if TYPE_CHECKING:
    from oprack.device import DeviceContextPool
    from oprack.kernel import KernelSpec, OpKernelMap
    from oprack.op import OpDef, OpFacets, OpInfo


class PackManager:
    """The packs of one process, discovered on first use. Methods may be called from several threads.

    Args:
        entry_points: Objects like importlib.metadata.EntryPoint; default: those of installed distributions.
        environ: Read for OPRACK_PACKS (unset: all packs; empty: none; "a,b": only these), OPRACK_BLOCK ("a,b") and the
            variables of the cache.
        cache: Whether discovery may use the cache across processes.
        blocked: Names of packs or distributions to leave out.
        prefer: Names of packs or distributions whose op, function, role, pass or kernel is used where several packs
            bring the same, the most preferred one first; they go before those of OPRACK_PREFER ("a,b").
        priorities: Name of a pack or distribution -> what is added to the priority of its kernels; it goes before
            OPRACK_PRIORITY ("a=10,b=-5").
        allow: File of the only distributions that may be loaded, with their hashes (`oprack packs --lock FILE`);
            default: OPRACK_ALLOW, else all.

    Attributes:
        revision: Grows whenever ops or kernels are added or blocked; a key of whatever caches a choice of kernels.
        lock: Held while packs change; reentrant, since a question asked while they change asks others.

    Raises:
        InvalidArgumentError: The core's own pack is to be blocked, or a priority is no number.
    """

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
        environ = os.environ if environ is None else environ
        self._entry_points = None if entry_points is None else list(entry_points)
        self._environ, self._allow = environ, str(allow or environ.get("OPRACK_ALLOW", ""))
        self._use_cache = cache and entry_points is None
        self.cache_state = "not asked yet"
        self.lock = threading.RLock()
        self._packs: list[Pack] | None = None
        self._loading = False
        self._here: Here | None = None
        self._blocked = set(blocked)
        self._prefer = [*prefer, *names(environ.get("OPRACK_PREFER", ""))]
        self._priorities = choice.priorities(environ.get("OPRACK_PRIORITY", "")) | dict(priorities or {})
        self._saved_with: dict[str, str] = {}
        self._index = OpIndex(())
        # Once per manager and cause, or a broken pack would warn with every op that is looked up.
        self.warn_once = WarnOnce()
        self.revision = 0
        self._forget()
        if CORE in self._blocked:
            raise InvalidArgumentError(advice.UNBLOCKABLE)

    # Discovery --------------------------------------------------------------------------------------------------------
    @property
    def index(self) -> OpIndex:
        """What the packs in use bring, by op."""
        return self._loaded()

    def _loaded(self) -> OpIndex:
        if self._packs is None:
            with self.lock:
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

    def refresh(self) -> None:
        """Build the indices anew, since what a pack brings has changed."""
        with self.lock:
            self._use(list(self._packs or ()))
            changed()

    def _snapshot(self) -> tuple[OpIndex, int]:
        """The index and its revision; what is built from the index is valid while the revision stays."""
        with self.lock:
            return self._loaded(), self.revision

    def _discover(self) -> None:
        directory = cache_directory(self._environ) if self._use_cache else None
        source = discovery.PackSource(self._entry_points) if directory is None else CachedSource(directory)
        packs, messages = discovery.read_packs(source, self._environ, self._blocked, self._allow)
        self.cache_state = source.state
        self._use(packs)
        for text in messages:
            warn(text, PackWarning)
        for pack in packs:
            if pack.status == "broken":
                self.warn_once(advice.broken(pack), pack.owner, pack.found.name)

    def _use(self, packs: list[Pack]) -> None:
        """Take these packs and forget what was built from others."""
        own = [] if self._here is None else [self._here.pack]
        chosen = Choice([p.found for p in packs], self._prefer, self._priorities, self._saved_with)
        index = OpIndex([*packs, *own], chosen)
        self._forget()
        # Indices are never changed but replaced, so a thread that reads one goes on with what it had.
        self._index, self._packs = index, packs
        self.revision += 1

    def _forget(self) -> None:
        """Drop what was built from the packs in use before."""
        self._infos: dict[str, OpInfo] = {}
        self._kernel_maps: dict[tuple[str, str], OpKernelMap] = {}
        self._operators: dict[str, Any] = {}
        self._extensions: Extensions | None = None

    def _warn_settled(self, settled: Iterable[Settlement]) -> None:
        """Warn, once each, of what several packs bring and the user has not decided."""
        for one in settled:
            if not one.by_user:
                self.warn_once(advice.settled(one), "settled", one.what, one.name, category=PackWarning)

    # Packs ------------------------------------------------------------------------------------------------------------
    @property
    def here(self) -> Here:
        """What this process brings itself."""
        with self.lock:
            if self._here is None:
                self._here = Here(self)
            return self._here

    @property
    def extensions(self) -> Extensions:
        """Places, libraries and observers that packs bring."""
        # No lock: of two threads that both make them, either has what the packs bring.
        found = self._extensions
        if found is None:
            found = self._extensions = Extensions(self.targets, self.warn_once)
        return found

    def prefer(self, *packs: str) -> None:
        """From now on, use what these packs bring wherever others bring the same, the most preferred one first.

        Args:
            packs: Names of packs or distributions; they go before those that were preferred until now.

        Raises:
            NotFoundError: For an unknown name.
        """
        with self.lock:
            advice.require_known(f"prefer({', '.join(map(repr, packs))})", packs, self.discovered())
            self._prefer = list(dict.fromkeys([*packs, *self._prefer]))
            self.refresh()

    def set_priority(self, pack: str, added: int) -> None:
        """From now on, add a number to the priority that the kernels of a pack declare.

        Args:
            pack: Name of the pack or distribution.
            added: The number; negative ones make its kernels the last that are chosen.

        Raises:
            NotFoundError: For an unknown name.
        """
        with self.lock:
            advice.require_known(f"set_priority({pack!r}, {added})", [pack], self.discovered())
            self._priorities = {**self._priorities, pack: added}
            self.refresh()

    def packs(self) -> list[PackInfo]:
        """Every installed pack, the core's own first; broken and blocked ones with their reason."""
        index = self._loaded()
        own = [self._here.pack] if self._here is not None and self._here.pack.contributions.defined() else []
        layers = index.unique("layer")[1]
        return [pack.info(index.settled.values(), layers) for pack in [*(self._packs or ()), *own]]

    def discovered(self) -> list[Pack]:
        """Every installed pack, the core's own first; broken and blocked ones too."""
        self._loaded()
        return list(self._packs or ())

    def block(self, name: str) -> None:
        """Leave out a pack, by its name or its distribution's, from now on.

        Raises:
            InvalidArgumentError: For the core's own pack.
            NotFoundError: For an unknown name.
        """
        if name in BUILTIN.names:
            raise InvalidArgumentError(advice.UNBLOCKABLE)
        with self.lock:
            advice.require_known(f"block({name!r})", [name], self.discovered())
            packs = list(self._packs or ())
            for pack in packs:
                if name in pack.found.names:
                    pack.remember_known()
                    pack.status, pack.exception, pack.reason = "blocked", None, "blocked by PackManager.block"
            self._use(packs)
            changed()

    def register_op(self, definition: type[OpDef]) -> None:
        """Bring an op by its definition class, in this process. Raises DuplicateOpError, DefinitionError."""
        self.here.register_op(definition)

    def register_operator(self, op: str | type[OpDef] | OpFacets, *facets: Any) -> None:
        """Bring an op, or facets of one, in this process; see `oprack.register_operator`."""
        self.here.register_operator(op, *facets)

    def register_kernel(self, function: Callable[..., Any]) -> None:
        """Bring the kernels that @kernel declared on a function, in this process; see `oprack.register_kernel`."""
        self.here.register_kernel(function)

    # Ops --------------------------------------------------------------------------------------------------------------
    def op_types(self) -> list[str]:
        """Every op type that some pack in use defines, sorted."""
        return sorted(self._loaded().definers)

    def has_op(self, op_type: str) -> bool:
        """Whether some pack in use defines the op."""
        return op_type in self._loaded().definers

    def _definer(self, op_type: str) -> Definer:
        definers = self._loaded().definers.get(op_type, ())
        if len(definers) == 1:
            return definers[0]
        if definers:
            settled = self._index.settled.get(op_type)
            if settled is None:
                raise DuplicateOpError(advice.duplicate(op_type, [d.pack for d in definers]))
            if not settled.decided:
                raise DuplicateOpError(advice.undecided(settled))
            self._warn_settled([settled])
            return definers[0]
        bringers = advice.bringers(op_type, self._packs or ())
        cause = next((p.exception for p in bringers if p.exception is not None), None)
        raise UnknownOpError(advice.unknown_op(op_type, bringers, self._index.definers, self._packs or ())) from cause

    def owner(self, op_type: str) -> str:
        """Distribution that defines the op. Raises as `op_info`."""
        return self.pack_of(op_type).owner

    def pack_of(self, op_type: str) -> Pack:
        """The pack whose definition of the op is used. Raises as `op_info`."""
        return self._definer(op_type).pack

    def adopt(self, sources: Mapping[str, tuple[str, str]]) -> None:
        """Let ops that nothing else decides between be those with which a program was saved; see `checks.adopted`."""
        if found := checks.adopted(self._loaded().settled, sources):
            with self.lock:
                self._saved_with = {**self._saved_with, **found}
                self.refresh()

    def op_version(self, op_type: str) -> int:
        """Version of the op, from the manifest when there is one, so that nothing is imported. Raises as `op_info`."""
        definer = self._definer(op_type)
        if definer.entry is not None and op_type not in self._index.versions:
            return definer.entry.version
        return self.op_info(op_type).version

    def op_info(self, op_type: str) -> OpInfo:
        """Everything known about the op but its kernels; its definition is imported on first use.

        Where several packs define the op, that of the pack is used that `oprack.packs.choice` says, with a warning.
        Raises UnknownOpError with close matches, or with the broken or blocked pack that brings it; DuplicateOpError
        when nothing but their names would decide between packs, this process defines what a pack defines, or a pack
        defines it twice; PackImportError, ManifestError when the definition can't be had; AlreadyExistsError when one
        pack, or this process, sets a facet that is set.
        """
        info = self._infos.get(op_type)
        if info is not None:
            return info
        index, revision = self._snapshot()
        definer = self._definer(op_type)
        info, settled = build_info(op_type, definer, index, self.warn_once)  # imports, so without the lock
        self._warn_settled(settled)
        with self.lock:
            return self._infos.setdefault(op_type, info) if revision == self.revision else info

    def op_for(self, role: str) -> str:
        """The op type that plays a role of the vocabulary.

        Raises:
            UnknownRoleError: No pack plays the role. The message names what needs it and the distribution that brings
                it.
            DefinitionError: No pack plays it, and the vocabulary has no such role.
        """
        index = self._loaded()
        if settled := index.unique("role")[1]:
            self._warn_settled([s for s in settled if s.name == role])
        player = index.players.get(role)
        if player is None:
            raise self.extensions.without_player(role, self._packs or ())
        return player

    def operator_class(self, op_type: str) -> Any:
        """Class of an op that runs itself over a Scope; None for an op with kernels. Raises as `op_info`."""
        found = self.creator(op_type)
        return found if getattr(found, "runs_itself", True) else None

    def creator(self, op_type: str) -> Any:
        """Class of the op's operator; None for an op with kernels that brings no class. Raises as `op_info`."""
        if op_type in self._operators:
            return self._operators[op_type]
        _, revision = self._snapshot()
        definer = self._definer(op_type)
        found = self.op_info(op_type).creator  # another pack's, where the user prefers that
        if found is None and definer.entry is not None and definer.entry.operator:
            asked_by = f"operator of op {op_type}, pack {definer.pack.found.name}"
            found = import_object(definer.entry.operator, asked_by, REGENERATE)
            require_no_rules(found, f"{asked_by}: {definer.entry.operator}")
        with self.lock:
            if revision == self.revision:
                self._operators[op_type] = found
        return found

    def require_ops(
        self,
        op_types: Iterable[str],
        versions: Mapping[str, int] | None = None,
        sources: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        """Check that every op of a program can be had; see `oprack.packs.checks.require_ops`."""
        checks.require_ops(self, op_types, versions or {}, sources or {})

    # Kernels ----------------------------------------------------------------------------------------------------------
    def kernel_map(self, op_type: str, place_kind: str) -> OpKernelMap:
        """Kernels of the op at a sort of place ("cpu", "cuda"), of all packs; only their modules are imported.

        A module that fails is reported once and left out; its error is raised when no kernel is left. Raises also as
        `op_info`, and DuplicateKernelError when two kernels of the op's own pack tie.
        """
        found = self._kernel_maps.get((op_type, place_kind))
        if found is not None:
            return found
        index, revision = self._snapshot()
        kernels = build_kernel_map(op_type, place_kind, self.op_info(op_type), index, self.warn_once)
        with self.lock:
            if revision == self.revision:
                return self._kernel_maps.setdefault((op_type, place_kind), kernels)
        return kernels

    def place_kinds(self, op_type: str) -> list[str]:
        """Sorts of places for which the op has kernels, without importing them. Raises as `op_info`."""
        self._definer(op_type)
        return sorted(self._index.places(op_type))

    def kernels_listing(self, op_type: str) -> list[KernelSpec]:
        """All kernels of the op at all places, each with its owner; imports them. Raises as `kernel_map`."""
        return [spec for place in self.place_kinds(op_type) for spec in self.kernel_map(op_type, place)]

    # Places, libraries and observers ----------------------------------------------------------------------------------
    def targets(self, kind: str) -> list[tuple[str, str, Any]]:
        """The registrations of one kind, of all packs in use; of a name that several bring, one of them.

        Args:
            kind: "place", "observer" and so on.

        Returns:
            (owner, key, object or "module:name") for each.
        """
        rows, settled = self._loaded().unique(kind)
        if settled and kind not in ("layer", "role"):  # these are warned of when they are used
            self._warn_settled(settled)
        return [(pack.owner, key, target) for pack, key, target in rows]

    @cached_property
    def device_contexts(self) -> DeviceContextPool:
        """The pool shared by everything that runs ops of these packs, so that a place has one DeviceContext."""
        from oprack.device import DeviceContextPool  # Imported here, as it imports an array library.

        # cached_property takes no lock since Python 3.12: by setdefault threads that arrive at once agree on one pool.
        with self.lock:
            pool = DeviceContextPool(lambda kind: self.extensions.place_factory(kind))
            shared: DeviceContextPool = self.__dict__.setdefault("device_contexts", pool)
            return shared

    # Layers -----------------------------------------------------------------------------------------------------------
    def layer_names(self, namespace: str) -> list[str]:
        """The names that packs in use add to `oprack.<namespace>`, sorted."""
        return self._loaded().layers.names(namespace)

    def has_layer(self, namespace: str, name: str) -> bool:
        """Whether a pack in use adds a name to `oprack.<namespace>`.

        Args:
            namespace: "layers", "optimizer" and so on.
            name: The name.

        Returns:
            Whether one does.
        """
        return self._loaded().has_layer(f"{namespace}.{name}")

    def layer(self, namespace: str, name: str) -> Any:
        """The object that a pack adds as `oprack.<namespace>.<name>`, imported on first use.

        Args:
            namespace: "layers", "optimizer" and so on.
            name: The name.

        Returns:
            The function, class or module.

        Raises:
            UnknownLayerError: No pack in use brings it; the message has close matches.
            PackImportError: It can't be imported.
        """
        index = self._loaded()
        definers = index.definers.get(name)
        if settled := index.unique("layer")[1]:
            self._warn_settled([s for s in settled if s.name == f"{namespace}.{name}"])
        return index.layers.load(f"{namespace}.{name}", self._packs or (), definers[0].pack.owner if definers else "")


_default: PackManager | None = None
# The managers of active `use_manager` blocks, innermost last. No lock: only tests enter such blocks, one at a time.
_used: list[PackManager] = []
_default_lock = threading.Lock()


def default_manager() -> PackManager:
    """The manager of this process, or the one that `use_manager` put in its place.

    Returns:
        The manager.
    """
    global _default
    if _used:
        return _used[-1]
    # Two managers would give one process two sets of kernels, libraries and device contexts.
    with _default_lock:
        if _default is None:
            _default = PackManager()
        return _default


@contextmanager
def use_manager(manager: PackManager) -> Iterator[PackManager]:
    """Within a with block, make a manager the default one in all threads; meant for tests.

    Args:
        manager: The manager.

    Yields:
        The manager.
    """
    _used.append(manager)
    changed()
    try:
        yield manager
    finally:
        _used.remove(manager)
        changed()
