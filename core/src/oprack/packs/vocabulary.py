"""From the roles of oprack.op.vocabulary to op types, for the manager in use."""

from __future__ import annotations

from oprack.packs.changes import on_change
from oprack.packs.manager import default_manager

_found: dict[str, str] = {}
on_change(_found.clear)


def op_for(role: str) -> str:
    """The op type that plays a role, cached until packs change. Raises as `PackManager.op_for`."""
    found = _found.get(role)
    if found is None:
        found = _found[role] = default_manager().op_for(role)
    return found
