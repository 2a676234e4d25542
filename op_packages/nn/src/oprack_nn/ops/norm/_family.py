"""What the normalisations share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oprack.op import InferVarTypeContext
from oprack.types import HALF_FLOATS


def norm_types(like: Mapping[str, str], *statistics: str, first: str = "X") -> Callable[[Any], None]:
    """The type rule of a normalisation: outputs are of the dtype of `first`, with exceptions for 16-bit floats.

    like: output -> the input whose dtype it has where that is given, as gradients of parameters, which stay float32.
    statistics: outputs that are float32 where `first` is narrower, since means of 16-bit floats would be too rough.
    """

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtype = ctx.dtype(first)
        wide = "float32" if dtype in HALF_FLOATS else dtype
        for slot in ctx.proto.outputs:
            if ctx.has_output(slot):
                source = like.get(slot, "")
                own = ctx.dtype(source) if source and ctx.has_input(source) else dtype
                ctx.set_kind(slot, ctx.kind(first))
                ctx.set_dtype(slot, wide if slot in statistics else own)

    return infer_var_type
