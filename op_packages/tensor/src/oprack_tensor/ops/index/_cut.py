"""What slice and strided_slice share."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op.sbp import Rule, SbpContext, Signature, factors, letters


def cut(tensors: Sequence[str]) -> Rule:
    """The rule of splitting: dims that are not cut; nothing when one of these inputs says where to cut."""

    def rule(ctx: SbpContext) -> list[Signature]:
        if any(ctx.has(slot) for slot in tensors):
            return []
        names = letters(len(ctx.dim("Input")))
        for axis in ctx.attr("axes"):
            names[axis] = None
        gone = {a % len(names) for a in ctx.attr("decrease_axis", [])}
        made = [n for k, n in enumerate(names) if k not in gone]
        if len(made) != len(ctx.dim("Out")):  # Fluid's result of one element is [1]
            return []
        return factors({"Input": names}, {"Out": made}, linear=(("Input",),))

    return rule
