"""Layer of print."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable

_PHASES = {"forward": "FORWARD", "backward": "BACKWARD", "both": "BOTH"}


def Print(
    input: Variable, first_n: int = -1, message: str | None = None, summarize: int = 20, print_phase: str = "both"
) -> Variable:
    """input, which is printed when the program runs (its gradient, too, in phase "backward" or "both"). Op print.

    first_n: at most so often; -1 always. summarize: so many elements. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "Print")
    if str(print_phase).lower() not in _PHASES:
        raise InvalidArgumentError(f"Print: print_phase is {print_phase!r}; expected one of {', '.join(_PHASES)}")
    attrs = {
        "first_n": first_n,
        "message": message or "",
        "summarize": summarize,
        "print_phase": _PHASES[print_phase.lower()],
    }
    return LayerHelper("print").apply("print", {"In": input}, attrs)
