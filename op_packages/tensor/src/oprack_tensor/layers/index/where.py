"""Layer of where and where_index."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def where(
    condition: Variable, x: Variable | None = None, y: Variable | None = None, name: str | None = None
) -> Variable:
    """x where condition, else y, all of one shape; without x and y: int64 [n, rank], the places where it is true.

    Ops where, where_index. Raises InvalidArgumentError.
    """
    check_variable(condition, "condition", "where", {"bool"})
    helper = LayerHelper("where", name=name)
    if x is None and y is None:
        return helper.apply("where_index", {"Condition": condition}, stop_gradient=True)
    inputs = {"Condition": condition, "X": check_variable(x, "x", "where"), "Y": check_variable(y, "y", "where")}
    return helper.apply("where", inputs)
