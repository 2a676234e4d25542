"""Layer of linear_chain_crf."""

from __future__ import annotations

from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable
from oprack.types import FLOATS


def linear_chain_crf(
    input: Variable,
    label: Variable,
    param_attr: ParamAttrLike = None,
    length: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Cost [sequences, 1] (negative log-likelihood) of the labels, to be minimised.

    input: emission scores [rows, labels] with LoD, or [sequences, T, labels] with `length` [sequences, 1]; label: int64
    of the same rows, [..., 1]. param_attr: of the transitions [labels + 2, labels] (row 0 starts, row 1 ends); name it
    to share it with crf_decoding. Op linear_chain_crf. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "linear_chain_crf", FLOATS)
    check_variable(label, "label", "linear_chain_crf", {"int64"})
    helper = LayerHelper("linear_chain_crf", name=name)
    labels = input.shape[-1]
    transition = helper.create_parameter(param_attr, [labels + 2, labels], input.dtype)
    inputs = {"Emission": input, "Transition": transition, "Label": label, "Length": length}
    return helper.apply("linear_chain_crf", inputs)
