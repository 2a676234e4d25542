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
    """Appends op crf_decoding: the best path of labels through a linear chain (Viterbi).

    Args:
        input: Emission scores, as of linear_chain_crf.
        param_attr: The name of the transitions of linear_chain_crf, or a ParamAttr with it.
        label: Labels to compare with, as of linear_chain_crf; None: none.
        length: Lengths, as of linear_chain_crf.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of int64 [rows, 1], the labels; with label 1 where the path agrees with it, else 0.

    Raises:
        InvalidArgumentError: param_attr has no name.
        NotFoundError: There is no such parameter.
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
    """Appends op linear_chain_crf: the negative log-likelihood of labels, to be minimized.

    Args:
        input: Emission scores [rows, labels] with LoD, or [sequences, T, labels] with length, floats.
        label: Labels of the same rows [..., 1], int64.
        param_attr: Attributes of the transitions [labels + 2, labels] (row 0 starts, row 1 ends); a name shares them
            with crf_decoding.
        length: Lengths [sequences, 1], if input has no LoD.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [sequences, 1].

    Raises:
        InvalidArgumentError: An argument is no such Variable.
    """
    check_variable(input, "input", "linear_chain_crf", FLOATS)
    check_variable(label, "label", "linear_chain_crf", {"int64"})
    helper = LayerHelper("linear_chain_crf", name=name)
    labels = input.shape[-1]
    transition = helper.create_parameter(param_attr, [labels + 2, labels], input.dtype)
    inputs = {"Emission": input, "Transition": transition, "Label": label, "Length": length}
    return helper.apply("linear_chain_crf", inputs)
