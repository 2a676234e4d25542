"""Labels without alignment: the loss, the labels of a path, and how far labels are apart."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS


# Layer of ctc_align.
def ctc_greedy_decoder(
    input: Variable, blank: int, input_length: Variable | None = None, padding_value: int = 0, name: str | None = None
) -> Variable | tuple[Variable, Variable]:
    """Takes the best class of each row, without repetitions and blanks: ops top_k and ctc_align.

    Args:
        input: Probabilities [rows, classes + 1] with LoD, or [sequences, T, classes + 1] with input_length.
        blank: The class that stands for nothing.
        input_length: Lengths [sequences, 1], if input has no LoD.
        padding_value: What fills up the result, if input has no LoD.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of int64 [rows, 1] with LoD; with input_length ([sequences, T], lengths [sequences, 1]).

    Raises:
        InvalidArgumentError: An argument is no such Variable.
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


# Layer of edit_distance.
def edit_distance(
    input: Variable,
    label: Variable,
    normalized: bool = True,
    ignored_tokens: Sequence[int] | None = None,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Counts the insertions, deletions and replacements that lead from input to label.

    Ops sequence_erase and edit_distance.

    Args:
        input: Ids [rows, 1] with LoD, or [sequences, T] with input_length, int64.
        label: Ids [rows, 1] with LoD, or [sequences, T] with label_length, int64.
        normalized: Whether distances are divided by the length of label.
        ignored_tokens: Ids that are left out first, with LoD only; None: none.
        input_length: Lengths of input [sequences], if it has no LoD.
        label_length: Lengths of label [sequences], if it has no LoD.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        (distances [sequences, 1], number of sequences [1]).
    """
    helper = LayerHelper("edit_distance", name=name)
    hyps = check_variable(input, "input", "edit_distance", {"int64"})
    refs = check_variable(label, "label", "edit_distance", {"int64"})
    if ignored_tokens:
        tokens = {"tokens": list(ignored_tokens)}
        hyps = helper.apply("sequence_erase", {"X": hyps}, tokens, stop_gradient=True)
        refs = helper.apply("sequence_erase", {"X": refs}, tokens, stop_gradient=True)
    inputs = {"Hyps": hyps, "Refs": refs, "HypsLength": input_length, "RefsLength": label_length}
    number, distances = helper.apply("edit_distance", inputs, {"normalized": normalized}, stop_gradient=True)
    return distances, number


# Layer of warpctc.
def warpctc(
    input: Variable,
    label: Variable,
    blank: int = 0,
    norm_by_times: bool = False,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Computes the loss of connectionist temporal classification (Graves et al., 2006): op warpctc.

    Args:
        input: Unnormalized scores [rows, classes + 1] with LoD, or [T, sequences, classes + 1] with input_length.
        label: Labels [rows, 1] with LoD, or [sequences, L] with label_length, int32.
        blank: The class that stands for nothing.
        norm_by_times: Whether gradients are divided by the length.
        input_length: Lengths of input [sequences], if it has no LoD.
        label_length: Lengths of label [sequences], if it has no LoD.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [sequences, 1].

    Raises:
        InvalidArgumentError: An argument is no such Variable.
    """
    inputs = {
        "Logits": check_variable(input, "input", "warpctc", FLOATS),
        "Label": check_variable(label, "label", "warpctc", {"int32", "int64"}),
        "LogitsLength": input_length,
        "LabelLength": label_length,
    }
    attrs = {"blank": blank, "norm_by_times": norm_by_times}
    return LayerHelper("warpctc", name=name).apply("warpctc", inputs, attrs)
