"""searchsorted: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad


class Searchsorted(OpDef, type="searchsorted"):
    r"""$$Out_j = \#\{i : SortedSequence_i < Values_j\}$$ or $\le$ with right, in each row: where a value belongs."""

    SortedSequence = Input("[..., n], ascending along the last dim, or [n] for all values.")
    Values = Input("[..., m] with the same dims in front; of any shape for a sequence [n].")
    Out = Output("Shape of Values.")
    out_int32 = Attr(False, "Give int32 instead of int64.")
    right = Attr(False, "Behind equal elements instead of before them.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        sequence, values = ctx.dim("SortedSequence"), ctx.dim("Values")
        lead = zip(sequence[:-1], values[:-1], strict=False)
        fits = len(sequence) == len(values) and all(a == b or -1 in (a, b) for a, b in lead)
        ctx.require(
            len(sequence) == 1 or (len(sequence) > 1 and fits),
            f"SortedSequence has shape {list(sequence)} and Values {list(values)}; expected equal dims but for the "
            "last one, or a sequence [n]",
        )
        ctx.set_dim("Out", values)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int32" if ctx.attr("out_int32") else "int64")
