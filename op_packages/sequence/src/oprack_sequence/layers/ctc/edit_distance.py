"""Layer of edit_distance."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable


def edit_distance(
    input: Variable,
    label: Variable,
    normalized: bool = True,
    ignored_tokens: Sequence[int] | None = None,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
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
