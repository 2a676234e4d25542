"""The core's own pack: feed and fetch, registered through the hooks of every pack.

Its ops.toml is written by hand, since the ops live in a room above this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.packs.hookspecs import hookimpl

if TYPE_CHECKING:
    from oprack.packs.register import Register


@hookimpl
def oprack_ops(register: Register) -> None:
    register.manifest(__name__)
