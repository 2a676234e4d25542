"""What is wrong with packs, when everything that they name is imported, and what a saved program asks of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from oprack.errors import DuplicateOpError, MissingPackError, OprackError, did_you_mean
from oprack.packs import advice
from oprack.packs.choice import SAVED_WITH, Settlement
from oprack.packs.pack import BrokenPackWarning, PackWarning
from oprack.python.interruption import let_interruptions_pass
from oprack.python.rooms import AbsentRoomError

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager


def import_problems(manager: PackManager, owner: str = "", notes: list[str] | None = None) -> list[str]:
    """Import every definition, operator, kernel, layer and library, and say what is wrong with them.

    Args:
        manager: The packs.
        owner: A distribution, to look only at the ops and names that it brings; "" for all.
        notes: Gets what is no problem: names and roles that serve a room of the package which is not installed.

    Returns:
        The problems.
    """
    found: list[str] = []
    absent: dict[str, list[str]] = {}
    for key in sorted(
        {k for p in manager.packs() if p.status == "ok" and owner in ("", p.distribution) for k in p.layers}
    ):
        try:
            manager.layer(*key.split(".", 1))
        except OprackError as e:
            if isinstance(e.__cause__, AbsentRoomError):
                absent.setdefault(str(e.__cause__), []).append(key)
            else:
                found.append(f"{key}: {type(e).__name__}: {e}")
    if notes is not None:
        needing = "names of packs need what is not installed, such as"
        notes += [f"{len(keys)} {needing} {keys[0]}: {why}" for why, keys in absent.items()]
    for op_type in manager.op_types():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", BrokenPackWarning)
            try:
                if owner and owner not in {manager.owner(op_type), *manager.index.kernel_owners(op_type)}:
                    continue
                manager.operator_class(op_type)
                manager.kernels_listing(op_type)
                _check_gradient(manager, op_type)
                found += _history_problems(manager, op_type)
            except OprackError as e:
                if isinstance(e, DuplicateOpError) and op_type in manager.index.settled:
                    continue  # said once, of all that several packs bring
                found.append(f"op {op_type}: {type(e).__name__}: {e}")
        found += [str(w.message) for w in caught if issubclass(w.category, BrokenPackWarning)]
    return list(dict.fromkeys([*found, *(() if owner else role_problems(manager, notes))]))


def _check_gradient(manager: PackManager, op_type: str) -> None:
    """Whether the ops that a make_grad names are there, asked with all slots and the default attributes."""
    from oprack.desc import OpDesc
    from oprack.op.desc_rules import make_grad_ops
    from oprack.packs.index import gradient_info

    info = manager.op_info(op_type)
    if info.grad_op_maker is None:
        return
    inputs, outputs = ({slot: [slot] for slot in slots} for slots in (info.proto.inputs, info.proto.outputs))
    try:
        made = make_grad_ops(info, OpDesc(op_type, inputs, outputs))
    except Exception:
        let_interruptions_pass()
        return  # it needs attributes, or other slots than all; its tests have them
    for grad in made:
        gradient_info(manager, grad.type, op_type)


def _history_problems(manager: PackManager, op_type: str) -> list[str]:
    """What an op's OpVersion names, and its signature does not have."""
    info = manager.op_info(op_type)
    if info.versions is None:
        return []
    proto, owner = info.proto, info.owners["versions"]
    unknown = info.versions.unknown_names(proto.attrs, proto.inputs, proto.outputs)
    return [f"op {op_type}: its OpVersion, of {owner}, has {text}, which the op does not have" for text in unknown]


def role_problems(manager: PackManager, notes: list[str] | None = None) -> list[str]:
    """Roles whose op has another signature; imports the definitions of these ops.

    Args:
        manager: The packs.
        notes: Gets what is no problem: ops that play a role which nothing that is installed asks for.

    Returns:
        The problems.
    """
    found: list[str] = []
    roles = manager.extensions.roles()
    for owner, name, op_type in manager.targets("role"):
        subject = f"role {name} of {owner} by op {op_type}"
        if name not in roles:
            if notes is not None:
                notes.append(f"{subject}: nothing that is installed asks for it{did_you_mean(name, roles)}")
            continue
        try:
            manager.op_for(name)
            misfits = roles[name].misfits(manager.op_info(op_type).proto)
        except OprackError as e:
            misfits = [f"{type(e).__name__}: {e}"]
        if misfits:
            found.append(f"{subject}: {'; '.join(misfits)}; expected {roles[name].signature}")
    return found


def orphans(manager: PackManager, owner: str = "") -> list[str]:
    """What packs bring for ops that no pack in use defines, in words.

    Args:
        owner: A distribution, for what it brings alone; "" for all.

    Returns:
        A sentence for each.
    """
    index = manager.index
    return [
        advice.orphan(what, op_type, packs, index.definers)
        for what, ops in index.orphans().items()
        for op_type, packs in ops.items()
        if owner in ("", *(p.owner for p in packs))
    ]


# Saved programs -------------------------------------------------------------------------------------------------------
Sources = Mapping[str, tuple[str, str]]
"""Op type -> (distribution, version of it), as `ProgramDesc.op_sources`."""


def require_ops(manager: PackManager, op_types: Iterable[str], versions: Mapping[str, int], sources: Sources) -> None:
    """Check that every op of a program can be had, and warn (PackWarning), once an op, of those that are too old.

    Args:
        manager: The packs.
        op_types: The ops.
        versions: Those with which the program was saved, by op.
        sources: The distributions that brought its ops then.

    Raises:
        MissingPackError: Ops are missing. The message lists all of them, the broken or blocked packs that bring them,
            and the distributions that do by what the program or the table of homes says.
        DuplicateOpError: As `PackManager.op_info`.
    """
    wanted = sorted(set(op_types))
    missing = [t for t in wanted if not manager.has_op(t)]
    if missing:
        raise MissingPackError(advice.missing(missing, manager.discovered(), manager.op_types(), sources))
    for op_type in wanted:
        pack, saved = manager.pack_of(op_type), versions.get(op_type, 0)
        if saved > 0 and saved > (installed := manager.op_version(op_type)):
            manager.warn_once(
                advice.newer_op(op_type, saved, installed, pack), "newer op", op_type, str(saved), category=PackWarning
            )


def adopted(settled: Mapping[str, Settlement], sources: Sources) -> dict[str, str]:
    """Which ops that several packs bring are to be those with which a program was saved.

    Args:
        settled: Ops that several packs bring, and what decides between them.
        sources: The distributions that brought the program's ops when it was saved.

    Returns:
        Op type -> distribution, of ops between which nothing has decided.

    Raises:
        DuplicateOpError: A program that ran before was saved with another pack's op of that type.
    """
    found = {}
    for op_type in sources.keys() & settled.keys():
        one, distribution = settled[op_type], sources[op_type][0]
        if distribution not in one.owners:
            continue
        if one.decided == SAVED_WITH and one.winner.owner != distribution:
            raise DuplicateOpError(advice.saved_with_another(one, distribution))
        if not one.decided:
            found[op_type] = distribution
    return found
