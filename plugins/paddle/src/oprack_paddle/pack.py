"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_commands(register: Register) -> None:
    """The command `oprack exec`."""
    register.command("exec", f"{__package__}.command:configure", "run a program that imports paddle, served by oprack")


@hookimpl
def oprack_variables(register: Register) -> None:
    """What served programs hand to the processes that they start."""
    register.variable(
        "OPRACK_PADDLE", default="0", meaning="1: `import paddle` leads to oprack; a served program sets it."
    )
    register.variable(
        "OPRACK_PADDLE_RANKS",
        default="0",
        meaning="1: the process is a rank that `paddle.distributed.spawn` started, which sets it.",
    )
