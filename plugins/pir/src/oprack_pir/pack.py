"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_formats(register: Register) -> None:
    """Program files of Paddle 3."""
    register.format(".json", f"{__package__}.reader:read_program", starts="{")
