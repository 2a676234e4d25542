"""In which precision an op multiplies: the attribute that says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oprack.op import Attr, InferVarTypeContext, OpVersion

NAME = "mkldnn_data_type"
OUTPUT = "output_data_type"
BFLOAT16 = "bfloat16"


def data_type_attr() -> Attr:
    """The attribute mkldnn_data_type of an op."""
    text = "What factors are rounded to; sums, bias and post-ops are float32."
    return Attr("float32", text).in_set(("float32", BFLOAT16))


def output_attr() -> Attr:
    """The attribute output_data_type of an op whose images may be bfloat16 as well."""
    return Attr("float32", "What the result is rounded to.").in_set(("float32", BFLOAT16))


def set_output_dtype(ctx: InferVarTypeContext) -> None:
    """The dtype of Output is that of Filter, or what the attribute says."""
    ctx.set_dtype("Output", BFLOAT16 if rounds_output(ctx.attrs) else ctx.dtype("Filter"))


def with_data_type(op_type: str) -> OpVersion:
    """The history of an op that got the attribute after its first release."""
    return OpVersion(op_type).checkpoint("factors may be rounded", ("new_attr", NAME, "float32"))


def with_output(op_type: str) -> OpVersion:
    """The history of an op that got both attributes after its first release."""
    return with_data_type(op_type).checkpoint("results may be rounded", ("new_attr", OUTPUT, "float32"))


def is_narrow(attrs: Mapping[str, Any]) -> bool:
    """Whether factors are rounded to bfloat16, where the CPU has products of such and oneDNN a primitive."""
    return attrs.get(NAME) == BFLOAT16


def rounds_output(attrs: Mapping[str, Any]) -> bool:
    """Whether the result is bfloat16."""
    return attrs.get(OUTPUT) == BFLOAT16
