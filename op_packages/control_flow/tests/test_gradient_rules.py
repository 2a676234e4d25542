"""Gradients of programs that no layer writes, and what the backward pass refuses."""

from __future__ import annotations

import numpy as np
import pytest
from oprack import Executor, LoDTensor, ParamAttr, Program, Scope, SelectedRows, layers
from oprack.autodiff import append_backward, gradients
from oprack.errors import InvalidArgumentError, NotDifferentiableError
from oprack.layers import LayerHelper, program_guard, variable_of
from oprack.types import VarType

A = np.array([[0.3, -0.7, 0.2], [0.5, 0.1, -0.4]])
B = np.array([[-0.2, 0.6, 0.9], [0.8, -0.3, 0.4]])
W = np.array([[0.4, -0.5, 0.3], [0.7, 0.2, -0.6], [-0.1, 0.8, 0.5]])
STEPS = np.linspace(-1, 1, 12).reshape(2, 2, 3)
both_ways = pytest.mark.parametrize("prepared", [True, False])


def number(value, dtype="int64"):
    return layers.fill_constant([1], dtype, value)


def loop(rounds, **options):
    i, n = number(0), number(rounds)
    return layers.While(layers.less_than(i, n), **options), i, n


def count(while_, i, n):
    layers.increment(i)
    layers.less_than(i, n, cond=while_.cond)


def doubling(op_type="elementwise_mul", **options):
    """h = h * w, twice, with an op that writes straight into h when op_type is another one."""

    def function(x, w):
        while_, i, n = loop(2, **options)
        h = layers.assign(x)
        with while_.block():
            new = layers.mul(h, w)
            LayerHelper("into").append_op(op_type, {"X": new} | ({"Y": new} if "mul" in op_type else {}), {"Out": h})
            count(while_, i, n)
        return h

    return function


# recurrent (StaticRNN as Paddle writes it) ----------------------------------------------------------------------------
def recurrent(reverse=False, own_name=False, hidden_is_output=False, constant_start=False):
    """h = tanh(x + h_before w), y = 3 h. own_name: the new state has a name of its own, as in programs of 1.x."""

    def function(x, h0, w):
        helper = LayerHelper("recurrent")
        program = helper.main_program
        if constant_start:
            h0 = layers.fill_constant([2, 3], "float64", 0.3)
        outs = ["y", "h"] if hidden_is_output else ["y"]
        made = [helper.create_variable(name=n, dtype="float64", shape=[2, 2, 3]) for n in outs]
        block = program.create_block()
        for name in ("x", "before", "h", "h_out", "y"):
            block.create_var(name, dtype=VarType.FP64, shape=[2, 3])
        inner = {n: variable_of(program, n) for n in block.vars}
        total = layers.elementwise_add(inner["x"], layers.mul(inner["before"], w))
        helper.append_op("tanh", {"X": total}, {"Out": inner["h"]})
        helper.append_op("scale", {"X": inner["h"]}, {"Out": inner["y"]}, {"scale": 3.0})
        if own_name:
            helper.append_op("rnn_memory_helper", {"X": inner["h"]}, {"Out": inner["h_out"]})
        program.rollback()
        state = "h_out" if own_name else "h"
        helper.append_op(
            "recurrent",
            {"inputs": [x], "initial_states": [h0], "parameters": [w]},
            {"outputs": made, "step_scopes": helper.create_variable(type=VarType.STEP_SCOPES)},
            {"sub_block": block, "ex_states": ["before"], "states": [state], "has_states": True, "reverse": reverse},
        )
        return layers.elementwise_mul(*made) if hidden_is_output else made[0]

    return function


@both_ways
@pytest.mark.parametrize("option", [None, "reverse", "own_name", "hidden_is_output", "constant_start"])
def test_recurrent(differentiated, option, prepared):
    made = differentiated(recurrent(**({option: True} if option else {})), {"x": STEPS, "h0": A, "w": W})
    made.check(prepared)
    assert (made.run()[1] is None) == (option == "constant_start")


@both_ways
def test_recurrent_in_a_branch(differentiated, prepared):
    def function(x, h0, w):
        yes = layers.less_than(number(0), number(1))
        return layers.cond(yes, lambda: recurrent()(x, h0, w), lambda: layers.scale(x, 2.0))

    differentiated(function, {"x": STEPS, "h0": A, "w": W}).check(prepared)


# Rows that go two ways (IfElse), selected variables -------------------------------------------------------------------
def if_else(limit):
    """Rows whose first element is below `limit` go through tanh(x w), the others through 2 x."""

    def function(x, w):
        helper = LayerHelper("if_else")

        def variable():
            return helper.create_variable(dtype="float64", shape=[-1, 3])

        mask = layers.less_than(layers.slice(x, [1], [0], [1]), number(limit, "float64"))
        parts = {"OutTrue": variable(), "OutFalse": variable()}
        helper.append_op("split_lod_tensor", {"X": x, "Mask": mask}, parts, {"level": 0})
        outs = []
        for part, branch in ((parts["OutTrue"], lambda v: layers.tanh(layers.mul(v, w))), (parts["OutFalse"], None)):
            out = variable()
            block = helper.main_program.create_block()
            layers.assign(branch(part) if branch else layers.scale(part, 2.0), out)
            helper.main_program.rollback()
            scope = helper.create_variable(type=VarType.STEP_SCOPES)
            reads = [part, w] if branch else [part]
            attrs = {"sub_block": block, "is_scalar_condition": False}
            helper.append_op("conditional_block", {"Input": reads}, {"Out": out, "Scope": scope}, attrs)
            outs.append(out)
        joined = {"X": x, "Mask": mask, "InTrue": outs[0], "InFalse": outs[1]}
        return helper.apply("merge_lod_tensor", joined, {"level": 0})

    return function


@both_ways
@pytest.mark.parametrize("limit", [0.4, 9.0, -9.0])
def test_rows_that_go_two_ways(differentiated, limit, prepared):
    differentiated(if_else(limit), {"x": A, "w": W}).check(prepared)


@both_ways
def test_selected_output(differentiated, prepared):
    """Of two variables only one is set; a branch reads it, and one that does not run the other."""

    def function(x, y):
        helper = LayerHelper("select")
        outs = [helper.create_variable(dtype="float64", shape=[2, 3]) for _ in range(2)]
        picked = {"X": layers.elementwise_mul(x, y), "Mask": number(1, "int32")}
        helper.append_op("select_output", picked, {"Out": outs})
        results = []
        for out, limit in zip(outs, (-1, 1), strict=True):
            result = helper.create_variable(dtype="float64", shape=[2, 3])
            with layers.ConditionalBlock(layers.less_than(number(0), number(limit))).block():
                layers.assign(layers.tanh(out), result)
            results.append(result)
        return helper.apply("select_input", {"X": results, "Mask": number(1, "int32")})

    differentiated(function, {"x": A, "y": B}).check(prepared)


# What flows and what does not -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", ["stop_gradient", "no_grad_set"])
def test_variables_of_a_block_through_which_nothing_flows(differentiated, how):
    names = []

    def function(x, w):
        while_, i, n = loop(2)
        h = layers.assign(x)
        with while_.block():
            through_w = layers.mul(h, w)
            through_w.stop_gradient = how == "stop_gradient"
            names.append(through_w.name)
            layers.assign(layers.elementwise_add(layers.tanh(h), through_w), h)
            count(while_, i, n)
        return h

    made = differentiated(function, {"x": A, "w": W}, no_grad_set=names if how == "no_grad_set" else None)
    x_grad, w_grad = made.run()
    after = np.tanh(A) + A @ W
    np.testing.assert_allclose(x_grad, made.cotangent * (1 - np.tanh(after) ** 2) * (1 - np.tanh(A) ** 2), rtol=1e-9)
    assert w_grad is None


@both_ways
@pytest.mark.parametrize("where", ["loop", "branch", "branch not taken"])
def test_rows_of_a_table(where, prepared):
    """A sparse gradient through a block: SelectedRows, which add up over rounds; none where the block did not run."""
    main, startup = Program(), Program()
    with program_guard(main, startup):
        ids = layers.data("ids", [2, 1], "int64")

        def rows():
            return layers.embedding(ids, [5, 3], is_sparse=True, param_attr=ParamAttr(name="table"), dtype="float64")

        total = layers.scale(number(0.0, "float64"), 1.0)
        total.stop_gradient = False
        if where == "loop":
            while_, i, n = loop(3)
            total = layers.reshape(layers.concat([total] * 6), [2, 3])
            with while_.block():
                layers.assign(layers.elementwise_add(layers.scale(total, 0.5), rows()), total)
                count(while_, i, n)
        else:
            taken = layers.less_than(number(0 if where == "branch" else 2), number(1))
            total = layers.cond(taken, rows, lambda: layers.scale(total, 1.0))
        loss = layers.reduce_sum(layers.elementwise_mul(total, total))
        ((_, name),) = append_backward(loss)
    assert main.global_block().var(name).type is VarType.SELECTED_ROWS
    scope, executor = Scope(), Executor(prepared=prepared)
    executor.run(startup, scope=scope)
    table = np.linspace(0, 1, 15).reshape(5, 3)
    scope.var("table").set(LoDTensor(table))
    (grad,) = executor.run(main, {"ids": np.array([[1], [3]])}, [name], scope, return_numpy=False)
    assert isinstance(grad, SelectedRows)
    expected = np.zeros((5, 3))
    weight = {"loop": 1 + 0.5 + 0.25, "branch": 1, "branch not taken": 0}[where]
    expected[[1, 3]] = 2 * weight**2 * table[[1, 3]]
    np.testing.assert_allclose(grad.to_dense(), expected, rtol=1e-12)


@both_ways
def test_gradients_of_arrays_are_arrays(prepared):
    """Of the array after its last write: reading the gradients of what was written leaves it alone."""
    program = Program()
    with program_guard(program, Program()):
        x = layers.data("x", A.shape, "float64")
        x.stop_gradient = False
        array = layers.array_write(layers.scale(x, 2.0), number(0))
        layers.array_write(layers.scale(x, 3.0), number(1), array)
        out = layers.reduce_sum(layers.scale(layers.tensor_array_to_tensor(array)[0], 5.0))
        names = gradients(out, [array, x])
    of_array, of_x = Executor(prepared=prepared).run(program, {"x": A}, names, return_numpy=False)
    assert [t.array.tolist() for t in of_array] == [np.full((2, 3), 5.0).tolist()] * 2
    assert of_x.array.tolist() == np.full((2, 3), 25.0).tolist()


@both_ways
def test_two_passes_through_one_block(prepared):
    """A second call finds the scopes of the steps that the first one needs as well."""
    program = Program()
    with program_guard(program, Program()):
        x, y = (layers.data(n, A.shape, "float64") for n in "xy")
        x.stop_gradient = y.stop_gradient = False
        three = number(3)
        _, h = layers.while_loop(
            lambda i, h: layers.less_than(i, three),
            lambda i, h: [layers.elementwise_add(i, number(1)), layers.elementwise_mul(h, y)],
            [number(0), x],
        )
        out = layers.cond(layers.less_than(number(0), number(1)), lambda: layers.elementwise_mul(h, h), lambda: h)
        names = [*gradients(out, [x]), *gradients(h, [x, y])]
    found = Executor(prepared=prepared).run(program, {"x": A, "y": B}, names)
    for grad, expected in zip(found, (2 * A * B**6, B**3, 3 * A * B**2), strict=True):
        np.testing.assert_allclose(grad, expected, rtol=1e-12)


# What is refused ------------------------------------------------------------------------------------------------------
def test_overwritten_result(differentiated):
    """tanh_grad needs what tanh wrote, of which later rounds leave nothing."""
    with pytest.raises(InvalidArgumentError, match=r"op tanh: its gradient tanh_grad needs Out, variable .*assign"):
        differentiated(doubling("tanh"), {"x": A, "w": W})


def test_overwritten_before_the_loop(differentiated):
    def function(x, w):
        h = layers.tanh(x)
        while_, i, n = loop(2)
        with while_.block():
            layers.assign(layers.mul(h, w), h)
            count(while_, i, n)
        return h

    with pytest.raises(InvalidArgumentError, match=r"op while .number 4 of block 0. overwrites it in place"):
        differentiated(function, {"x": A, "w": W})


def test_counter_used_by_a_second_pass():
    """The first pass has counted back."""
    program = Program()
    with program_guard(program, Program()):
        x, w = layers.data("x", A.shape, "float64"), layers.data("w", W.shape, "float64")
        x.stop_gradient = w.stop_gradient = False
        out = doubling("assign")(x, w)
        gradients(out, [x])
        with pytest.raises(InvalidArgumentError, match="but op while_grad"):
            gradients(out, [w])


def test_loop_built_for_tests(differentiated):
    with pytest.raises(NotDifferentiableError, match="is_test is true"):
        differentiated(doubling("assign", is_test=True), {"x": A, "w": W})


def test_second_order_through_a_branch():
    program = Program()
    with program_guard(program, Program()):
        x = layers.data("x", A.shape, "float64")
        x.stop_gradient = False
        out = layers.cond(
            layers.less_than(number(0), number(1)), lambda: layers.elementwise_mul(x, x), lambda: layers.scale(x, 2.0)
        )
        (name,) = gradients(out, [x])
        first = variable_of(program, name)
        with pytest.raises(NotDifferentiableError, match=r"op conditional_block_grad .* has no gradient"):
            gradients(first, [x])
