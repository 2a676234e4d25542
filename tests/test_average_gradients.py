"""parallel.average_gradients: programs with sequences and loops on ranks that have data of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oprack import Executor, Program, Scope, layers, optimizer, parallel, program_guard, unique_name
from oprack.errors import InvalidArgumentError
from oprack.testing.worlds import ThreadWorld

STEPS = 3
RNG = np.random.default_rng(0)
LENGTHS = [3, 1, 4, 2]


def sequences() -> tuple[Program, Program, str]:
    """Words of a table with sparse gradients, a window over each sequence, its sum, and a loop over three rounds."""
    main, startup = Program(), Program()
    with program_guard(main, startup), unique_name.guard():
        words = layers.data("words", [-1, 1], dtype="int64", lod_level=1)
        label = layers.data("label", [-1, 1], dtype="int64")
        vectors = layers.embedding(words, size=[15, 6], is_sparse=True, param_attr="table")
        seen = layers.sequence_conv(vectors, 8, filter_size=3, act="tanh")
        state = layers.sequence_pool(seen, "sum")
        i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
        going = layers.less_than(i, n)
        loop = layers.While(going)
        with loop.block():
            layers.assign(layers.fc(state, 8, act="tanh", param_attr="round.w", bias_attr=False), state)
            layers.increment(i, in_place=True)
            layers.less_than(i, n, cond=going)
        loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(state, 4), label))
        optimizer.Adam(0.1, grad_clip=optimizer.ClipGradByGlobalNorm(0.5)).minimize(loss)
    return main, startup, loss.name


def feed(rows: slice) -> dict[str, Any]:
    ends = np.cumsum([0, *LENGTHS])
    ids = np.arange(10).reshape(-1, 1) % 7
    first, stop = ends[rows.start], ends[rows.stop]
    lengths = LENGTHS[rows]
    return {
        "words": (ids[first:stop].astype("int64"), [[0, *np.cumsum(lengths).tolist()]]),
        "label": np.array([[0], [3], [1], [2]])[rows],
    }


def trained(main: Program, startup: Program, loss: str, given: dict[str, Any], seed: int) -> tuple[list[float], Scope]:
    scope, executor = Scope(), Executor(seed=seed)
    executor.run(startup, scope=scope)
    return [executor.run(main, feed=given, fetch_list=[loss], scope=scope)[0].item() for _ in range(STEPS)], scope


def test_sequences_in_a_loop_train_as_on_one_rank() -> None:
    main, startup, loss = sequences()
    whole, scope = trained(main, startup, loss, feed(slice(0, 4)), 5)

    def rank(world: Any) -> tuple[list[float], dict[str, np.ndarray]]:
        found = parallel.average_gradients(main, startup, parallel.placement())
        rows = slice(2 * world.rank, 2 * world.rank + 2)
        got, own = trained(found.main, found.startup, loss, feed(rows), 5 + world.rank)
        return got, found.state(own)

    (first, state), (second, other) = ThreadWorld(2).run(rank)
    np.testing.assert_allclose((np.array(first) + second) / 2, whole, atol=1e-5)
    assert whole[0] - whole[-1] > 1e-2
    for name, value in state.items():
        np.testing.assert_array_equal(value, other[name])
        np.testing.assert_allclose(value, scope.get_var(name).get().array, atol=1e-5)
    assert "table" in state and "round.w" in state


def test_a_program_without_gradients_is_refused() -> None:
    main, startup = Program(), Program()
    with program_guard(main, startup), unique_name.guard():
        layers.fc(layers.data("x", [-1, 2]), 2)
    with pytest.raises(InvalidArgumentError, match="no op of the backward pass writes the gradient of a parameter"):
        parallel.average_gradients(main, startup, parallel.placement())
