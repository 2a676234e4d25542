"""Gradients of tensor arrays and of what goes through them, against central differences of the forward program."""

from __future__ import annotations

import numpy as np
import pytest
from oprack import LoDTensor, layers

A = np.array([[0.3, -0.7, 0.2], [0.5, 0.1, -0.4]])
B = np.array([[-0.2, 0.6, 0.9], [0.8, -0.3, 0.4]])
W = np.array([[0.4, -0.5, 0.3], [0.7, 0.2, -0.6], [-0.1, 0.8, 0.5]])
SEQUENCES = LoDTensor(np.linspace(-1, 1, 18).reshape(6, 3) ** 3, [[0, 3, 4, 6]])


def number(value, dtype="int64"):
    return layers.fill_constant([1], dtype, value)


def loop(rounds):
    """(the While, counter, limit); the body has to end with `count`."""
    i, n = number(0), number(rounds)
    return layers.While(layers.less_than(i, n)), i, n


def count(while_, i, n):
    layers.increment(i)
    layers.less_than(i, n, cond=while_.cond)


def array_of_steps(rounds):
    def steps(x, w):
        """Reads the step before from an array, which is read as a whole afterwards, too."""
        while_, i, n = loop(rounds)
        array = layers.array_write(layers.scale(x, 2.0), i)
        with while_.block():
            h = layers.tanh(layers.mul(layers.array_read(array, i), w))
            layers.increment(i)
            layers.array_write(h, i, array)
            layers.less_than(i, n, cond=while_.cond)
        return layers.tensor_array_to_tensor(array)[0]

    steps.__name__ = f"array_of_{rounds}_steps"
    return steps


def same_place(x, w):
    """One place of an array is read twice and overwritten in each round."""
    while_, i, n = loop(3)
    zero = number(0)
    memory = layers.array_write(x, zero)
    with while_.block():
        once, twice = layers.array_read(memory, zero), layers.array_read(memory, zero)
        layers.array_write(layers.elementwise_mul(layers.mul(once, w), layers.tanh(twice)), zero, memory)
        count(while_, i, n)
    return layers.array_read(memory, zero)


def places(x, y):
    """Several writes: place 0 is overwritten, place 1 is read twice, place 2 never."""
    zero, one, two = number(0), number(1), number(2)
    array = layers.array_write(x, zero)
    layers.array_write(layers.elementwise_mul(x, y), one, array)
    layers.array_write(layers.tanh(y), two, array)
    first = layers.array_read(array, zero)
    layers.array_write(layers.tanh(layers.array_read(array, one)), zero, array)
    again = layers.array_read(array, zero)
    return layers.elementwise_mul(layers.elementwise_mul(first, again), layers.array_read(array, one))


def counted_places(x, y):
    """The counter goes on in place after each write."""
    i = number(0)
    array = layers.array_write(layers.tanh(x), i)
    layers.increment(i)
    layers.array_write(layers.elementwise_mul(x, y), i, array)
    layers.increment(i)
    layers.array_write(y, i, array)
    return layers.tensor_array_to_tensor(array, axis=1)[0]


def overwritten_by_constant(x, y):
    """What a constant overwrites has no gradient from there on."""
    zero = number(0)
    h = layers.tanh(x)
    first = layers.elementwise_mul(h, y)
    array = layers.array_write(first, zero)
    seen = layers.array_read(array, zero)
    layers.array_write(layers.fill_constant([2, 3], "float64", 2.0), zero, array)
    return layers.elementwise_mul(seen, layers.array_read(array, zero))


def counted_by_inner(x, w):
    """The inner loop counts on a counter of the outer one, which is the place in an array."""
    outer, i, n = loop(2)
    place = number(0)
    steps = layers.array_write(x, place)
    with outer.block():
        j, m = number(0), number(2)
        inner = layers.While(layers.less_than(j, m))
        with inner.block():
            h = layers.tanh(layers.mul(layers.array_read(steps, place), w))
            layers.increment(place)
            layers.array_write(h, place, steps)
            count(inner, j, m)
        h = layers.scale(layers.array_read(steps, place), 1.5)
        layers.increment(place)
        layers.array_write(h, place, steps)
        count(outer, i, n)
    return layers.tensor_array_to_tensor(steps)[0]


def read_in_many_ways(x, y):
    """As a whole and by place, in turn."""
    zero = number(0)
    array = layers.array_write(layers.tanh(x), zero)
    parts = [layers.tensor_array_to_tensor(array)[0], layers.array_read(array, zero)]
    parts += [layers.tensor_array_to_tensor(array)[0], layers.array_read(array, zero)]
    out = y
    for part in parts:
        out = layers.elementwise_mul(out, part)
    return out


def array_in_branch(taken):
    def in_branch(x, y):
        """A branch overwrites a place with what it read there; another place is not touched."""
        zero, one = number(0), number(1)
        array = layers.array_write(layers.tanh(x), zero)
        layers.array_write(layers.scale(x, 2.0), one, array)
        with layers.ConditionalBlock(layers.less_than(number(0 if taken else 2), one)).block():
            layers.array_write(layers.elementwise_mul(layers.array_read(array, zero), y), zero, array)
        return layers.tensor_array_to_tensor(array)[0]

    in_branch.__name__ = f"array_in_branch_{'taken' if taken else 'not_taken'}"
    return in_branch


def counted_in_branch(x, y):
    """In two rounds of three a branch counts on, which is the place in an array."""
    place = number(0)
    array = layers.array_write(x, place)
    while_, i, n = loop(3)
    with while_.block():
        with layers.ConditionalBlock(layers.less_than(i, number(2))).block():
            h = layers.tanh(layers.elementwise_mul(layers.array_read(array, place), y))
            layers.increment(place)
            layers.array_write(h, place, array)
        count(while_, i, n)
    return layers.tensor_array_to_tensor(array)[0]


def dynamic_rnn(sequences, w):
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(sequences)
        before = rnn.memory(shape=[3], dtype="float64", value=0.1)
        hidden = layers.tanh(layers.elementwise_add(layers.mul(word, w), before))
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    return rnn()


def shrinking_rnn(sequences, w):
    """The states in an array, as Fluid's DynamicRNN keeps them."""
    table = layers.lod_rank_table(sequences)
    words, n, i = layers.lod_tensor_to_array(sequences, table), layers.max_sequence_len(table), number(0)
    start = layers.array_read(words, i)
    states, outputs = layers.array_write(layers.scale(start, 0.5), i), layers.create_array("float64")
    while_ = layers.While(layers.less_than(i, n))
    with while_.block():
        word = layers.array_read(words, i)
        before = layers.shrink_memory(layers.array_read(states, i), i, table)
        hidden = layers.tanh(layers.elementwise_add(layers.mul(word, w), before))
        layers.array_write(hidden, i, outputs)
        layers.increment(i)
        layers.array_write(hidden, i, states)
        layers.less_than(i, n, cond=while_.cond)
    return layers.array_to_lod_tensor(outputs, table)


def dynamic_rnn_with_static_input(sequences, rows):
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, static = rnn.step_input(sequences), rnn.static_input(rows)
        before = rnn.memory(init=rows, need_reorder=True)
        hidden = layers.tanh(layers.elementwise_add(layers.elementwise_mul(word, static), before))
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    return rnn()


PAIR, RNN, SEQ = {"x": A, "y": B}, {"x": A, "w": W}, {"sequences": SEQUENCES, "w": W}
PROGRAMS = [
    *((f, RNN) for f in (array_of_steps(0), array_of_steps(4), same_place, counted_by_inner)),
    *((f, PAIR) for f in (places, counted_places, overwritten_by_constant, read_in_many_ways)),
    *((f, PAIR) for f in (array_in_branch(True), array_in_branch(False), counted_in_branch)),
    *((f, SEQ) for f in (dynamic_rnn, shrinking_rnn)),
    (dynamic_rnn_with_static_input, {"sequences": SEQUENCES, "rows": W}),
]


@pytest.mark.parametrize("prepared", [True, False])
@pytest.mark.parametrize("function, values", [pytest.param(f, v, id=f.__name__) for f, v in PROGRAMS])
def test_gradient_is_the_slope(differentiated, function, values, prepared):
    differentiated(function, values).check(prepared)
