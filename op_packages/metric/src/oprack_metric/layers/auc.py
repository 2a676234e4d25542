"""The layer auc."""

from __future__ import annotations

from oprack import initializer
from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS


def auc(
    input: Variable,
    label: Variable,
    curve: str = "ROC",
    num_thresholds: int = 2**12 - 1,
    slide_steps: int = 1,
    name: str | None = None,
) -> tuple[Variable, Variable, list[Variable]]:
    """(area under the curve over all batches, over the last slide_steps ones, [the four counters behind them]).

    input: probabilities [N, 2] of the classes 0 and 1; label: int64 [N, 1]. curve: "ROC" or "PR". The counters are
    persistable, so they go on from run to run. Op auc. Raises InvalidArgumentError.
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
