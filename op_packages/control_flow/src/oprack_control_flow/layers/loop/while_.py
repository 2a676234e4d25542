"""Loops: While, while_loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_type, check_variable
from oprack.types import VarType

from oprack_control_flow.layers._blocks import outer_names, sub_block
from oprack_control_flow.layers._condition import check_condition
from oprack_control_flow.layers.loop._hand_over import hand_over


class While:
    """Repeats a block while `cond`, a bool Variable of one element, is true; the block has to change it.

        i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 10)
        cond = layers.less_than(i, n)
        loop = layers.While(cond)
        with loop.block():
            ...
            layers.increment(i)
            layers.less_than(i, n, cond=cond)

    What the block makes is gone after each round; write to variables from outside (layers.assign(x, output), arrays) to
    keep it. is_test: no gradient follows, so rounds share memory. Op while. Raises InvalidArgumentError.
    """

    def __init__(self, cond: Variable, is_test: bool = False, name: str | None = None) -> None:
        self.cond = check_condition(cond, "cond", "While")
        self._is_test = is_test
        self._helper = LayerHelper("while", name=name)

    @contextmanager
    def block(self) -> Iterator[While]:
        """Layers go into the loop inside the with block."""
        with sub_block(self._helper.main_program) as block:
            yield self
            reads, writes = outer_names(block)
            if self.cond.name not in writes:
                raise InvalidArgumentError(
                    f"While: the block does not write its condition {self.cond.name!r}, so the loop would never end; "
                    "write it with, for example, layers.less_than(i, n, cond=cond)"
                )
        self._helper.append_op(
            "while",
            {"X": [n for n in dict.fromkeys([*reads, *writes]) if n != self.cond.name], "Condition": self.cond},
            {"Out": writes, "StepScopes": self._helper.create_variable(type=VarType.STEP_SCOPES)},
            {"sub_block": block, "is_test": self._is_test},
        )


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Sequence[Variable],
    is_test: bool = False,
    name: str | None = None,
) -> list[Variable]:
    """Repeats loop_vars = body(*loop_vars) while cond(*loop_vars), and returns the last loop_vars as a list.

    cond returns a bool Variable of one element, body as many Variables as it gets, of the same dtypes. loop_vars: a
    list of Variables, or tensor arrays, which the body changes in place; their own values stay as they are. Op while.
    Raises InvalidArgumentError.
    """
    check_type(loop_vars, "loop_vars", "while_loop", (list, tuple))
    if not loop_vars:
        raise InvalidArgumentError("while_loop: loop_vars is empty; expected one Variable or more")
    helper = LayerHelper("while_loop", name=name)
    state = []
    for var in loop_vars:
        check_variable(var, "loop_vars", "while_loop")
        state.append(var if var.type is VarType.LOD_TENSOR_ARRAY else helper.apply("assign", {"X": var}))
    condition = check_condition(cond(*state), "cond(*loop_vars)", "while_loop")
    loop = While(condition, is_test, name)
    with loop.block():
        made = body(*state)
        made = list(made) if isinstance(made, list | tuple) else [made]
        if len(made) != len(state) or not all(isinstance(v, Variable) for v in made):
            raise InvalidArgumentError(
                f"while_loop: body returned {made!r}; expected {len(state)} Variables, as many as loop_vars"
            )
        hand_over(helper, made, state)
        helper.apply("assign", {"X": cond(*state)}, outs={"Out": condition})
    return state
