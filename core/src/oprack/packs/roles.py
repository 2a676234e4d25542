"""Who plays the roles of oprack.op.vocabulary: packs say so by the hook oprack_vocabulary."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from oprack.errors import OprackError, UnknownRoleError
from oprack.packs import report
from oprack.packs.discovery import Pack

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager


def role_problems(manager: PackManager) -> list[str]:
    """Roles whose op has another signature; imports the definitions of these ops."""
    from oprack.op.vocabulary import ROLES

    found = []
    for owner, name, op_type in manager.targets("role"):
        try:
            manager.op_for(name)
            misfits = ROLES[name].misfits(manager.op_info(op_type).proto)
        except OprackError as e:
            misfits = [f"{type(e).__name__}: {e}"]
        if misfits:
            signature = ROLES[name].signature
            found.append(f"role {name} of {owner} by op {op_type}: {'; '.join(misfits)}; expected {signature}")
    return found


class RoleIndex:
    """Role -> op type; built with the index of ops.

    Args:
        players: (pack, role, op type), one for each role.
        packs: All of them, for messages.
    """

    def __init__(self, players: Sequence[tuple[Pack, str, Any]], packs: Collection[Pack]) -> None:
        self._players, self._packs = players, packs
        self._found: dict[str, str] = {}

    def op_for(self, role: str) -> str:
        """The op type that plays a role.

        Raises:
            UnknownRoleError: No pack plays the role. The message names what needs it and the distribution that brings
                it.
            DefinitionError: The vocabulary has no such role.
        """
        found = self._found.get(role)
        return found if found is not None else self._find(role)

    def _find(self, role: str) -> str:
        from oprack.op.vocabulary import find_role

        wanted = find_role(role)
        player = next((str(op_type) for _, name, op_type in self._players if name == role), None)
        if player is None:
            raise UnknownRoleError(report.unknown_role(wanted, self._packs))
        self._found[role] = player
        return player
