"""Layer of crf_decoding."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, ParamAttr, ParamAttrLike, Variable, check_variable
from oprack.types import FLOATS


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
