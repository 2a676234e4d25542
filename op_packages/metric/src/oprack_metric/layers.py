"""Layers of this pack: functions that append its ops to a program; ops.toml names them."""

from __future__ import annotations

from collections.abc import Sequence

from oprack import initializer
from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS


# The layer accuracy.
def accuracy(
    input: Variable,
    label: Variable,
    k: int = 1,
    correct: Variable | None = None,
    total: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Computes the share of rows whose label is among the k classes with the highest scores: ops top_k and accuracy.

    Args:
        input: Scores [N, classes], floats.
        label: Class numbers [N, 1], int32 or int64.
        k: How many classes count.
        correct: A Variable of int32 that receives the number of right rows; None: a new one.
        total: A Variable of int32 that receives the number of rows; None: a new one.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of float32 of one element.

    Raises:
        InvalidArgumentError: An argument is no such Variable.
    """
    check_variable(input, "input", "accuracy", FLOATS)
    check_variable(label, "label", "accuracy", {"int32", "int64"})
    helper = LayerHelper("accuracy", name=name)
    values, places = helper.apply("top_k", {"X": input}, {"k": k}, stop_gradient=True)
    given = {slot: v for slot, v in (("Correct", correct), ("Total", total)) if v is not None}
    inputs = {"Out": values, "Indices": places, "Label": label}
    found, *_ = helper.apply("accuracy", inputs, outs=given, stop_gradient=True)
    return found


# The layer auc.
def auc(
    input: Variable,
    label: Variable,
    curve: str = "ROC",
    num_thresholds: int = 2**12 - 1,
    slide_steps: int = 1,
    name: str | None = None,
) -> tuple[Variable, Variable, list[Variable]]:
    """Computes the area under a curve of binary classification: op auc, for all batches and for the last ones.

    The counters are persistable, so they go on from run to run.

    Args:
        input: Probabilities of the classes 0 and 1 [N, 2], floats.
        label: Class numbers [N, 1], int32 or int64.
        curve: "ROC" or "PR".
        num_thresholds: Number of bins - 1.
        slide_steps: How many batches the second area is of.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        (area over all batches, area over the last slide_steps batches, [the four counters]).

    Raises:
        InvalidArgumentError: curve is neither, or an argument is no such Variable.
    """
    check_variable(input, "input", "auc", FLOATS)
    check_variable(label, "label", "auc", {"int32", "int64"})
    if curve not in ("ROC", "PR"):
        raise InvalidArgumentError(f"auc: curve is {curve!r}; expected 'ROC' or 'PR'")
    helper = LayerHelper("auc", name=name)
    results, counters = [], []
    for steps in (0, slide_steps):
        shape = [1, num_thresholds + 1] if steps == 0 else [(1 + steps) * (num_thresholds + 1) + 1]
        stats = [
            helper.create_global_variable(shape, "int64", persistable=True, initializer=initializer.Constant(0))
            for _ in range(2)
        ]
        value, *_ = helper.apply(
            "auc",
            {"Predict": input, "Label": label, "StatPos": stats[0], "StatNeg": stats[1]},
            {"curve": curve, "num_thresholds": num_thresholds, "slide_steps": steps},
            outs={"StatPosOut": stats[0], "StatNegOut": stats[1]},
            stop_gradient=True,
        )
        results.append(value)
        counters += stats
    return results[0], results[1], counters


# The layer chunk_eval.
def chunk_eval(
    input: Variable,
    label: Variable,
    chunk_scheme: str,
    num_chunk_types: int,
    excluded_chunk_types: Sequence[int] | None = None,
    seq_length: Variable | None = None,
    name: str | None = None,
) -> tuple[Variable, Variable, Variable, Variable, Variable, Variable]:
    """Counts chunks of tagged sequences that were found rightly: op chunk_eval.

    Args:
        input: Predicted tags [rows, 1] with LoD, or [N, T] with seq_length, int64.
        label: The right tags, as input.
        chunk_scheme: "IOB", "IOE", "IOBES" or "plain".
        num_chunk_types: Number of kinds of chunks.
        excluded_chunk_types: Kinds that do not count; None: all count.
        seq_length: Lengths [N], if input has no LoD.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        (precision, recall, F1, chunks found, chunks of the labels, chunks found rightly).

    Raises:
        InvalidArgumentError: An argument is no such Variable.
    """
    inputs = {
        "Inference": check_variable(input, "input", "chunk_eval", {"int64"}),
        "Label": check_variable(label, "label", "chunk_eval", {"int64"}),
        "SeqLength": seq_length,
    }
    attrs = {
        "chunk_scheme": chunk_scheme,
        "num_chunk_types": num_chunk_types,
        "excluded_chunk_types": list(excluded_chunk_types or []),
    }
    return LayerHelper("chunk_eval", name=name).apply("chunk_eval", inputs, attrs, stop_gradient=True)


# The layer mean_iou.
def mean_iou(
    input: Variable, label: Variable, num_classes: int, name: str | None = None
) -> tuple[Variable, Variable, Variable]:
    """Computes the mean intersection over union of classes: op mean_iou.

    Args:
        input: Predicted classes, int32 or int64.
        label: The right classes, of the shape of input.
        num_classes: Number of classes.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        (mean intersection over union, wrong predictions by class, right ones by class).
    """
    inputs = {
        "Predictions": check_variable(input, "input", "mean_iou", {"int32", "int64"}),
        "Labels": check_variable(label, "label", "mean_iou", {"int32", "int64"}),
    }
    helper = LayerHelper("mean_iou", name=name)
    return helper.apply("mean_iou", inputs, {"num_classes": num_classes}, stop_gradient=True)
