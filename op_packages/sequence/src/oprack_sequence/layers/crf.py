"""Conditional random fields: the loss, and the best path."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, ParamAttr, ParamAttrLike, Variable, check_variable
from oprack.types import FLOATS


# Layer of crf_decoding.
def crf_decoding(
    input: Variable,
    param_attr: ParamAttrLike,
    label: Variable | None = None,
    length: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """The best path of labels, int64 [rows, 1]; with `label` instead 1 where the path agrees with it, else 0.

    input, length: as of linear_chain_crf. param_attr: name (or ParamAttr with the name) of its transitions. Op
    crf_decoding. Raises NotFoundError when there is no such parameter.
    """
    check_variable(input, "input", "crf_decoding", FLOATS)
    attr = ParamAttr.of(param_attr)
    if attr is None or attr.name is None:
        raise InvalidArgumentError(
            "crf_decoding: param_attr has no name; expected that of linear_chain_crf's parameter"
        )
    helper = LayerHelper("crf_decoding", name=name)
    inputs = {"Emission": input, "Transition": helper.parameter(attr.name), "Label": label, "Length": length}
    return helper.apply("crf_decoding", inputs, stop_gradient=True)


# Layer of linear_chain_crf.
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
