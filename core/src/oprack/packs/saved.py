"""What saved programs ask of packs: their ops, in versions new enough, of the packs with which they were saved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from oprack.errors import DuplicateOpError, MissingPackError
from oprack.packs import advice
from oprack.packs.choice import SAVED_WITH, Settlement
from oprack.packs.pack import PackWarning

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager

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
