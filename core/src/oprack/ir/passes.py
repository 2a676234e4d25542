"""The registry of passes: which there are, and in which order they run."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from oprack.errors import NotFoundError
from oprack.packs.discovery import PackWarning, warn
from oprack.packs.manager import PackManager, default_manager
from oprack.packs.register import STAGES
from oprack.packs.resolve import import_object
from oprack.records import dataclass
from oprack.tensor import CPUPlace, Place

_NONE: Mapping[str, Collection[str] | None] = MappingProxyType({})


@dataclass(frozen=True)
class Pass:
    """A registered pass; its fields are the arguments of `register.pass_`, which says more of them.

    Attributes:
        name: By which users switch it off.
        target: "module:name" of the function.
        owner: The distribution that brings it.
        stage: "fold", "canonicalize", "fuse" or "lower".
        place: The kind of place that it is for; None: all.
        library: The kernel library that it is for; None: all.
        after: Passes of the same stage that run before it.
        before: Passes of the same stage that run after it.
        reorders_sums: Whether it changes the order of float sums, or rounding.
        inference_only: Whether it treats parameters as constants.
        precision: The dtype that ops compute in after it; "" for their own.
        ops: With a precision, the op types that it is about.
    """

    name: str
    target: str
    owner: str
    stage: str
    place: str | None = None
    library: str | None = None
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    reorders_sums: bool = False
    inference_only: bool = True
    precision: str = ""
    ops: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[int, bool]:
        """The stage by number, and whether it serves only one place or library; it runs after lower ones."""
        return STAGES.index(self.stage), bool(self.place or self.library)

    def load(self) -> Any:
        """The function, imported now. Raises PackImportError."""
        return import_object(self.target, f"pass {self.name} of {self.owner}")


# What a manager's packs bring, and the revision for which it holds: a model that is loaded asks several times
_KNOWN: WeakKeyDictionary[PackManager, tuple[int, tuple[Pass, ...]]] = WeakKeyDictionary()


def registered_passes(manager: PackManager | None = None) -> list[Pass]:
    """Every pass of the packs in use, in the order in which they run.

    Args:
        manager: The packs; default: those of the process.

    Passes that wait for each other in a circle, as those of two packs may, stop nobody: the first of them by name runs
    first, with a PackWarning.

    Returns:
        The passes.
    """
    manager = manager or default_manager()
    targets = manager.targets("pass")
    revision, known = _KNOWN.get(manager, (-1, ()))
    if revision != manager.revision:
        revision, known = manager.revision, tuple(_passes(targets))
        _KNOWN[manager] = revision, known
    return list(known)


def _passes(targets: Iterable[tuple[str, str, Any]]) -> list[Pass]:
    found = []
    for owner, key, target in targets:
        options = json.loads(key)
        options |= {name: tuple(options.get(name, ())) for name in ("after", "before", "ops")}
        found.append(Pass(target=target, owner=owner, **options))
    return _ordered(found)


def _ordered(passes: Sequence[Pass]) -> list[Pass]:
    """The passes so that each comes after those that it names, and by rank where nobody names anything."""
    earlier = _predecessors(passes)
    ordered: list[Pass] = []
    # Stages and names fix the rest, so that the order does not depend on the order of installation.
    waiting = sorted(passes, key=lambda p: p.rank)
    while waiting:
        done = {p.name for p in ordered}
        ready = next((p for p in waiting if earlier[p.name] <= done), None) or _first_of_circle(waiting, earlier)
        waiting.remove(ready)
        ordered.append(ready)
    return ordered


def _first_of_circle(waiting: Sequence[Pass], earlier: Mapping[str, set[str]]) -> Pass:
    """The pass that runs though others should run before it; with a warning."""
    circle = list(waiting)
    # What is in no circle waits for one: no pass waits for it.
    while inner := [p for p in circle if any(p.name in earlier[other.name] for other in circle)]:
        if len(inner) == len(circle):
            break
        circle = inner
    circle.sort(key=lambda p: (p.rank, p.name))
    owners = sorted({p.owner for p in circle})
    warn(
        f"passes wait for each other in a circle: {', '.join(f'{p.name} of {p.owner}' for p in circle)}; "
        f"{circle[0].name} runs first. Change `after` or `before` of one of them, or leave a pack out: "
        + " or ".join(f"OPRACK_BLOCK={owner}" for owner in owners),
        PackWarning,
    )
    return circle[0]


def _predecessors(passes: Sequence[Pass]) -> dict[str, set[str]]:
    """For each pass the names of those that run before it: by `after`, by `before`, and by stage."""
    names = {p.name for p in passes}
    earlier = {p.name: names.intersection(p.after) for p in passes}
    for p in passes:
        for n in names.intersection(p.before):
            earlier[n].add(p.name)
    for p in passes:
        earlier[p.name].update(other.name for other in passes if other.rank < p.rank)
    return earlier


def select_passes(
    place: Place | None = None,
    *,
    manager: PackManager | None = None,
    excluded_libraries: Collection[str] = (),
    strict: bool = False,
    inference: bool = True,
    precisions: Mapping[str, Collection[str] | None] = _NONE,
) -> list[Pass]:
    """The passes that serve a place and the kernel libraries that may run there, in order.

    Args:
        place: The place; default: the CPU.
        manager: The packs; default: those of the process.
        excluded_libraries: Kernel libraries whose passes are left out.
        strict: Whether to leave out those that change the order of sums.
        inference: Whether to include those that take parameters for constants.
        precisions: Dtypes that ops may compute in other than their own, each with the op types that may; None: all.

    Returns:
        The passes.
    """
    manager = manager or default_manager()
    kind = (place or CPUPlace()).kind
    passes = [p for p in registered_passes(manager) if p.place in (None, kind) and p.library not in excluded_libraries]
    if any(p.library for p in passes):  # asking for the libraries loads them
        broken = {name for name, library in manager.extensions.libraries().items() if isinstance(library, Exception)}
        passes = [p for p in passes if p.library not in broken]
    return [p for p in passes if _serves(p, strict, inference) and _asked_for(p, precisions)]


def _asked_for(one: Pass, precisions: Mapping[str, Collection[str] | None]) -> bool:
    """Whether a pass leaves ops their precision, or users want the one that it brings, for some of its ops."""
    if not one.precision:
        return True
    ops = precisions.get(one.precision, ())
    return ops is None or not {*one.ops}.isdisjoint(ops)


def _serves(one: Pass, strict: bool, inference: bool) -> bool:
    return not (strict and one.reorders_sums) and (inference or not one.inference_only)


def find_pass(name: str, manager: PackManager | None = None) -> Pass:
    """A pass by its name.

    Args:
        name: The name.
        manager: The packs; default: those of the process.

    Returns:
        The pass.

    Raises:
        NotFoundError: The message lists the passes.
    """
    passes = registered_passes(manager)
    for p in passes:
        if p.name == name:
            return p
    raise NotFoundError(f"no installed pack brings pass {name!r}; there are {', '.join(p.name for p in passes)}")
