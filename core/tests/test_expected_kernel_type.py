"""The five reasons to override the rule that all inputs share one dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.kernel import kernel
from oprack.op import Attr, Input, OpDef, Output, dtype_of, dtype_of_attr
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import Scope
from oprack.types import FLOATS

F, IDS = np.ones((2, 2), np.float32), np.array([0, 1])


def run(rack: PackManager, definition: type[OpDef], function: Any, inputs: dict[str, Any], feed: dict[str, Any]) -> Any:
    rack.register_op(definition)
    rack.register_kernel(function)
    program = Program()
    block = program.global_block()
    for name in {n for names in inputs.values() for n in ([names] if isinstance(names, str) else names)} | {"y"}:
        block.create_var(name)
    block.append_op(definition.op_type, inputs, {"Out": "y"}, {"dtype": 6} if "dtype" in definition.declared else {})
    return Executor(manager=rack).run(program, feed, ["y"], Scope())[0]


class Base(OpDef):
    X = Input("x", dispensable=True)
    Y = Input("y", dispensable=True)
    L = Input("l", duplicable=True, dispensable=True)
    Out = Output("o")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", (-1, -1))


def test_the_default_refuses_inputs_of_several_dtypes(rack: PackManager) -> None:
    class Op(Base, type="t0"):
        """Default."""

    @kernel("t0", dtypes=FLOATS)
    def t0(X: Any = None, Y: Any = None) -> Any:
        return X

    with pytest.raises(InvalidArgumentError, match=r"input X\[0\] is int64 but Y\[0\] is float32; .* cast one"):
        run(rack, Op, t0, {"X": "a", "Y": "b"}, {"a": IDS, "b": F})


def test_inputs_of_several_dtypes(rack: PackManager) -> None:
    class Op(Base, type="t1"):
        """Ids and a table."""

        expected_kernel_type = dtype_of("Y")

        def infer_var_type(ctx: Any) -> None:
            ctx.set_dtype("Out", ctx.dtype("Y"))

    @kernel("t1", dtypes=FLOATS)
    def t1(X: Any = None, Y: Any = None) -> Any:
        return Y[X]

    assert run(rack, Op, t1, {"X": "a", "Y": "b"}, {"a": IDS, "b": F}).shape == (2, 2)


def test_absent_dispensable_input(rack: PackManager) -> None:
    class Op(Base, type="t2"):
        """The first input may be absent."""

        expected_kernel_type = dtype_of("X", "Y")

    @kernel("t2", dtypes=FLOATS)
    def t2(X: Any = None, Y: Any = None) -> Any:
        return Y * 2 if X is None else X

    assert run(rack, Op, t2, {"Y": "b"}, {"b": F})[0, 0] == 2
    with pytest.raises(InvalidArgumentError, match="none of its inputs X, Y holds a tensor"):
        Executor(manager=rack).run(_program("t2", {"X": []}), {}, ["y"], Scope())


def _program(op: str, inputs: dict[str, Any]) -> Program:
    program = Program()
    program.global_block().create_var("y")
    program.global_block().append_op(op, inputs, {"Out": "y"})
    return program


def test_uninitialised_member_of_a_list(rack: PackManager) -> None:
    class Op(Base, type="t3"):
        """A member of L may hold nothing."""

        expected_kernel_type = dtype_of("L")

    @kernel("t3", dtypes=FLOATS)
    def t3(L: list[Any]) -> Any:
        return sum(x for x in L if x is not None)

    assert run(rack, Op, t3, {"L": ["empty", "b", "c"]}, {"b": F, "c": F})[0, 0] == 2


def test_dtype_from_an_attribute(rack: PackManager) -> None:
    class Op(Base, type="t4"):
        """No input at all."""

        dtype = Attr(5, "dtype")
        expected_kernel_type = dtype_of_attr("dtype")

    @kernel("t4", dtypes={"float64"})
    def t4(*, dtype: int) -> Any:
        return np.zeros((1, 1))

    assert run(rack, Op, t4, {}, {}).dtype == np.float64


def test_a_library_forced(rack: PackManager) -> None:
    class Op(Base, type="t5"):
        """Only the library's kernel will do."""

        def infer_shape(ctx: Any) -> None:
            ctx.set_dim("Out", ctx.dim("X"))

        def expected_kernel_type(ctx: Any) -> Any:
            return ctx.kernel_type(dtype=ctx.dtype("X"), library="lib")

    seen = []

    @kernel("t5", dtypes=FLOATS, library="lib")
    def t5(X: Any = None) -> Any:
        seen.append(X.shape)
        return X * 2

    @kernel("t5", dtypes=FLOATS)
    def plain(X: Any = None) -> Any:
        raise AssertionError("the plain kernel must not be chosen")

    rack.register_op(Op)
    rack.register_kernel(plain)
    rack.register_kernel(t5)
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    program = Program()
    for name in ("x", "y"):
        program.global_block().create_var(name)
    program.global_block().append_op("t5", {"X": "x"}, {"Out": "y"})
    (y,) = Executor(manager=rack).run(program, {"x": x}, ["y"], Scope())
    assert seen == [x.shape] and (y == 2 * x).all()


def test_an_uninitialised_input_is_named(rack: PackManager) -> None:
    class Op(Base, type="t6"):
        """Default rule, nothing given."""

    @kernel("t6")
    def t6(X: Any = None) -> Any:
        return X

    with pytest.raises(PreconditionNotMetError, match="op t6: variable 'a' holds no value"):
        run(rack, Op, t6, {"X": "a"}, {})
