"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_passes(register: Register) -> None:
    """Those that know no op."""
    register.pass_("remove_dead_code", "oprack.ir.generic:remove_dead_code", stage="fold", inference_only=False)
    register.pass_("name_every_write", "oprack.ir.generic:name_every_write", stage="fold", after=["remove_dead_code"])
    register.pass_("remove_identities", "oprack.ir.generic:remove_identities", stage="fold", after=["name_every_write"])
    register.pass_("fold_constants", "oprack.ir.generic:fold_constants", stage="fold", after=["remove_identities"])


@hookimpl
def oprack_commands(register: Register) -> None:
    """What describes, converts and rewrites models."""
    register.command(
        "show", f"{__package__}.show:configure", "describe a model: inputs, outputs, ops and the packs that bring them"
    )
    register.command(
        "convert",
        f"{__package__}.convert:configure",
        "write a model of another format, such as Paddle 3's, or of several files as one .pdmodel",
    )
    register.command(
        "passes",
        f"{__package__}.passes:configure",
        "run the passes for inference over a model, and say what each did",
    )


@hookimpl
def oprack_variables(register: Register) -> None:
    register.variable(
        "OPRACK_IR_DEBUG",
        default="0",
        meaning="1: after every pass, the graph's edges, names, signatures and shapes are verified, and rewritten "
        "models are not kept on disk.",
    )
