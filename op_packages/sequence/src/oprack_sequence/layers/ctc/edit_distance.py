"""Layer of edit_distance."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_variable


def edit_distance(input, label, normalized=True, ignored_tokens=None, input_length=None, label_length=None, name=None):
    """(distances [sequences, 1], number of sequences [1]): insertions, deletions and replacements from input to label.

    input, label: int64 ids [rows, 1] with LoD, or [sequences, T] with lengths. normalized: divided by the length of
    label. ignored_tokens: ids that are left out first (with LoD only). Ops sequence_erase, edit_distance.
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
