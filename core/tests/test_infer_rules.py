"""Shape rules that name a slot which their op does not have: told when a program is built and when it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oprack.errors import DefinitionError
from oprack.kernel import kernel
from oprack.op import Input, OpDef, Output, build_op_info
from oprack.op.desc_rules import infer_op
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import Scope

X = np.ones((2, 3), np.float32)
RULES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda ctx: ctx.share_lod("Z", "Out"), "input 'Z', .* expected one of X"),
    (lambda ctx: ctx.share_lod("X", "Y"), "output 'Y', .* expected one of Out"),
    (lambda ctx: ctx.set_dim("Ou", (1,)), "output 'Ou'"),
    (lambda ctx: ctx.has_input("Out"), "input 'Out'"),
    (lambda ctx: ctx.output_count("X"), "output 'X'"),
]


@pytest.mark.parametrize(("rule", "text"), RULES)
def test_a_slot_that_no_op_has(rack: Any, rule: Callable[[Any], Any], text: str) -> None:
    class Same(OpDef, type="same"):
        """Out = X."""

        X = Input("Any tensor.")
        Out = Output("As X.")

        def infer_shape(ctx: Any) -> None:
            ctx.set_dim("Out", ctx.dim("X"))
            rule(ctx)

    rack.register_op(Same)
    message = f"op same: its rule names {text}"
    program = Program()
    block = program.global_block()
    for name in ("x", "y"):
        block.create_var(name, dtype="float32", shape=[-1, 3])
    op = block.append_op("same", {"X": "x"}, {"Out": "y"})
    with pytest.raises(DefinitionError, match=message):
        infer_op(op, block, rack.op_info("same"))

    @kernel("same")
    def same(X: Any) -> Any:
        return X.copy()

    rack.register_kernel(same)
    with pytest.raises(DefinitionError, match=message):
        Executor().run(program, {"x": X}, ["y"], Scope())


def test_a_slot_that_the_program_leaves_out_is_absent(build: Callable[..., Program]) -> None:
    program = build({"x": np.zeros(2, np.int64), "w": X}, [("pick", {"Ids": "x", "W": "w"}, {"Out": "y"})])
    (y,) = Executor().run(program, {"x": np.int64([1, 0]), "w": X}, ["y"], Scope())
    assert (y == X).all()


def test_require_takes_no_empty_message() -> None:
    class Silent(OpDef, type="silent"):
        """A rule that would say nothing."""

        X = Input("x")
        Out = Output("o")

        def infer_shape(ctx: Any) -> None:
            ctx.require(len(ctx.dim("X")) == 1, "")

    program = Program()
    block = program.global_block()
    for name, shape in (("x", [2]), ("y", None)):
        block.create_var(name, dtype="float32", shape=shape)
    op = block.append_op("silent", {"X": "x"}, {"Out": "y"})
    with pytest.raises(DefinitionError, match=r"op silent: its rule calls ctx.require\(True, ''\); expected a message"):
        infer_op(op, block, build_op_info(Silent, "here"))
