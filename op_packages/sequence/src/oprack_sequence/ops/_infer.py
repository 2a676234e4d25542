"""Shape rules that several ops of this pack share."""

from __future__ import annotations

from oprack.op import InferShapeContext

ACTIVATIONS = ("sigmoid", "tanh", "relu", "identity")
"""Names of the activations of recurrent cells."""


def same_as(ctx: InferShapeContext, source: str, target: str) -> None:
    """Output `target` has the shape and LoD of input `source`; nothing happens when either is absent."""
    if ctx.has_input(source) and ctx.has_output(target):
        ctx.set_dim(target, ctx.dim(source))
        ctx.share_lod(source, target)


def same_dim(ctx: InferShapeContext, source: str, target: str) -> None:
    """Output `target` has the shape of input `source` and no LoD; nothing happens when either is absent."""
    if ctx.has_input(source) and ctx.has_output(target):
        ctx.set_dim(target, ctx.dim(source))
