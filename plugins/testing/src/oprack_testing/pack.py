"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_commands(register: Register) -> None:
    """The commands `oprack new-pack`, `oprack manifest` and `oprack check`."""
    register.command(
        "new-pack",
        f"{__package__}.new_pack:configure",
        "make a new op pack from the template: one op complete, with tests and publishing",
    )
    register.command(
        "manifest", f"{__package__}.manifest:configure", "write a pack's ops.toml, or check that it is up to date"
    )
    register.command(
        "check",
        f"{__package__}.check:configure",
        "review a pack's source tree: promises of its last release, strings, docs, rules, kernels, wheel",
    )
