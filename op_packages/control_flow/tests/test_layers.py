"""Loops, branches and recurrent blocks written with layers: numbers, gradients, and errors while they are built."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack import LoDTensor, layers
from oprack.autodiff import gradients
from oprack.errors import InvalidArgumentError, NotFoundError, PreconditionNotMetError

RNG = np.random.default_rng(11)
OFFSETS = [0, 2, 5, 6]


class Built:
    """A program that was built and run once. feed: arrays, or LoDTensors; `[name]` is the value of a parameter."""

    def __init__(self, build, prepared=True, **feed):
        self.main, startup, self.scope = oprack.Program(), oprack.Program(), oprack.Scope()
        feed = {n: v if isinstance(v, LoDTensor) else LoDTensor(np.asarray(v)) for n, v in feed.items()}
        with oprack.program_guard(self.main, startup), oprack.unique_name.guard():
            inputs = {n: layers.data(n, t.shape, t.dtype, len(t.lod)) for n, t in feed.items()}
            for var in inputs.values():
                var.stop_gradient = False
            self.outputs = list(build(**inputs))
        assert self.main.current_block_idx == 0
        exe = oprack.Executor(seed=4, prepared=prepared)
        exe.run(startup, scope=self.scope, fetch_list=[])
        self.values = exe.run(self.main, feed=feed, fetch_list=self.outputs, scope=self.scope, return_numpy=False)
        self.arrays = [np.asarray(v) for v in self.values]

    def __getitem__(self, name):
        return np.asarray(self.scope.find_var(name).get())

    @property
    def parameters(self):
        return [self[v.name].astype(np.float64) for v in self.main.all_parameters()]


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def check_gradients(function, arguments, found, eps=1e-5):
    """Compare gradients of a NumPy function's sum with finite differences, argument by argument."""
    for k, argument in enumerate(arguments):
        expected = np.zeros_like(argument)
        for index in np.ndindex(argument.shape):
            sides = []
            for step in (eps, -eps):
                moved = argument.copy()
                moved[index] += step
                sides.append(function(*arguments[:k], moved, *arguments[k + 1 :]))
            expected[index] = (sides[0] - sides[1]) / (2 * eps)
        np.testing.assert_allclose(found[k], expected, rtol=1e-3, atol=1e-4)


# Loops ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("prepared", [True, False])
def test_while_writes_outer_variables(prepared):
    def build(x):
        i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 5)
        total, cond = layers.assign(x), layers.less_than(i, n)
        loop = layers.While(cond)
        with loop.block():
            layers.assign(total * 2.0, total)
            layers.increment(i)
            layers.less_than(i, n, cond=cond)
        return total, i

    net = Built(build, prepared, x=np.ones(3, np.float32))
    assert net.arrays[0].tolist() == [32, 32, 32] and net.arrays[1].tolist() == [5]
    op = net.main.global_block().ops[-1]
    assert op.type == "while" and sorted(op.output("Out")) == sorted(
        [net.outputs[0].name, net.outputs[1].name, op.input("Condition")[0]]
    )


def test_arrays_in_a_loop_and_their_gradient():
    """Reading array[i] before the counter moves on: the gradient writes to the places that were read."""

    def build(x):
        i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
        array = layers.array_write(x, i)
        cond = layers.less_than(i, n)
        with layers.While(cond).block():
            before = layers.array_read(array, i)
            layers.increment(i)
            layers.array_write(before * before, i, array)
            layers.less_than(i, n, cond=cond)
        last = layers.array_read(array, n)
        return [last, layers.array_length(array), *gradients(layers.reduce_sum(last), [x])]

    x = np.array([1.1, 0.9], np.float32)
    net = Built(build, x=x)
    close(net.arrays[0], x**8)
    close(net.arrays[2], 8 * x**7)
    assert net.arrays[1].tolist() == [4]


@pytest.mark.parametrize("prepared", [True, False])
def test_while_loop_and_its_gradient(prepared):
    def build(x):
        i = layers.fill_constant([1], "int64", 0)
        last, y = layers.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, y * y * x], [i, x])
        return [y, last, i, *gradients(layers.reduce_sum(y), [x])]

    x = np.array([1.0, 0.5, -1.1], np.float32)
    net = Built(build, prepared, x=x)
    close(net.arrays[0], x**15)
    close(net.arrays[3], 15 * x**14)
    assert [a.tolist() for a in net.arrays[1:3]] == [[3], [0]]


def test_while_loop_hands_all_states_over_at_once():
    def build(a, b):
        i = layers.fill_constant([1], "int64", 0)
        return layers.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b, a), [i, a, b])[1:]

    net = Built(build, a=np.array([1.0]), b=np.array([2.0]))
    assert [v.tolist() for v in net.arrays] == [[2.0], [1.0]]


def test_a_loop_that_never_runs_keeps_its_variables():
    def build(x):
        return layers.while_loop(lambda x: layers.reduce_sum(x) < 0.0, lambda x: x + 1, [x])

    assert Built(build, x=np.ones(2, np.float32)).arrays[0].tolist() == [1, 1]


# Branches -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("x", "expected"), [(2.0, [4, 4, 4]), (-2.0, [-6, -1, 1])])
def test_cond_returns_structures_with_gradients(x, expected):
    def build(x):
        made = layers.cond(x > 0.0, lambda: (x * 2, {"a": x * x}), lambda: (x * 3, {"a": x + 1}))
        assert isinstance(made, tuple) and list(made[1]) == ["a"]
        return [made[0], made[1]["a"], *gradients(made[1]["a"], [x])]

    assert [a.item() for a in Built(build, x=np.array([x], np.float32)).arrays] == expected


def test_cond_without_results_and_nested():
    def build(x):
        seen = layers.assign(np.zeros(1, np.float32))

        def remember():
            layers.assign(x, seen)

        assert layers.cond(x > 0.0, remember) is None
        inner = layers.cond(x > 0.0, lambda: layers.cond(x > 5.0, lambda: x * 0 + 2, lambda: x * 0 + 1), lambda: x * 0)
        return [seen, inner]

    found = [[a.item() for a in Built(build, x=np.array([v], np.float32)).arrays] for v in (-1, 1, 9)]
    assert found == [[0, 0], [1, 1], [9, 2]]


@pytest.mark.parametrize(("step", "rate"), [(5, 0.1), (15, 0.2), (25, 0.3)])
def test_switch_and_case_take_the_first_that_is_true(step, rate):
    def build(step):
        lr = layers.create_global_var([1], 0.0, "float32", persistable=True, name="lr")
        rates = [layers.fill_constant([1], "float32", r) for r in (0.1, 0.2, 0.3)]
        with layers.Switch() as switch:
            with switch.case(step < 10):
                layers.assign(rates[0], lr)
            with switch.case(step < 20):
                layers.assign(rates[1], lr)
            with switch.default():
                layers.assign(rates[2], lr)
        pairs = [(step < 10, lambda: rates[0]), (step < 20, lambda: rates[1])]
        return [lr, layers.case(pairs, lambda: rates[2])]

    net = Built(build, step=np.array([step]))
    close([a.item() for a in net.arrays], [rate, rate])


# Recurrent blocks -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("steps", [4, None])
def test_static_rnn_and_its_gradient(steps):
    x = RNG.standard_normal((4, 2, 3)).astype(np.float32)

    def build(x):
        x.desc.shape = (steps or -1, -1, 3)
        rnn = layers.StaticRNN()
        with rnn.step():
            word = rnn.step_input(x)
            before = rnn.memory(shape=[-1, 2], batch_ref=word)
            hidden = layers.fc([word, before], 2, act="tanh")
            rnn.update_memory(before, hidden)
            rnn.step_output(hidden)
        out = rnn()
        assert out.shape == (steps or -1, -1, 2)
        loss = layers.reduce_sum(out * out)
        return [out, *gradients(loss, [x, *(p.name for p in x.program.all_parameters())])]

    def numpy_rnn(x, w, u, b):
        states = [np.zeros((2, 2))]
        for row in x:
            states.append(np.tanh(row @ w + states[-1] @ u + b))
        return np.stack(states[1:])

    net = Built(build, x=x)
    arguments = [x.astype(np.float64), *net.parameters]
    close(net.arrays[0], numpy_rnn(*arguments))
    check_gradients(lambda *a: (numpy_rnn(*a) ** 2).sum(), arguments, net.arrays[1:])


def test_dynamic_rnn_and_its_gradient():
    x = RNG.standard_normal((6, 3)).astype(np.float32)
    init = RNG.standard_normal((3, 2)).astype(np.float32)

    def build(x, init):
        rnn = layers.DynamicRNN()
        with rnn.block():
            word = rnn.step_input(x)
            always = rnn.static_input(init)
            before, decayed = rnn.memory(shape=[2]), rnn.memory(init=init, need_reorder=True)
            hidden = layers.fc([word, before, decayed], 2, act="tanh")
            rnn.update_memory(before, hidden)
            rnn.update_memory(decayed, decayed * 0.5 + hidden)
            rnn.output(hidden, always)
        out, static = rnn()
        loss = layers.reduce_sum(out * out)
        return [out, static, *gradients(loss, [x, init, *(p.name for p in x.program.all_parameters())])]

    def numpy_rnn(x, init, w, u, v, b):
        rows = []
        for s, start in enumerate(OFFSETS[:-1]):
            h, m = np.zeros(2), init[s]
            for t in range(start, OFFSETS[s + 1]):
                h = np.tanh(x[t] @ w + h @ u + m @ v + b)
                m = m * 0.5 + h
                rows.append(h)
        return np.stack(rows)

    net = Built(build, x=LoDTensor(x, [OFFSETS]), init=init)
    arguments = [x.astype(np.float64), init.astype(np.float64), *net.parameters]
    close(net.arrays[0], numpy_rnn(*arguments))
    close(net.arrays[1], init.repeat([2, 3, 1], 0))
    assert net.values[0].lod == [OFFSETS]
    check_gradients(lambda *a: (numpy_rnn(*a) ** 2).sum(), arguments, net.arrays[2:])


def test_memories_may_swap():
    def build(x):
        rnn, one, two = layers.StaticRNN(), x[0] * 0 + 1, x[0] * 0 + 2
        with rnn.step():
            word = rnn.step_input(x)
            a, b = rnn.memory(init=one), rnn.memory(init=two)
            rnn.update_memory(a, b)
            rnn.update_memory(b, a)
            rnn.output(a + word * 0)
        return [rnn()]

    assert Built(build, x=np.zeros((3, 1), np.float32)).arrays[0].ravel().tolist() == [1, 2, 1]


# Arrays and small ops -------------------------------------------------------------------------------------------------
def test_arrays_to_tensors_and_rank_tables():
    x = np.arange(6, dtype=np.float32)[:, None]

    def build(x):
        table = layers.lod_rank_table(x)
        array = layers.lod_tensor_to_array(x, table)
        zero = layers.fill_constant([1], "int64", 0)
        stacked, _ = layers.tensor_array_to_tensor(layers.array_write(x, zero), axis=0, use_stack=True)
        return [
            layers.max_sequence_len(table),
            layers.array_read(array, zero),
            layers.array_to_lod_tensor(array, table),
            layers.is_empty(x),
            stacked,
        ]

    found = Built(build, x=LoDTensor(x, [OFFSETS])).arrays
    assert found[0].tolist() == [3] and found[1].ravel().tolist() == [2, 0, 5]
    assert found[2].ravel().tolist() == x.ravel().tolist() and not found[3].any() and found[4].shape == (1, 6, 1)


def test_print_and_assert(capsys):
    def build(x):
        shown = layers.Print(x, message="value of x")
        layers.Assert(layers.reduce_all(x > 0.0), [x])
        return [shown]

    assert Built(build, x=np.ones(2, np.float32)).arrays[0].tolist() == [1, 1]
    captured = capsys.readouterr()
    assert "value of x" in captured.out + captured.err
    with pytest.raises(PreconditionNotMetError, match="Cond is false"):
        Built(build, x=-np.ones(2, np.float32))


# Errors ---------------------------------------------------------------------------------------------------------------
def _loop_without_end(x):
    with layers.While(layers.reduce_sum(x) < 1.0).block():
        x + 1


def _empty_step(x):
    rnn = layers.StaticRNN()
    with rnn.step():
        rnn.step_input(x)


def _memory_without_update(x):
    rnn, first = layers.StaticRNN(), x[0]
    with rnn.step():
        rnn.output(rnn.step_input(x) + rnn.memory(init=first))


def _memory_of_the_step(x):
    with (rnn := layers.StaticRNN()).step():
        rnn.memory(init=x[0])


def _memory_before_input(x):
    with (rnn := layers.DynamicRNN()).block():
        rnn.memory(shape=[2])


BAD_CALLS = [
    (lambda x: layers.While(x), r"While: cond \(variable 'x'\) is float32; expected bool"),
    (lambda x: layers.While(x < 1.0), r"has shape \[4, 3\]; expected one element.*reduce_all"),
    (_loop_without_end, "the loop would never end"),
    (lambda x: layers.while_loop(lambda x: layers.mean(x) < 1.0, lambda x: 3, [x]), "body returned .3.; expected 1"),
    (
        lambda x: layers.while_loop(lambda x: layers.mean(x) < 1.0, lambda x: x < 1.0, [x]),
        "float32 state 'while_loop_0.tmp_0' would become bool",
    ),
    (lambda x: layers.while_loop(lambda: 1, lambda: 1, []), "loop_vars is empty"),
    (lambda x: layers.cond(layers.mean(x) < 1.0, lambda: x, lambda: [x]), "returned a Variable and false_fn .'a Var"),
    (lambda x: layers.cond(layers.mean(x) < 1.0, lambda: x, lambda: x < 1.0), "returned float32 where false_fn ret"),
    (lambda x: layers.cond(layers.mean(x) < 1.0, lambda: 3, lambda: x), "a branch returned 3 .int."),
    (lambda x: layers.cond(layers.mean(x) < 1.0, 3), "true_fn is 3; expected a function"),
    (lambda x: layers.Switch().case(x), "case outside of the switch"),
    (lambda x: layers.array_read(x, x), "array is the LOD_TENSOR 'x'; expected one made by layers.create_array"),
    (lambda x: layers.max_sequence_len(x), "is a LOD_TENSOR; expected a rank table"),
    (_empty_step, "no step_input or no output"),
    (_memory_without_update, "memory .* is not updated"),
    (_memory_of_the_step, "init is variable 'slice_0.tmp_0', which the step makes itself"),
    (_memory_before_input, "expected a step_input before it"),
    (lambda x: layers.StaticRNN()(), "build the step first"),
    (lambda x: layers.StaticRNN().step_input(x), "inside the step's with block"),
    (lambda x: layers.DynamicRNN().step_input(x), r"\(variable 'x'\) has no LoD"),
]


@pytest.mark.parametrize(("build", "text"), BAD_CALLS)
def test_bad_calls_leave_no_block(build, text):
    main = oprack.Program()
    with oprack.program_guard(main), oprack.unique_name.guard():
        x = layers.data("x", [4, 3])
        with pytest.raises((InvalidArgumentError, NotFoundError), match=text):
            build(x)
    assert main.current_block_idx == 0
    ops = [op for block in main.blocks for op in block.ops]
    assert not any(op.type == "while" for op in ops)
    named = {index for op in ops for index in op.sub_blocks()}
    assert set(range(1, len(main.blocks))) == named
