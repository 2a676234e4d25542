"""Layer of split."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable, int_list


def split(
    input: Variable, num_or_sections: Sequence[int] | int, dim: int = -1, name: str | None = None
) -> list[Variable]:
    """A list of parts along `dim`: an int says how many equal ones, a list how long each is (-1, once: what is left).

    Op split. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "split")
    helper = LayerHelper("split", name=name)
    if dim < 0:
        dim += len(input.shape)  # Paddle's op takes no negative axis from a program
    if isinstance(num_or_sections, int):
        return helper.apply("split", {"X": input}, {"num": num_or_sections, "axis": dim}, num=num_or_sections)
    sections = int_list(helper, num_or_sections, "num_or_sections")
    inputs = {"X": input, "SectionsTensorList": sections.tensors or None}
    return helper.apply("split", inputs, {"sections": sections.values, "axis": dim}, num=len(sections.values))
