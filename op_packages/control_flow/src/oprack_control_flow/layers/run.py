"""The run itself: what it prints and checks, where it may go, what it drops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_type, check_variable

if TYPE_CHECKING:
    from oprack.desc import OpDesc


# Layer of assert.
def Assert(
    cond: Variable, data: Sequence[Variable] | None = None, summarize: int = 20, name: str | None = None
) -> OpDesc:
    """Appends op assert: an error when the program runs, unless a condition is true.

    Args:
        cond: The condition, a Variable of bool.
        data: Variables that the error shows; None: none.
        summarize: How many elements of each it shows.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        The op.

    Raises:
        InvalidArgumentError: cond is no Variable of bool.
    """
    check_variable(cond, "cond", "Assert", {"bool"})
    check_type(data, "data", "Assert", (list, tuple, type(None)))
    helper = LayerHelper("assert", name=name)
    return helper.append_op("assert", {"Cond": cond, "Data": list(data or [])}, {}, {"summarize": summarize})


# Layer of is_empty.
def is_empty(x: Variable, cond: Variable | None = None, name: str | None = None) -> Variable:
    """Appends op is_empty: whether x has no elements.

    Args:
        x: A Variable.
        cond: A Variable of bool that receives the result; None: a new one.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of bool of one element.
    """
    outs = None if cond is None else {"Out": check_variable(cond, "cond", "is_empty", {"bool"})}
    inputs = {"X": check_variable(x, "x", "is_empty")}
    return LayerHelper("is_empty", name=name).apply("is_empty", inputs, outs=outs, stop_gradient=True)


# Layer of print.
_PHASES = {"forward": "FORWARD", "backward": "BACKWARD", "both": "BOTH"}


def Print(
    input: Variable, first_n: int = -1, message: str | None = None, summarize: int = 20, print_phase: str = "both"
) -> Variable:
    """Print a variable whenever the program runs. Op print.

    Args:
        input: The variable.
        first_n: How often it is printed at most; -1 for always.
        message: Text before it.
        summarize: How many elements are printed; -1 for all.
        print_phase: "forward" prints the variable, "backward" its gradient, "both" both.

    Returns:
        The same values as a new variable; only what is computed from it has a gradient to print.

    Raises:
        InvalidArgumentError: There is no such phase.
    """
    check_variable(input, "input", "Print")
    phase = _PHASES.get(str(print_phase).lower())
    if phase is None:
        raise InvalidArgumentError(f"Print: print_phase is {print_phase!r}; expected one of {', '.join(_PHASES)}")
    attrs = {
        "first_n": first_n,
        "message": message or "",
        "summarize": summarize,
        "print_phase": phase,
    }
    return LayerHelper("print").apply("print", {"In": input}, attrs)
