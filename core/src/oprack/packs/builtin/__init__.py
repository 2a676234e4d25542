"""The core's own pack: feed and fetch, and the passes that know no op, registered through the hooks of every pack.

Its ops.toml is written by hand, since the operators live in a room above this one; so do the passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.packs.hookspecs import hookimpl

if TYPE_CHECKING:
    from oprack.packs.register import Register


@hookimpl
def oprack_ops(register: Register) -> None:
    register.manifest(__name__)


@hookimpl
def oprack_passes(register: Register) -> None:
    register.pass_("remove_dead_code", "oprack.ir.generic:remove_dead_code", stage="fold", inference_only=False)
    register.pass_("name_every_write", "oprack.ir.generic:name_every_write", stage="fold", after=["remove_dead_code"])
    register.pass_("remove_identities", "oprack.ir.generic:remove_identities", stage="fold", after=["name_every_write"])
    register.pass_("fold_constants", "oprack.ir.generic:fold_constants", stage="fold", after=["remove_identities"])
