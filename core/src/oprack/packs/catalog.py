"""What the packs in use bring: every question about ops and kernels."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from oprack.errors import DuplicateOpError, MissingPackError, OprackError, UnknownOpError
from oprack.packs import report
from oprack.packs.index import Definer, build_info, build_kernel_map
from oprack.packs.info import PackWarning
from oprack.packs.resolve import REGENERATE, import_object, require_no_rules
from oprack.packs.state import PackState

if TYPE_CHECKING:
    from oprack.kernel import KernelSpec, OpKernelMap
    from oprack.op import OpInfo
    from oprack.packs.choice import Settlement


class OpCatalog(PackState):
    """Ops and kernels of the packs in use; what was imported and put together is cached until the packs change."""

    def _forget(self) -> None:
        super()._forget()
        self._infos: dict[str, OpInfo] = {}
        self._kernel_maps: dict[tuple[str, str], OpKernelMap] = {}
        self._operators: dict[str, Any] = {}

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
                raise DuplicateOpError(report.duplicate(op_type, [d.pack for d in definers]))
            self._warn_settled([settled])
            return definers[0]
        bringers = report.bringers(op_type, self._packs or ())
        cause = next((p.exception for p in bringers if p.exception is not None), None)
        raise UnknownOpError(report.unknown_op(op_type, bringers, self._index.definers, self._packs or ())) from cause

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

        Where several packs define the op, that of the pack is used that `oprack.packs.choice` says, with a warning.
        Raises UnknownOpError with close matches, or with the broken or blocked pack that brings it; DuplicateOpError
        when this process defines what a pack defines, or a pack defines it twice;
        PackImportError, ManifestError when the definition can't be had; AlreadyExistsError when one pack, or this
        process, sets a facet that is set.
        """
        info = self._infos.get(op_type)
        if info is not None:
            return info
        index, revision = self._snapshot()
        definer = self._definer(op_type)
        info, settled = build_info(op_type, definer, index, self._warn)  # imports, so without the lock
        self._warn_settled(settled)
        with self._lock:
            return self._infos.setdefault(op_type, info) if revision == self.revision else info

    def settlements(self) -> list[Settlement]:
        """All that several packs bring, and whose is used.

        For facets, definitions of the ops to which several packs add some are imported; what can't be is left out.
        """
        found, index = super().settlements(), self._loaded()
        for op_type in index.changed_by_others():
            with contextlib.suppress(OprackError):
                # put together apart from `op_info`, which warns of it at the first use
                found += build_info(op_type, index.definers[op_type][0], index, lambda *_, **__: None)[1]
        return found

    def orphans(self, owner: str = "") -> list[str]:
        """What packs bring for ops that no pack in use defines, in words.

        Args:
            owner: A distribution, for what it brings alone; "" for all.

        Returns:
            A sentence for each.
        """
        index = self._loaded()
        return [
            report.orphan(what, op_type, packs, index.definers)
            for what, ops in index.orphans().items()
            for op_type, packs in ops.items()
            if owner in ("", *(p.owner for p in packs))
        ]

    def op_for(self, role: str) -> str:
        """The op type that plays a role of `oprack.op.vocabulary`.

        Raises:
            UnknownRoleError: No pack plays the role. The message names what needs it and the distribution that brings
                it.
            DefinitionError: The vocabulary has no such role.
        """
        if self._packs is None:
            self._loaded()
        if self._undecided_roles and role in self._undecided_roles:
            self._warn_settled([self._undecided_roles[role]])
        return self._roles.op_for(role)

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
        with self._lock:
            if revision == self.revision:
                self._operators[op_type] = found
        return found

    def require_ops(self, op_types: Iterable[str]) -> None:
        """Check that every op can be had.

        Raises:
            MissingPackError: Ops are missing. The message lists all of them, and the broken or blocked packs that bring
                them.
            DuplicateOpError: As `op_info`.
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
        """Kernels of the op at a sort of place ("cpu", "cuda"), of all packs; only their modules are imported.

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
        """Sorts of places for which the op has kernels, without importing them. Raises as `op_info`."""
        self._definer(op_type)
        return sorted(self._index.places(op_type))

    def bringers(self, op_type: str) -> set[str]:
        """Distributions that define the op or bring kernels of it. Raises as `op_info`."""
        return {self._definer(op_type).pack.owner} | self._index.kernel_owners(op_type)

    def kernels_listing(self, op_type: str) -> list[KernelSpec]:
        """All kernels of the op at all places, each with its owner; imports them. Raises as `kernel_map`."""
        return [spec for place in self.place_kinds(op_type) for spec in self.kernel_map(op_type, place)]
