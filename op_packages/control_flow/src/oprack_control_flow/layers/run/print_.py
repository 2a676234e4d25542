"""Layer of print."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, check_variable

_PHASES = {"forward": "FORWARD", "backward": "BACKWARD", "both": "BOTH"}


def Print(input, first_n=-1, message=None, summarize=20, print_phase="both"):
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
