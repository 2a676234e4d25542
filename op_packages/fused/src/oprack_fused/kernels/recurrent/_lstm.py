"""lstm as the last step of a fused op."""

from __future__ import annotations

from typing import NamedTuple

from oprack.kernel import Array, ArrayModule, KernelContext

from oprack_fused.kernels._steps import Lod, Steps


class LstmAttrs(NamedTuple):
    """Attributes that go to lstm as they are."""

    use_peepholes: bool
    is_reverse: bool
    gate_activation: str
    cell_activation: str
    candidate_activation: str


def lstm(
    ctx: KernelContext,
    rows: Array,
    weight: Array,
    bias: Array,
    h0: Array | None,
    c0: Array | None,
    attrs: LstmAttrs,
    lod: Lod,
    xp: ArrayModule,
) -> dict[str, Array]:
    """Hidden, Cell, XX, and the buffers that are empty.

    Args:
        ctx: The context of the fused op's kernel.
        rows: What the gates take from the rows.
        weight: Weight of lstm.
        bias: Bias of lstm.
        h0: Initial h.
        c0: Initial c.
        attrs: Attributes of lstm.
        lod: Offsets of the sequences.
        xp: NumPy or CuPy.
    """
    inputs = {"Input": rows, "H0": h0, "C0": c0, "Weight": weight, "Bias": bias}
    found = Steps(ctx).all("lstm", **inputs, lods={"Input": lod}, **attrs._asdict())
    nothing = xp.empty(0, rows.dtype)
    buffers = ("BatchedInput", "BatchedHidden", "BatchedCell", "ReorderedH0", "ReorderedC0")
    return {"Hidden": found["Hidden"], "Cell": found["Cell"], "XX": rows, **dict.fromkeys(buffers, nothing)}
