"""Layer of ctc_align."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS


def ctc_greedy_decoder(
    input: Variable, blank: int, input_length: Variable | None = None, padding_value: int = 0, name: str | None = None
) -> Variable | tuple[Variable, Variable]:
    """The best class of each row, without repetitions and blanks: int64 [rows, 1] with LoD.

    input: probabilities [rows, classes + 1] with LoD. With input_length [sequences, 1], input is [sequences, T,
    classes + 1] and the result ([sequences, T] filled up with padding_value, lengths [sequences, 1]). Ops top_k,
    ctc_align. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "ctc_greedy_decoder", FLOATS)
    helper = LayerHelper("ctc_greedy_decoder", name=name)
    _, best = helper.apply("top_k", {"X": input}, {"k": 1}, stop_gradient=True)
    attrs = {"blank": blank, "merge_repeated": True, "padding_value": padding_value}
    if input_length is None:
        return helper.apply("ctc_align", {"Input": best}, attrs, stop_gradient=True)
    best = helper.apply("squeeze2", {"X": best}, {"axes": [2]}, stop_gradient=True)
    length = helper.create_variable_for_type_inference(stop_gradient=True)
    inputs = {
        "Input": best,
        "InputLength": check_variable(input_length, "input_length", "ctc_greedy_decoder", {"int32", "int64"}),
    }
    return helper.apply("ctc_align", inputs, attrs, outs={"OutputLength": length}, stop_gradient=True)
