"""sum where some of its inputs hold no value; the numbers and refusals are those of Paddle 2.6.2."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack.errors import PreconditionNotMetError

A = np.arange(6, dtype=np.float32).reshape(2, 3) + 1


def total(names: list[str], feeds: dict[str, np.ndarray], prepared: bool) -> np.ndarray:
    program = oprack.Program()
    block = program.desc.blocks[0]
    for name in (*names, "out"):
        block.create_var(name, dtype="float32", shape=[-1, -1])
    block.append_op("sum", {"X": names}, {"Out": "out"}, {})
    exe = oprack.Executor(prepared=prepared)
    for _ in range(3):
        (out,) = exe.run(program, feeds, ["out"], oprack.Scope())
    return out


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize(
    ("names", "expected"), [("au", A), ("ua", A), ("aub", 2 * A), ("uabu", 2 * A), ("a", A), ("ae", A), ("ea", A)]
)
def test_inputs_without_a_value_are_left_out(names: str, expected: np.ndarray, prepared: bool) -> None:
    feeds = {"a": A, "b": A, "e": np.zeros((0, 5), np.float32)}
    found = total(list(names), {n: feeds[n] for n in names if n != "u"}, prepared)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("prepared", [False, True])
def test_one_has_to_hold_a_value(prepared: bool) -> None:
    with pytest.raises(PreconditionNotMetError, match=r"op sum: .*variable 'u'.* holds no value"):
        total(["u"], {}, prepared)
