"""Layer of beam_search_decode."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def beam_search_decode(
    ids: Variable, scores: Variable, beam_size: int, end_id: int, name: str | None = None
) -> tuple[Variable, Variable]:
    """(sentences' ids, scores), best sentence first, from the arrays of all steps' selected_ids and selected_scores.

    LoD: sentences of each source, words of each sentence. Op beam_search_decode.
    """
    inputs = {
        "Ids": check_variable(ids, "ids", "beam_search_decode"),
        "Scores": check_variable(scores, "scores", "beam_search_decode"),
    }
    attrs = {"beam_size": beam_size, "end_id": end_id}
    helper = LayerHelper("beam_search_decode", name=name)
    return helper.apply("beam_search_decode", inputs, attrs, stop_gradient=True)
