"""Search for the best sentences: one step, and the way back."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS


# Layer of beam_search.
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
    """One step of beam search, by op beam_search.

    Args:
        pre_ids: [prefixes, 1], the ids selected in the previous step.
        pre_scores: [prefixes, 1], their scores.
        ids: Candidates [prefixes, K]; None means 0 to K - 1.
        scores: Their scores [prefixes, K].
        beam_size: How many prefixes to select for each source sequence.
        end_id: The id that ends a sequence.
        level: The LoD level of the source sequences.
        is_accumulated: Whether scores are those of whole prefixes; otherwise they are probabilities of this step, whose
            logarithm is added to pre_scores.
        name: Name of the layer.
        return_parent_idx: Whether to return parent_idx, too.

    Returns:
        (selected_ids, selected_scores), each [selected, 1] with two LoD levels; if requested, also parent_idx
        [selected], the prefix that each one extends.
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
    outputs = helper.apply("beam_search", inputs, attrs, outs={"parent_idx": parent}, stop_gradient=True)
    return outputs if return_parent_idx else outputs[:2]


# Layer of beam_search_decode.
def beam_search_decode(
    ids: Variable, scores: Variable, beam_size: int, end_id: int, name: str | None = None
) -> tuple[Variable, Variable]:
    """Appends op beam_search_decode: the sentences that a beam search found, the best one of each source first.

    Args:
        ids: The array of all steps' selected_ids.
        scores: The array of all steps' selected_scores.
        beam_size: How many sentences for each source.
        end_id: The id that ends a sentence.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        (ids, scores), with two LoD levels: sentences of each source, words of each sentence.
    """
    inputs = {
        "Ids": check_variable(ids, "ids", "beam_search_decode"),
        "Scores": check_variable(scores, "scores", "beam_search_decode"),
    }
    attrs = {"beam_size": beam_size, "end_id": end_id}
    helper = LayerHelper("beam_search_decode", name=name)
    return helper.apply("beam_search_decode", inputs, attrs, stop_gradient=True)
