"""Layer of print."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable

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
