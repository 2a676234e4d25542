"""Slots and rules of recurrent nets that begin with a product."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Output

ACTIVATIONS = ("sigmoid", "tanh", "relu", "identity")
GATE_ACTIVATION = Attr("sigmoid", "Of the gates.").in_set(ACTIVATIONS)
CELL_ACTIVATION = Attr("tanh", "Of the cell, on its way to Hidden.").in_set(ACTIVATIONS)
CANDIDATE_ACTIVATION = Attr("tanh", "Of the candidate.").in_set(ACTIVATIONS)
IS_REVERSE = Attr(False, "Walk every sequence from its last row.")
USE_SEQ = Attr(True, "Paddle: one sequence after the other, or steps of all; no difference in the result.")
SCALE_DATA = Attr(1.0, "Scale of X in a quantised model.")
SHIFT_DATA = Attr(0.0, "Shift of X in a quantised model.")
XX = Output("What the gates take from the rows.", intermediate=True)


def kept(what: str) -> Output:
    """An output that Paddle's kernels work in, and that is left empty here."""
    return Output(f"Paddle's buffer of {what}; empty.", intermediate=True)


def hidden(
    ctx: InferShapeContext, source: str, weight: str, gates: int, outputs: tuple[str, ...], empty: tuple[str, ...]
) -> int:
    """Part of an infer_shape: outputs [N, D] with the LoD of the rows, and empty buffers.

    Args:
        ctx: The context of the rule.
        source: The slot of the rows.
        weight: The slot of the recurrent weight, [D, gates D].
        gates: Number of gates.
        outputs: Slots of [N, D].
        empty: Slots of buffers.

    Returns:
        D.
    """
    ctx.require_lod(source)
    size = ctx.require_rank(weight, 2)[0]
    ctx.require_dims(weight, (size, -1 if size < 0 else gates * size), why=f"{gates} gates of {size} columns")
    for slot in ("H0", "C0"):
        if slot in ctx.proto.inputs:
            ctx.require_dims(slot, (-1, size), why=f"as many columns as {weight} has rows")
    rows = ctx.dim(source)[0]
    for slot in outputs:
        ctx.set_dim(slot, (rows, size))
        ctx.share_lod(source, slot)
    ctx.set_dim("XX", (rows, -1 if size < 0 else gates * size))
    for slot in empty:
        ctx.set_dim(slot, (0,))
    return size
