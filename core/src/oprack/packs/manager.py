"""PackManager: which packs are in use, and every question about ops and kernels that the rooms above ask."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from oprack.errors import (
    AlreadyExistsError,
    DuplicateOpError,
    InvalidArgumentError,
    MissingPackError,
    NotFoundError,
    OprackError,
    PreconditionNotMetError,
    UnknownOpError,
)
from oprack.packs import discovery, report
from oprack.packs.changes import changed
from oprack.packs.discovery import BUILTIN, HERE, Pack
from oprack.packs.index import Definer, OpIndex, build_info, build_kernel_map
from oprack.packs.info import BrokenPackWarning, PackInfo, PackWarning, warn
from oprack.packs.namespaces import NamespaceIndex
from oprack.packs.register import Register
from oprack.packs.resolve import REGENERATE, import_object

if TYPE_CHECKING:
    from oprack.device import DeviceContextPool
    from oprack.kernel import KernelSpec, OpKernelMap
    from oprack.op import OpDef, OpInfo
    from oprack.packs.cache import CachedSource


class PackManager:
    """The packs of one process; discovery runs when the first question is asked.

    entry_points: objects like importlib.metadata.EntryPoint, instead of those of installed distributions.
    environ: read for OPRACK_PACKS (unset: all packs; empty: none; "a,b": only these), OPRACK_BLOCK ("a,b"), and the
    cache's variables. cache: whether discovery may use the cache across processes. blocked: names of packs or
    distributions to leave out. Methods may be called from several threads.
    """

    def __init__(
        self,
        entry_points: Iterable[Any] | None = None,
        environ: Mapping[str, str] | None = None,
        cache: bool = True,
        blocked: Iterable[str] = (),
    ) -> None:
        self._entry_points = None if entry_points is None else list(entry_points)
        self._environ = os.environ if environ is None else environ
        self._use_cache = cache and entry_points is None
        self._lock = threading.RLock()
        self._packs: list[Pack] | None = None
        self._loading = False
        self._here = Pack(HERE)
        self._register = Register(HERE.name, HERE.distribution)
        self._here.contributions = self._register.contributions
        self._blocked = set(blocked)
        self._index = OpIndex(())
        self._layers = NamespaceIndex(())
        self._infos: dict[str, OpInfo] = {}
        self._kernel_maps: dict[tuple[str, str], OpKernelMap] = {}
        self._operators: dict[str, Any] = {}
        self._observers: list[Any] | None = None
        self._warned: set[tuple[str, ...]] = set()
        self.cache_state = "not asked yet"
        self.revision = 0
        """Grows whenever ops or kernels are added or blocked; a key of whatever caches a choice of kernels."""
        if discovery.CORE in self._blocked:
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
                    self._loading = True
                    try:
                        self._discover()
                    finally:
                        self._loading = False
        return self._index

    def _snapshot(self) -> tuple[OpIndex, int]:
        """The index and its revision: what is built from it is kept only while the revision stays."""
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
        index = OpIndex([*packs, self._here])
        for pack in [*packs, self._here]:
            pack.conflicts = ()
        for op_type, definers in index.definers.items():
            if len(definers) > 1:
                for definer in definers:
                    definer.pack.conflicts += (op_type,)
        self._infos, self._kernel_maps, self._operators = {}, {}, {}
        self._observers = None
        self._layers = NamespaceIndex([*packs, self._here])
        self._index, self._packs = index, packs
        self.revision += 1
        changed()

    def _warn(self, text: str, *key: str, category: type[PackWarning] = BrokenPackWarning) -> None:
        with self._lock:
            new = key not in self._warned
            self._warned.add(key)
        if new:
            warn(text, category)

    # Packs ------------------------------------------------------------------------------------------------------------
    def packs(self) -> list[PackInfo]:
        """Every installed pack, the core's own first; broken and blocked ones with their reason."""
        self._loaded()
        here = [self._here] if self._here.contributions.defined() else []
        return [pack.info() for pack in [*(self._packs or ()), *here]]

    def block(self, name: str) -> None:
        """Leave out a pack, by its name or its distribution's, from now on.

        Raises InvalidArgumentError for the core's own pack, NotFoundError for an unknown name.
        """
        if name in BUILTIN.names:
            raise InvalidArgumentError(report.UNBLOCKABLE)
        with self._lock:
            self._loaded()
            packs = list(self._packs or ())
            if not any(name in p.found.names for p in packs):
                raise NotFoundError(report.unknown_pack(f"block({name!r})", name, [p.found for p in packs]))
            for pack in packs:
                if name in pack.found.names:
                    pack.remember_known()
                    pack.status, pack.exception, pack.reason = "blocked", None, "blocked by PackManager.block"
            self._use(packs)

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
            raise DuplicateOpError(report.duplicate(op_type, [d.pack for d in definers]))
        bringers = report.bringers(op_type, self._packs or ())
        cause = next((p.exception for p in bringers if p.exception is not None), None)
        raise UnknownOpError(report.unknown_op(op_type, bringers, self._index.definers)) from cause

    def owner(self, op_type: str) -> str:
        """Distribution that defines the op. Raises as `op_info`."""
        return self._definer(op_type).pack.owner

    def op_version(self, op_type: str) -> int:
        """Version of the op, from the manifest when there is one, so that nothing is imported. Raises as `op_info`."""
        definer = self._definer(op_type)
        if definer.entry is not None and op_type not in self._index.versions:
            return definer.entry.version
        return self.op_info(op_type).version

    def op_info(self, op_type: str) -> OpInfo:
        """Everything known about the op but its kernels; its definition is imported on first use.

        Raises UnknownOpError with close matches, or with the broken or blocked pack that brings it; DuplicateOpError;
        PackImportError, ManifestError when the definition can't be had; AlreadyExistsError when a facet is set twice.
        """
        info = self._infos.get(op_type)
        if info is not None:
            return info
        index, revision = self._snapshot()
        definer = self._definer(op_type)
        info = build_info(op_type, definer, index)  # imports, so without the lock
        with self._lock:
            return self._infos.setdefault(op_type, info) if revision == self.revision else info

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
        if definer.entry is not None and definer.entry.operator:
            asked_by = f"operator of op {op_type}, pack {definer.pack.found.name}"
            found = import_object(definer.entry.operator, asked_by, REGENERATE)
        else:
            found = self.op_info(op_type).creator
        with self._lock:
            if revision == self.revision:
                self._operators[op_type] = found
        return found

    def require_ops(self, op_types: Iterable[str]) -> None:
        """Check that every op can be had.

        Raises MissingPackError with all missing types at once, and the broken or blocked packs that bring them;
        DuplicateOpError when two packs bring one.
        """
        wanted = sorted(set(op_types))
        definers = self._loaded().definers
        missing = [t for t in wanted if t not in definers]
        if missing:
            raise MissingPackError(report.missing(missing, self._packs or (), definers))
        for op_type in wanted:
            self._definer(op_type)

    def newer_ops(self, op_types: Iterable[str], versions: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        """Those of the ops that a program was saved with in a newer version than is installed: (saved, installed)."""
        known = {t: self.op_version(t) for t in sorted(set(op_types)) if t in versions and self.has_op(t)}
        return {t: (versions[t], v) for t, v in known.items() if versions[t] > v}

    def warn_of_newer_ops(self, op_types: Iterable[str], versions: Mapping[str, int]) -> None:
        """Warn (PackWarning), once an op, of what `newer_ops` finds."""
        for op_type, (saved, installed) in self.newer_ops(op_types, versions).items():
            pack = self._definer(op_type).pack
            text = report.newer_op(op_type, saved, installed, pack)
            self._warn(text, "newer op", op_type, str(saved), category=PackWarning)

    # Kernels ----------------------------------------------------------------------------------------------------------
    def kernel_map(self, op_type: str, place_kind: str) -> OpKernelMap:
        """Kernels of the op at a kind of place ("cpu", "cuda"), of all packs; only their modules are imported.

        A module that fails is reported once and left out; its error is raised when no kernel is left. Raises also as
        `op_info`, and DuplicateKernelError when two kernels of the op's own pack tie.
        """
        found = self._kernel_maps.get((op_type, place_kind))
        if found is not None:
            return found
        index, revision = self._snapshot()
        kernels = build_kernel_map(op_type, place_kind, self.op_info(op_type), index, self._warn)
        with self._lock:
            if revision == self.revision:
                return self._kernel_maps.setdefault((op_type, place_kind), kernels)
        return kernels

    def place_kinds(self, op_type: str) -> list[str]:
        """Kinds of places that the op has kernels for, without importing them. Raises as `op_info`."""
        self._definer(op_type)
        return sorted(self._index.places(op_type))

    def kernels_listing(self, op_type: str) -> list[KernelSpec]:
        """All kernels of the op at all places, each with its owner; imports them. Raises as `kernel_map`."""
        return [spec for place in self.place_kinds(op_type) for spec in self.kernel_map(op_type, place)]

    # Places, libraries and observers ----------------------------------------------------------------------------------
    def targets(self, kind: str) -> list[tuple[str, str, Any]]:
        """What packs registered under a kind ("place", "observer"): (owner, key, object or "module:name")."""
        return [(pack.owner, key, target) for pack, key, target in self._loaded().targets.get(kind, ())]

    def place_factory(self, kind: str) -> Any:
        """What a pack registered for a kind of place, imported now; None when no pack serves it.

        Raises AlreadyExistsError when two packs do, PackImportError when it can't be imported.
        """
        found = [(owner, target) for owner, key, target in self.targets("place") if key == kind]
        if len(found) > 1:
            raise AlreadyExistsError(
                f"place {kind!r} is brought by {' and '.join(o for o, _ in found)}; leave one out: "
                + report.blocks(found)
            )
        for owner, target in found:
            return import_object(target, f"place {kind} of {owner}") if isinstance(target, str) else target
        return None

    @cached_property
    def device_contexts(self) -> DeviceContextPool:
        """The pool that all who run ops of these packs share, so that a place has one DeviceContext."""
        from oprack.device import DeviceContextPool  # which imports an array library

        with self._lock:  # threads that ask at once get one pool
            made = DeviceContextPool(lambda kind: self.place_factory(kind))
            shared: DeviceContextPool = self.__dict__.setdefault("device_contexts", made)
            return shared

    def libraries(self) -> dict[str, Any]:
        """Kernel libraries by name, imported now; in place of one that can't be imported, the error."""
        found: dict[str, Any] = {}
        for owner, name, target in self.targets("library"):
            try:
                found[name] = import_object(target, f"library {name} of {owner}")
            except OprackError as e:
                found[name] = e
        return found

    def library_attrs(self) -> dict[str, str]:
        """Kernel libraries that an attribute of ops asks for, and the attribute."""
        return {name: attr for _, name, attr in self.targets("library attribute")}

    def observers(self) -> list[Any]:
        """Observers of runs of all packs, imported once; one that can't be imported is reported and left out."""
        targets = self.targets("observer")
        if self._observers is None:
            found = []
            for owner, _, target in targets:
                try:
                    found.append(import_object(target, f"observer of {owner}") if isinstance(target, str) else target)
                except OprackError as e:
                    self._warn(f"{e}", owner, "observer", str(target))
            self._observers = found
        return list(self._observers)

    # Layers -----------------------------------------------------------------------------------------------------------
    def layer_names(self, namespace: str) -> list[str]:
        """Names below `oprack.<namespace>` ("layers", "optimizer" ...) that packs in use bring, sorted."""
        self._loaded()
        return self._layers.names(namespace)

    def layer(self, namespace: str, name: str) -> Any:
        """What a pack brings as `oprack.<namespace>.<name>`, imported on first use.

        Raises UnknownLayerError with close matches, AlreadyExistsError when two packs bring it, PackImportError.
        """
        definers = self._loaded().definers.get(name)
        return self._layers.load(f"{namespace}.{name}", self._packs or (), definers[0].pack.owner if definers else "")

    # Registration in this process -------------------------------------------------------------------------------------
    def register_op(self, definition: type[OpDef]) -> None:
        """Bring an op by its definition class, in this process. Raises DuplicateOpError, DefinitionError."""
        self._add_here(lambda: self._register.op(definition), lambda: [self.op_info(definition.op_type)])

    def register_operator(self, op_type: str, *facets: Any) -> None:
        """Bring an op, or facets of one, in this process. Raises DefinitionError, AlreadyExistsError."""
        self._add_here(
            lambda: self._register.operator(op_type, *facets),
            lambda: [self.op_info(op_type)] if self.has_op(op_type) else [],
        )

    def register_kernel(self, function: Callable[..., Any]) -> None:
        """Bring the kernels that @kernel declared on a function, in this process.

        Raises DefinitionError when it is no kernel or does not match its op, DuplicateKernelError.
        """

        def check() -> None:
            from oprack.kernel import bind_signature

            for spec in self._here.contributions.kernels[count:]:
                if self.has_op(spec.op_type):
                    bind_signature(spec.function, self.op_info(spec.op_type).proto)
                    self.kernel_map(spec.op_type, spec.place).require_untied(spec, HERE.distribution)

        count = len(self._here.contributions.kernels)
        self._add_here(lambda: self._register.kernel(function), check)

    def _add_here(self, add: Callable[[], None], check: Callable[[], Any]) -> None:
        with self._lock:
            self._loaded()
            brought = self._here.contributions
            before = (dict(brought.definitions), list(brought.facets), list(brought.kernels))
            try:
                add()
                self._use(self._packs or [])
                check()
            except BaseException:
                brought.definitions, brought.facets, brought.kernels = before
                self._use(self._packs or [])
                raise


_default: PackManager | None = None
_used: list[PackManager] = []
_default_lock = threading.Lock()


def default_manager() -> PackManager:
    """The manager of this process, or the one that `use_manager` put in its place."""
    global _default
    if _used:
        return _used[-1]
    with _default_lock:
        if _default is None:
            _default = PackManager()
        return _default


@contextmanager
def use_manager(manager: PackManager) -> Iterator[PackManager]:
    """Make `manager` the default one, in all threads, for the length of a with block; meant for tests."""
    _used.append(manager)
    changed()
    try:
        yield manager
    finally:
        _used.remove(manager)
        changed()
