"""In which precision an op multiplies: the attribute that says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oprack.op import Attr, OpVersion

NAME = "mkldnn_data_type"
BFLOAT16 = "bfloat16"


def data_type_attr() -> Attr:
    """The attribute mkldnn_data_type of an op."""
    text = "What factors are rounded to; sums, bias, post-ops and the result are float32."
    return Attr("float32", text).in_set(("float32", BFLOAT16))


def with_data_type(op_type: str) -> OpVersion:
    """The history of an op that got the attribute after its first release."""
    return OpVersion(op_type).checkpoint("factors may be rounded", ("new_attr", NAME, "float32"))


def is_narrow(attrs: Mapping[str, Any]) -> bool:
    """Whether factors are rounded to bfloat16, where the CPU has products of such and oneDNN a primitive."""
    return attrs.get(NAME) == BFLOAT16
