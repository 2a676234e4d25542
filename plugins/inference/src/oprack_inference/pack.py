"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_commands(register: Register) -> None:
    """The commands `oprack run` and `oprack cache`."""
    register.command(
        "run",
        f"{__package__}.run:configure",
        "run a model on .npy or .npz files, and say how long it took and where",
    )
    register.command(
        "cache",
        f"{__package__}.cache:configure",
        "list the rewritten models that Config.set_optim_cache_dir keeps, or remove them",
    )
