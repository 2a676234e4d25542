"""Layer of beam_search."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS


def beam_search(
    pre_ids: Variable,
    pre_scores: Variable,
    ids: Variable | None,
    scores: Variable,
    beam_size: int,
    end_id: int,
    level: int = 0,
    is_accumulated: bool = True,
    name: str | None = None,
    return_parent_idx: bool = False,
) -> tuple[Variable, ...]:
    """One step of beam search: (selected_ids, selected_scores), [selected, 1] with two LoD levels, and on demand
    parent_idx [selected], the prefix that each goes on from.

    pre_ids, pre_scores: [prefixes, 1] of the step before. ids, scores: candidates [prefixes, K] (ids None: 0 to K - 1).
    is_accumulated: scores are of whole prefixes; else they are probabilities of the step, whose
    logarithm is added to pre_scores. Op beam_search.
    """
    inputs = {
        "pre_ids": check_variable(pre_ids, "pre_ids", "beam_search", {"int64"}),
        "pre_scores": check_variable(pre_scores, "pre_scores", "beam_search", FLOATS),
        "ids": ids,
        "scores": check_variable(scores, "scores", "beam_search", FLOATS),
    }
    helper = LayerHelper("beam_search", name=name)
    parent = helper.create_variable_for_type_inference(stop_gradient=True)
    attrs = {"level": level, "beam_size": beam_size, "end_id": end_id, "is_accumulated": is_accumulated}
    found = helper.apply("beam_search", inputs, attrs, outs={"parent_idx": parent}, stop_gradient=True)
    return found if return_parent_idx else found[:2]
