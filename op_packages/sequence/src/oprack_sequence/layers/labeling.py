"""Labels of sequences: conditional random fields, CTC, edit distance, beam search."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, ParamAttr, check_variable
from oprack.types import FLOATS

_IDS = {"int32", "int64"}


def linear_chain_crf(input, label, param_attr=None, length=None, name=None):
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


def crf_decoding(input, param_attr, label=None, length=None, name=None):
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


def warpctc(input, label, blank=0, norm_by_times=False, input_length=None, label_length=None, name=None):
    """CTC loss [sequences, 1] of unscaled scores.

    input: [rows, classes + 1] with LoD, or [T, sequences, classes + 1] with input_length [sequences]; label: int32
    [rows, 1] with LoD, or [sequences, L] with label_length. blank: the class that stands for nothing. norm_by_times:
    gradients are divided by the length. Op warpctc. Raises InvalidArgumentError.
    """
    inputs = {
        "Logits": check_variable(input, "input", "warpctc", FLOATS),
        "Label": check_variable(label, "label", "warpctc", _IDS),
        "LogitsLength": input_length,
        "LabelLength": label_length,
    }
    attrs = {"blank": blank, "norm_by_times": norm_by_times}
    return LayerHelper("warpctc", name=name).apply("warpctc", inputs, attrs)


def ctc_greedy_decoder(input, blank, input_length=None, padding_value=0, name=None):
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
    inputs = {"Input": best, "InputLength": check_variable(input_length, "input_length", "ctc_greedy_decoder", _IDS)}
    return helper.apply("ctc_align", inputs, attrs, outs={"OutputLength": length}, stop_gradient=True)


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


def beam_search(
    pre_ids,
    pre_scores,
    ids,
    scores,
    beam_size,
    end_id,
    level=0,
    is_accumulated=True,
    name=None,
    return_parent_idx=False,
):
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


def beam_search_decode(ids, scores, beam_size, end_id, name=None):
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
