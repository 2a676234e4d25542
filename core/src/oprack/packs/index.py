"""The index op type -> who defines it, and who adds facets, kernels and versions; built from the packs in use."""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from oprack.errors import DefinitionError, DuplicateKernelError, ManifestError, OprackError, UnknownOpError
from oprack.names.tables import home
from oprack.packs import advice
from oprack.packs.choice import Choice, Settlement
from oprack.packs.extensions import NamespaceIndex
from oprack.packs.installed.entry_points import HERE
from oprack.packs.installed.manifest import Manifest, OpEntry
from oprack.packs.installed.resolve import REGENERATE, import_module, import_object
from oprack.packs.pack import Pack, PackWarning, is_maker
from oprack.python.records import dataclass

Row = TypeVar("Row")

if TYPE_CHECKING:
    from oprack.kernel import KernelSpec, OpKernelMap
    from oprack.op import OpDef, OpInfo, OpVersion
    from oprack.packs.manager import PackManager


@dataclass(frozen=True)
class Definer:
    """A pack that defines an op: by an entry of its manifest, by a class, or (neither) by facets with an OpMaker.

    An entry names a class or OpFacets.
    """

    pack: Pack
    op_type: str
    manifest: Manifest | None = None
    definition: type[OpDef] | None = None

    @property
    def entry(self) -> OpEntry | None:
        """The entry of the manifest. Raises ManifestError when it is malformed."""
        return None if self.manifest is None else self.manifest.ops[self.op_type]


def _add(rows: dict[str, tuple[Row, ...]], op_types: Iterable[str], row: Row) -> set[str]:
    """Add a row to those of some ops, all at once, since there are hundreds; returns the ops that had some."""
    new: dict[str, tuple[Row, ...]] = dict.fromkeys(op_types, (row,))
    again = rows.keys() & new.keys()
    rows |= new | {op_type: (*rows[op_type], row) for op_type in again}
    return again


class Definers(Mapping[str, list[Definer]]):
    """Op type -> who defines it; a Definer is made when its op is asked for, of the hundreds that manifests name.

    Attributes:
        several: Op types that more than one defines, or one more than once.
    """

    def __init__(self) -> None:
        self._rows: dict[str, tuple[tuple[Pack, Manifest | None, type[OpDef] | None], ...]] = {}
        self.several: set[str] = set()

    def add(
        self,
        op_types: Iterable[str],
        pack: Pack,
        manifest: Manifest | None = None,
        definition: type[OpDef] | None = None,
    ) -> None:
        """Note that a pack defines some ops, as `Definer` says."""
        self.several |= _add(self._rows, op_types, (pack, manifest, definition))

    def put_first(self, op_type: str, winner: Pack) -> None:
        """Let the pack come first that is used."""
        self._rows[op_type] = tuple(sorted(self._rows[op_type], key=lambda row: row[0] is not winner))

    def __getitem__(self, op_type: str) -> list[Definer]:
        return [Definer(pack, op_type, manifest, definition) for pack, manifest, definition in self._rows[op_type]]

    def __contains__(self, op_type: object) -> bool:
        return op_type in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class OpIndex:
    """Built anew whenever a pack is added or blocked; imports nothing itself.

    Of packs that define one op type, the first in `definers` is the one whose is used. The others bring nothing for
    this op: kernels and facets that were written for another definition do not fit this one.
    """

    def __init__(self, packs: Iterable[Pack], choice: Choice | None = None) -> None:
        self.choice = choice or Choice()
        self.settled: dict[str, Settlement] = {}
        self._unique: dict[str, tuple[list[tuple[Pack, str, Any]], list[Settlement]]] = {}
        self.definers = Definers()
        self.facets: dict[str, list[tuple[Pack, tuple[Any, ...]]]] = defaultdict(list)
        self.versions: dict[str, list[tuple[Pack, OpVersion]]] = defaultdict(list)
        self.targets: dict[str, list[tuple[Pack, str, Any]]] = defaultdict(list)
        self._manifests: dict[str, tuple[tuple[Pack, Manifest], ...]] = {}
        self._declared: dict[str, dict[tuple[str, str], list[KernelSpec]]] = {}
        self._kernels: dict[str, list[tuple[Pack, KernelSpec]]] = defaultdict(list)
        for pack in packs:
            if pack.status == "ok":
                self._add(pack)
        for op_type in sorted(self.definers.several):  # in the same order in every process
            self._settle(op_type)

    def _settle(self, op_type: str) -> None:
        """Put the definer that is used first, and leave out what the others bring for the op."""
        definers = self.definers[op_type]
        packs = list({id(d.pack): d.pack for d in definers}.values())
        if len(packs) < len(definers) or any(p.found is HERE for p in packs):
            return  # a mistake of one pack or of this process, which is told of it (`PackManager._definer`)
        settled = self.settled[op_type] = self.choice.settle("op", op_type, packs, home("ops", op_type))
        self.definers.put_first(op_type, settled.winner)
        mine: Any
        for mine in (self.facets, self.versions, self._manifests, self._kernels):
            if op_type in mine:
                rows = mine[op_type]
                mine[op_type] = type(rows)(row for row in rows if row[0] not in settled.others)

    def _add(self, pack: Pack) -> None:
        brought = pack.contributions
        for manifest in brought.manifests:
            own, of_others, facets_of_others = [*manifest.ops], [*manifest.kernels], [*manifest.facets.items()]
            self.definers.add(own, pack, manifest)
            _add(self._manifests, [*own, *of_others], (pack, manifest))
            for op_type, targets in facets_of_others:
                self.facets[op_type].append((pack, targets))
        for op_type, definition in brought.definitions.items():
            self.definers.add([op_type], pack, definition=definition)
        for op_type, facets in brought.facets:
            self.facets[op_type].append((pack, facets))
            if any(is_maker(f) for f in facets):
                self.definers.add([op_type], pack)
        for spec in brought.kernels:
            self._kernels[spec.op_type].append((pack, spec))
        for version in brought.versions:
            self.versions[version.op_type].append((pack, version))
        for kind, key, target in brought.targets:
            self.targets[kind].append((pack, key, target))

    def has_layer(self, key: str) -> bool:
        """Whether some pack brings a name such as "layers.fc"."""
        return key in self._layer_keys

    @cached_property
    def _layer_keys(self) -> frozenset[str]:
        return frozenset([key for _, key, _ in self.targets.get("layer", ())])

    @cached_property
    def layers(self) -> NamespaceIndex:
        """The names that packs add to namespaces."""
        return NamespaceIndex(self.unique("layer")[0])

    @cached_property
    def players(self) -> dict[str, str]:
        """Role -> the op type that plays it."""
        return {role: str(op_type) for _, role, op_type in self.unique("role")[0]}

    def unique(self, kind: str) -> tuple[list[tuple[Pack, str, Any]], list[Settlement]]:
        """Registrations of one kind, one for each name, and how those were settled that several packs bring.

        Args:
            kind: "layer", "role", "place" and so on; "observer" has no names, so all are returned.
        """
        if kind not in self._unique:
            by_name: dict[str, list[tuple[Pack, str, Any]]] = defaultdict(list)
            for number, row in enumerate(self.targets.get(kind, ())):
                by_name[str(number) if kind == "observer" else _name(kind, row[1])].append(row)
            settled = [
                self.choice.settle(kind, name, [pack for pack, _, _ in rows], _home(kind, name))
                for name, rows in by_name.items()
                if len(rows) > 1
            ]
            winners = {s.name: s.winner for s in settled}
            rows = [next(r for r in rows if r[0] is winners.get(n, r[0])) for n, rows in by_name.items()]
            self._unique[kind] = rows, settled
        return self._unique[kind]

    def settlements(self) -> list[Settlement]:
        """All that several packs bring, and whose is used.

        For facets, definitions of the ops to which several packs add some are imported; what can't be is left out.
        """
        kinds = sorted({*self.targets} - {"library attribute"})
        found = [*self.settled.values(), *(s for kind in kinds for s in self.unique(kind)[1])]
        for op_type in self.changed_by_others():
            with contextlib.suppress(OprackError):
                # put together apart from `PackManager.op_info`, which warns of it at the first use
                found += build_info(op_type, self.definers[op_type][0], self, lambda *_, **__: None)[1]
        return found

    def changed_by_others(self) -> list[str]:
        """Op types that packs add facets or versions to which another pack defines, sorted."""
        found = []
        for op_type in {*self.facets, *self.versions}:
            rows = (*self.facets.get(op_type, ()), *self.versions.get(op_type, ()))
            definers = self.definers.get(op_type)
            if definers and any(row[0] is not definers[0].pack for row in rows):
                found.append(op_type)
        return sorted(found)

    def orphans(self) -> dict[str, dict[str, list[Pack]]]:
        """What packs bring for ops that no pack in use defines: "facets", "versions" or "kernels" -> op type -> packs.

        Kernels of ops that a distribution is known to define are left out: libraries bring kernels for all there are.
        """
        packs: Mapping[str, Mapping[str, Iterable[Any]]] = {
            "facets": self.facets,
            "versions": self.versions,
            "kernels": {
                t: [*self._kernels.get(t, ()), *self._manifests.get(t, ())]
                for t in {**self._kernels, **self._manifests}
                if not home("ops", t)
            },
        }
        return {
            what: {
                t: list({id(row[0]): row[0] for row in rows}.values())
                for t, rows in sorted(brought.items())
                if rows and t not in self.definers
            }
            for what, brought in packs.items()
        }

    def places(self, op_type: str) -> set[str]:
        """Sorts of places for which some pack brings kernels of this op."""
        named = {p for _, manifest in self._manifests.get(op_type, ()) for p in manifest.places(op_type)}
        return named | {spec.place for _, spec in self._kernels.get(op_type, ())}

    def kernel_owners(self, op_type: str) -> set[str]:
        """Distributions that bring kernels of this op."""
        named = {pack.owner for pack, manifest in self._manifests.get(op_type, ()) if manifest.places(op_type)}
        return named | {pack.owner for pack, _ in self._kernels.get(op_type, ())}

    def has_kernels_of(self, op_type: str, pack: Pack) -> bool:
        """Whether a pack brings kernels of an op."""
        named = any(p is pack and manifest.places(op_type) for p, manifest in self._manifests.get(op_type, ()))
        return named or any(p is pack for p, _ in self._kernels.get(op_type, ()))

    def kernel_modules(self, op_type: str, place: str) -> Iterator[tuple[Pack, str]]:
        """Modules with kernels of an op at a place, and the packs that name them."""
        for pack, manifest in self._manifests.get(op_type, ()):
            for module in dict.fromkeys(manifest.modules(op_type, place)):
                yield pack, module

    def declared(self, op_type: str, place: str, pack: Pack, module_name: str) -> list[KernelSpec]:
        """Kernels of an op at a place in a module that a manifest names; a module is looked through once.

        Raises:
            PackImportError: The module can't be imported; where it has no such kernel, a ManifestError.
        """
        from oprack.kernel import kernel_specs

        asked_by = f"kernels of op {op_type} at {place}, pack {pack.found.name} ({pack.owner} {pack.found.version})"
        found = self._declared.get(module_name)
        if found is None:
            found = defaultdict(list)
            for spec in kernel_specs(import_module(module_name, asked_by)):
                found[spec.op_type, spec.place].append(spec)
            self._declared[module_name] = found
        if (op_type, place) not in found:
            raise ManifestError(
                f"{asked_by}: module {module_name!r} has no @kernel of this op and place, though ops.toml says so; "
                "regenerate it with `oprack manifest PATH`"
            )
        return found[op_type, place]

    def kernels(self, op_type: str, place: str) -> Iterator[tuple[Pack, KernelSpec]]:
        """Kernels of an op at a place that were registered as functions."""
        return ((pack, spec) for pack, spec in self._kernels.get(op_type, ()) if spec.place == place)


def _name(kind: str, key: str) -> str:
    """What may be there only once: the key, or the name in the options that some kinds have as their key."""
    field = {"pass": "name", "command": "name", "format": "suffix"}.get(kind)
    return str(json.loads(key)[field]) if field else key


def _home(kind: str, name: str) -> str:
    if kind == "layer":
        return home(*name.split(".", 1))
    return home({"role": "roles", "format": "formats", "command": "commands", "pass": "passes"}.get(kind, kind), name)


def build_info(
    op_type: str, definer: Definer, index: OpIndex, warn_once: Callable[..., None]
) -> tuple[OpInfo, list[Settlement]]:
    """OpInfo of an op: its definition with the facets and versions that packs add; and what was settled among these.

    Facets of another pack than the op's own that can't be had are reported by `warn_once` and left out.

    Raises PackImportError, ManifestError, DefinitionError or AlreadyExistsError, each naming the distribution.
    """
    from oprack.op.info import check_slots

    made = _InfoBuilder(op_type, definer, index)
    made.add_own()
    for adder in made.others():
        try:
            made.add(adder)
        except OprackError as e:
            if adder.found is HERE:
                raise
            warn_once(advice.broken_facets(op_type, adder, e), adder.owner, "facets", op_type, str(e))
    info = made.info
    settled = made.settle()
    check_slots(info)
    if info.infer_shape is None:
        raise DefinitionError(
            f"op {op_type} of {definer.pack.owner} has no infer_shape; define infer_shape(ctx) in its class or "
            "register an InferShapeFacet"
        )
    return info, settled


class _InfoBuilder:
    """Collects what packs say of one op, facet by facet, and settles whose is used."""

    def __init__(self, op_type: str, definer: Definer, index: OpIndex) -> None:
        from oprack.op import OpInfo

        self.info = OpInfo(op_type)
        self._definer, self._pack, self._index = definer, definer.pack, index
        self._brought: dict[str, list[tuple[Pack, Any]]] = defaultdict(list)

    def add_own(self) -> None:
        """Take what the op's own pack says of it: its definition, and facets beside that."""
        from oprack.op import build_op_info

        pack, definition = self._pack, self._definer.definition
        if self._definer.entry is not None:
            definition = self._defined(self._definer.entry.define)
        if definition is not None:
            made = build_op_info(definition, pack.owner)
            for name in made.owners:
                self._brought[name].append((pack, getattr(made, name)))
        self._take(pack, self._facets_of(pack))
        if "proto" in self._brought:
            self.info.proto = self._brought["proto"][0][1]

    def _defined(self, define: str) -> Any:
        from oprack.op import OpDef, OpFacets

        pack, op_type = self._pack, self.info.type
        asked_by = f"op {op_type} of pack {pack.found.name} ({pack.owner} {pack.found.version})"
        found = import_object(define, asked_by, REGENERATE)
        is_class = isinstance(found, type) and issubclass(found, OpDef)
        if not (is_class or (isinstance(found, OpFacets) and found.defines)) or found.op_type != op_type:
            raise ManifestError(
                f"{asked_by}: {define!r} is {found!r}; expected a definition class with type={op_type!r}, or "
                f"OpFacets({op_type!r}, ...) with an OpMaker; regenerate ops.toml with `oprack manifest PATH`"
            )
        return found

    def others(self) -> list[Pack]:
        """The other packs that add facets or versions."""
        index, op_type = self._index, self.info.type
        rows = (*index.facets.get(op_type, ()), *index.versions.get(op_type, ()))
        return [p for p in {id(row[0]): row[0] for row in rows}.values() if p is not self._pack]

    def add(self, adder: Pack) -> None:
        """Take what another pack adds, if all of it fits the op's slots."""
        from oprack.op.facets import FACETS

        added = list(self._facets_of(adder))
        checks = {kind.name: kind.check for kind in FACETS}
        for name, value in added:
            if (check := checks[name]) is not None:
                check(self.info.type, self.info.proto, value)
            if name == "creator" and not self._brought[name] and self._runs_by_itself(value):
                self._brought[name].append((self._pack, None))
        self._take(adder, added)

    def _take(self, pack: Pack, facets: Iterable[tuple[str, Any]]) -> None:
        for name, value in facets:
            self._brought[name].append((pack, value))

    def _runs_by_itself(self, creator: Any) -> bool:
        """Whether the op's own pack has an operator or kernels, in whose place a creator would run the op."""
        if self._definer.entry is not None and self._definer.entry.operator:
            return True
        return getattr(creator, "runs_itself", True) and self._index.has_kernels_of(self.info.type, self._pack)

    def settle(self) -> list[Settlement]:
        """Set every facet; returns how those were settled that several packs bring.

        Raises AlreadyExistsError when one pack, or this process, sets one that is set.
        """
        settled = []
        for name, rows in self._brought.items():
            packs = list({id(p): p for p, _ in rows}.values())
            if len(packs) > 1 and not any(p.found is HERE for p in packs):
                what = f"{name} of op {self.info.type}"
                one = self._index.choice.settle("facet", what, packs, self._pack.owner, "which brings the op")
                settled.append(one)
                rows = [row for row in rows if row[0] is one.winner]
            for pack, value in rows:
                if value is not None:
                    self.info.set_facet(name, value, pack.owner)
        return settled

    def _facets_of(self, adder: Pack) -> Iterator[tuple[str, Any]]:
        """What a pack brings of the op by facets and versions."""
        from oprack.op.info import facet_values

        op_type = self.info.type
        for pack, facets in self._index.facets.get(op_type, ()):
            if pack is adder:
                yield from facet_values(self.info, _imported(facets, op_type, pack))
        yield from (("versions", version) for pack, version in self._index.versions.get(op_type, ()) if pack is adder)


def _imported(facets: Iterable[Any], op_type: str, pack: Pack) -> list[Any]:
    """Facets, with those that a manifest names by OpFacets imported."""
    from oprack.op import OpFacets

    found: list[Any] = []
    for facet in facets:
        if not isinstance(facet, str):
            found.append(facet)
            continue
        asked_by = f"facets of op {op_type}, pack {pack.found.name} ({pack.owner} {pack.found.version})"
        declared = import_object(facet, asked_by, REGENERATE)
        if not isinstance(declared, OpFacets) or declared.op_type != op_type or declared.defines:
            raise ManifestError(
                f"{asked_by}: {facet!r} is {declared!r}; expected OpFacets({op_type!r}, ...) without an OpMaker; "
                "regenerate ops.toml with `oprack manifest PATH`"
            )
        found += declared.facets
    return found


def build_kernel_map(
    op_type: str, place: str, info: OpInfo, index: OpIndex, warn_once: Callable[..., None]
) -> OpKernelMap:
    """Kernels of an op at a sort of place, of all packs.

    A module or kernel that fails is reported by `warn_once` and left out; its error is raised when no kernel is left.
    Raises also DuplicateKernelError when two kernels of the op's own pack tie.
    """
    from oprack.kernel import OpKernelMap

    def tie(text: str, others: tuple[str, ...]) -> None:
        warn_once(text, "tie", op_type, place, *others, category=PackWarning)

    kernels = OpKernelMap(info.proto, info.pack, tie, index.choice.distributions)
    failures: list[OprackError] = []

    def guarded(pack: Pack, specs: Callable[[], Iterable[KernelSpec]]) -> None:
        added = index.choice.added_priority(pack.found) if index.choice.priorities else 0
        try:
            for spec in specs():
                kernels.add(replace(spec, priority=spec.priority + added) if added else spec, pack.owner)
        except OprackError as e:
            # A tie within one pack is a defect of that pack; between packs it is a matter of what is installed, and
            # warned of.
            if isinstance(e, DuplicateKernelError) and pack.owner in (info.pack, HERE.distribution):
                raise
            failures.append(e)
            warn_once(advice.broken_kernel(op_type, place, pack, e), pack.owner, op_type, place, str(e))

    for pack, module in index.kernel_modules(op_type, place):
        guarded(pack, partial(index.declared, op_type, place, pack, module))
    for pack, spec in index.kernels(op_type, place):
        guarded(pack, partial(list, [spec]))
    if failures and not len(kernels):
        # One exception can be raised, and a user needs to see all of them.
        for other in failures[1:]:
            failures[0].add_note(str(other))
        raise failures[0]
    return kernels


def gradient_info(manager: PackManager, grad_type: str, op_type: str) -> OpInfo:
    """The OpInfo of an op that the make_grad of `op_type` names.

    Raises as `PackManager.op_info`; an unknown op's error says who names it.
    """
    if not manager.has_op(grad_type):
        try:
            manager.op_info(grad_type)
        except UnknownOpError as error:
            raise UnknownOpError(
                f"the make_grad of op {op_type} (pack {manager.owner(op_type)}) gives an op that can't be had: {error}"
            ) from error
    return manager.op_info(grad_type)
