"""Gradients through blocks, against central differences of the forward program."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from oprack import layers

A = np.array([[0.3, -0.7, 0.2], [0.5, 0.1, -0.4]])
B = np.array([[-0.2, 0.6, 0.9], [0.8, -0.3, 0.4]])
W = np.array([[0.4, -0.5, 0.3], [0.7, 0.2, -0.6], [-0.1, 0.8, 0.5]])


def number(value, dtype="int64"):
    return layers.fill_constant([1], dtype, value)


def loop(rounds):
    """(the While, counter, limit); the body has to end with `count`."""
    i, n = number(0), number(rounds)
    return layers.While(layers.less_than(i, n)), i, n


def count(while_, i, n):
    layers.increment(i)
    layers.less_than(i, n, cond=while_.cond)


# Programs: variables in, a variable out -------------------------------------------------------------------------------
def rounds(count_of_rounds):
    def loop_with_state(x, w):
        """h = tanh(h w), acc += h, and a product that only the last round decides."""

        def body(i, h, acc, last):
            h = layers.tanh(layers.mul(h, w))
            return [layers.elementwise_add(i, number(1)), h, layers.elementwise_add(acc, h), layers.scale(h, 2.0)]

        start = [number(0), x, layers.scale(x, 0.5), layers.scale(x, 3.0)]
        n = number(count_of_rounds)
        _, h, acc, last = layers.while_loop(lambda i, *_: layers.less_than(i, n), body, start)
        return layers.concat([h, acc, last])

    loop_with_state.__name__ = f"loop_of_{count_of_rounds}_rounds"
    return loop_with_state


def result_of_last_round(count_of_rounds):
    def last_round(x, w):
        """A variable that the loop only writes, and reads after writing: earlier rounds, or what was before, vanish."""
        while_, i, n = loop(count_of_rounds)
        last = layers.assign(layers.tanh(x))
        total = layers.assign(x)
        with while_.block():
            layers.assign(layers.mul(total, w), last)
            layers.assign(layers.elementwise_add(total, layers.scale(last, 0.3)), total)
            count(while_, i, n)
        return layers.elementwise_mul(last, total)

    last_round.__name__ = f"last_of_{count_of_rounds}_rounds"
    return last_round


def in_place_sum(x, w):
    """acc += mul(acc, w) in place, as Fluid's sums(..., out=acc)."""
    while_, i, n = loop(3)
    acc, step = layers.assign(x), layers.assign(x)
    with while_.block():
        layers.assign(layers.tanh(layers.mul(step, w)), step)
        layers.sums([acc, step], out=acc)
        count(while_, i, n)
    return acc


def carried_but_not_wanted(x, w):
    """h goes from round to round; only the sum of its squares is used."""
    while_, i, n = loop(3)
    h, total = layers.assign(x), layers.scale(x, 0.0)
    with while_.block():
        layers.assign(layers.elementwise_add(total, layers.elementwise_mul(h, h)), total)
        layers.assign(layers.mul(h, w), h)
        count(while_, i, n)
    return total


def while_in_while(x, w):
    """The inner loop starts anew in each round of the outer one; both read the weight and count in place."""
    outer, i, n = loop(2)
    h = layers.assign(x)
    with outer.block():
        before = layers.tanh(h)
        j, m = number(0), number(3)
        inner = layers.While(layers.less_than(j, m))
        with inner.block():
            layers.assign(layers.tanh(layers.mul(h, w)), h)
            count(inner, j, m)
        after = layers.assign(h)
        layers.assign(layers.elementwise_mul(layers.elementwise_add(after, before), after), h)
        count(outer, i, n)
    return h


def three_deep(x, w):
    h = layers.assign(x)
    loops = [loop(2)]
    with loops[0][0].block():
        loops.append(loop(2))
        with loops[1][0].block():
            loops.append(loop(2))
            with loops[2][0].block():
                layers.assign(layers.tanh(layers.mul(h, w)), h)
                count(*loops[2])
            count(*loops[1])
        count(*loops[0])
    return h


def cond_in_while(x, w):
    """Rounds 0 and 2 take one branch, round 1 the other; only one of them uses the weight."""
    while_, i, n = loop(3)
    h, one = layers.assign(x), number(1)
    with while_.block():
        odd = layers.equal(i, one)
        new = layers.cond(odd, lambda: layers.mul(h, w), lambda: layers.elementwise_mul(layers.tanh(h), x))
        layers.assign(new, h)
        count(while_, i, n)
    return h


def while_in_cond(x, w):
    def repeated():
        def body(i, h):
            return [layers.elementwise_add(i, number(1)), layers.tanh(layers.mul(h, w))]

        return layers.while_loop(lambda i, h: layers.less_than(i, number(3)), body, [number(0), x])[1]

    return layers.cond(layers.less_than(number(0), number(1)), repeated, lambda: layers.scale(x, 2.0))


def branch(taken, depth=1):
    def branches(x, y):
        """x in both branches, y in one of them, and both again outside."""
        yes = layers.less_than(number(0 if taken else 2), number(1))

        def one():
            if depth == 1:
                return layers.elementwise_mul(layers.tanh(x), y)
            return layers.cond(yes, lambda: layers.elementwise_mul(x, y), lambda: layers.tanh(y))

        made = layers.cond(yes, one, lambda: layers.scale(x, 3.0))
        return layers.elementwise_add(made, layers.scale(x, 0.1))

    branches.__name__ = f"branch_{'taken' if taken else 'not_taken'}_depth_{depth}"
    return branches


def overwriting_branch(taken):
    def overwriting(x, y):
        """The branch overwrites h without reading it, and adds to g."""
        h, g = layers.assign(layers.tanh(x)), layers.assign(layers.scale(x, 2.0))
        with layers.ConditionalBlock(layers.less_than(number(0 if taken else 2), number(1))).block():
            layers.assign(layers.scale(y, 5.0), h)
            layers.assign(layers.elementwise_add(g, h), g)
        return layers.elementwise_mul(h, g)

    overwriting.__name__ = f"overwritten_in_branch_{'taken' if taken else 'not_taken'}"
    return overwriting


def several_results(x, y):
    """Of three results of a branch one goes on, one is an integer, and one is not used."""

    def one():
        return layers.elementwise_mul(x, y), layers.fill_constant([1], "int64", 3), layers.tanh(y)

    def two():
        return layers.scale(x, 2.0), layers.fill_constant([1], "int64", 4), layers.scale(y, 2.0)

    return layers.cond(layers.less_than(number(0), number(1)), one, two)[0]


def weight_inside_and_outside(x, w):
    """The weight before, in and after the loop."""
    while_, i, n = loop(2)
    h = layers.assign(layers.mul(x, w))
    with while_.block():
        layers.assign(layers.tanh(layers.mul(h, w)), h)
        count(while_, i, n)
    return layers.mul(h, w)


def overwritten_outside(x, y):
    """What an op overwrites without reading it depends on its inputs alone."""
    h = layers.assign(layers.tanh(x))
    first = layers.scale(h, 2.0)
    layers.assign(y, h)
    return layers.elementwise_mul(first, layers.scale(h, 3.0))


def float_counter(x, y):
    """A float counter has a gradient, too: d(t + 1)/dt = 1."""
    t = layers.reduce_sum(x, keep_dim=True)
    t = layers.reshape(t, [1])
    layers.increment(t, 0.5)
    while_, i, n = loop(2)
    with while_.block():
        layers.increment(t, 2.0)
        count(while_, i, n)
    return layers.elementwise_mul(y, t)


def static_rnn(x, w):
    """x [2, 3] as two steps of [3, 1]."""
    rnn, start = layers.StaticRNN(), layers.fill_constant([1, 3], "float64", 0.2)
    with rnn.step():
        word = layers.reshape(rnn.step_input(x), [1, 3])
        before = rnn.memory(init=start)
        hidden = layers.tanh(layers.elementwise_add(layers.mul(word, w), before))
        rnn.update_memory(before, hidden)
        rnn.step_output(hidden)
    return rnn()


def loop_of_2_states(x, w):
    def body(i, h, acc):
        h = layers.tanh(layers.mul(h, w))
        return [layers.elementwise_add(i, number(1)), h, layers.elementwise_add(acc, h)]

    start, n = [number(0), x, layers.scale(x, 0.5)], number(3)
    _, h, acc = layers.while_loop(lambda i, *_: layers.less_than(i, n), body, start)
    return layers.concat([h, acc])


PAIR, RNN = {"x": A, "y": B}, {"x": A, "w": W}
PROGRAMS = [
    *((f, RNN) for f in (rounds(0), rounds(1), rounds(3), loop_of_2_states, in_place_sum)),
    *((f, RNN) for f in (result_of_last_round(0), result_of_last_round(1), result_of_last_round(3))),
    *((f, RNN) for f in (carried_but_not_wanted, while_in_while, three_deep, cond_in_while, while_in_cond)),
    *((f, RNN) for f in (weight_inside_and_outside, static_rnn)),
    *((f, PAIR) for f in (overwritten_outside, float_counter)),
    *((f, PAIR) for f in (branch(True), branch(False), branch(True, 2), branch(False, 2), several_results)),
    *((f, PAIR) for f in (overwriting_branch(True), overwriting_branch(False))),
]

# Gradients that Paddle 2.6.2 computes for static programs of the same structure (paddle.static.nn.while_loop and cond),
# in float64, with np.linspace(0.5, 1.5) in the shape of the result as target_gradients.
PADDLE = json.loads(Path(__file__).with_name("paddle_gradients.json").read_text())


@pytest.mark.parametrize("prepared", [True, False])
@pytest.mark.parametrize("function, values", [pytest.param(f, v, id=f.__name__) for f, v in PROGRAMS])
def test_gradient_is_the_slope(differentiated, function, values, prepared):
    differentiated(function, values).check(prepared)


@pytest.mark.parametrize(
    "function, values", [pytest.param(f, v, id=f.__name__) for f, v in PROGRAMS if f.__name__ in PADDLE]
)
def test_gradient_is_paddles(differentiated, function, values):
    for grad, expected in zip(differentiated(function, values).run(), PADDLE[function.__name__], strict=True):
        np.testing.assert_allclose(grad, expected, rtol=1e-7, atol=1e-9)
