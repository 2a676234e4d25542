"""sequence_concat: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import sequences


class SequenceConcat(OpDef, type="sequence_concat"):
    r"""$$Out^{(i)} = [X_1^{(i)}; X_2^{(i)}; \ldots]$$: sequence i of every input, one after the other."""

    X = Input("Tensors [N_k, ...] with LoD of the same number of sequences.", duplicable=True)
    Out = Output("[sum of N_k, ...]; outer LoD levels are those of the first input.")
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        for i in range(ctx.input_count("X")):
            ctx.require_lod("X", i=i)
        dims = ctx.dims("X")
        rows = [d[0] for d in dims]
        ctx.set_dim("Out", (-1 if min(rows) < 0 else sum(rows), *dims[0][1:]))
        ctx.set_lod_level("Out", max(ctx.lod_level("X"), 1))


class SequenceConcatGrad(GradOpDef, of=SequenceConcat, shape_of="X"):
    """Each input takes back its own rows."""
