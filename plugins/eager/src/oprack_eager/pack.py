"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_commands(register: Register) -> None:
    """The command `oprack stubs`."""
    register.command(
        "stubs",
        f"{__package__}.stubs:configure",
        "write type stubs of oprack.functional, from which editors complete ops and arguments",
    )


@hookimpl
def oprack_vocabulary(register: Register) -> None:
    """The ops by which a captured function reads dims that are open."""
    wanted_by = "x.shape[i] of an open dim in a captured function"
    register.new_role("shape_of", "Input -> Out", "The dims of Input, as integers", wanted_by)
    register.new_role(
        "part",
        "Input; axes starts ends decrease_axis infer_flags -> Out",
        "From starts to ends along axes; dims of decrease_axis are removed",
        wanted_by,
    )
