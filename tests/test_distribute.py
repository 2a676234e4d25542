"""parallel.distribute: static programs over 2 and 4 ranks train as on one, for layouts of every kind."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from oprack import Executor, Program, Scope, layers, optimizer, parallel, program_guard
from oprack.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from oprack.layers import unique_name
from oprack.testing.worlds import ThreadWorld
from oprack.types import VarType

STEPS, ROWS = 4, 8
RNG = np.random.default_rng(0)
DATA = {"x": "S(0)", "y": "S(0)"}
DATA_OF_TWO = {name: ["S(0)", "B"] for name in DATA}
Built = tuple[Program, Program, str, dict[str, np.ndarray]]


def finished(main: Program, startup: Program, loss: Any, update: Any, feed: dict[str, np.ndarray]) -> Built:
    update.minimize(loss)
    return main, startup, loss.name, feed


def mlp(update: Any = None) -> Built:
    """Three layers with clipping by the norm of all gradients, and Adam."""
    main, startup = Program(), Program()
    with program_guard(main, startup), unique_name.guard():
        x, y = layers.data("x", [-1, 8]), layers.data("y", [-1, 1], dtype="int64")
        hidden = layers.fc(x, 16, act="relu", name="a")
        hidden = layers.fc(hidden, 12, act="tanh", name="b")
        scores = layers.fc(hidden, 4, name="c")
        loss = layers.mean(layers.softmax_with_cross_entropy(scores, y))
        feed = {"x": RNG.standard_normal((ROWS, 8)).astype("float32"), "y": RNG.integers(0, 4, (ROWS, 1))}
        clip = optimizer.ClipGradByGlobalNorm(0.1)
        return finished(main, startup, loss, update or optimizer.Adam(0.05, grad_clip=clip), feed)


def lenet() -> Built:
    main, startup = Program(), Program()
    with program_guard(main, startup), unique_name.guard():
        x, y = layers.data("x", [-1, 1, 16, 16]), layers.data("y", [-1, 1], dtype="int64")
        image = layers.conv2d(x, 4, 3, padding=1, act="relu", name="first")
        image = layers.pool2d(image, 2, pool_type="max", pool_stride=2)
        image = layers.conv2d(image, 8, 3, act="relu", name="second")
        image = layers.pool2d(image, 2, pool_type="avg", pool_stride=2)
        hidden = layers.fc(image, 12, act="relu", name="third")
        loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(hidden, 10, name="last"), y))
        feed = {"x": RNG.standard_normal((ROWS, 1, 16, 16)).astype("float32"), "y": RNG.integers(0, 10, (ROWS, 1))}
        return finished(main, startup, loss, optimizer.Momentum(0.05, 0.9), feed)


def block_of_bert() -> Built:
    """Words, attention of four heads, two layers of each token, layer norms and scores of words."""
    main, startup = Program(), Program()
    with program_guard(main, startup), unique_name.guard():
        x, y = layers.data("x", [-1, 6], dtype="int64"), layers.data("y", [-1, 6, 1], dtype="int64")
        tokens = layers.embedding(x, size=[20, 16], param_attr="words")

        def heads(name: str) -> Any:
            made = layers.fc(tokens, 16, num_flatten_dims=2, name=name)
            return layers.transpose(layers.reshape(made, [0, 0, 4, 4]), [0, 2, 1, 3])

        weights = layers.softmax(layers.scale(layers.matmul(heads("q"), heads("k"), transpose_y=True), 0.5))
        seen = layers.transpose(layers.matmul(weights, heads("v")), [0, 2, 1, 3])
        seen = layers.fc(layers.reshape(seen, [0, 0, 16]), 16, num_flatten_dims=2, name="out")
        tokens = layers.layer_norm(layers.elementwise_add(tokens, seen), begin_norm_axis=2, name="norm")
        inner = layers.fc(tokens, 32, num_flatten_dims=2, act="gelu", name="up")
        inner = layers.fc(inner, 16, num_flatten_dims=2, name="down")
        tokens = layers.layer_norm(layers.elementwise_add(tokens, inner), begin_norm_axis=2, name="norm_2")
        scores = layers.fc(tokens, 20, num_flatten_dims=2, name="scores")
        loss = layers.mean(layers.softmax_with_cross_entropy(scores, y))
        feed = {"x": RNG.integers(0, 20, (ROWS, 6)), "y": RNG.integers(0, 20, (ROWS, 6, 1))}
        return finished(main, startup, loss, optimizer.Adam(0.02), feed)


def normalised_image() -> Built:
    main, startup = Program(), Program()
    with program_guard(main, startup), unique_name.guard():
        x, y = layers.data("x", [-1, 3, 6, 6]), layers.data("y", [-1, 1], dtype="int64")
        image = layers.batch_norm(layers.conv2d(x, 4, 3, bias_attr=False, name="first"), act="relu", name="norm")
        loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(image, 4, name="last"), y))
        feed = {"x": RNG.standard_normal((ROWS, 3, 6, 6)).astype("float32"), "y": RNG.integers(0, 4, (ROWS, 1))}
        return finished(main, startup, loss, optimizer.Momentum(0.05, 0.9), feed)


COLUMNS = {f"{name}.w_0": "S(1)" for name in ("q", "k", "v", "up")} | {
    f"{name}.b_0": "S(0)" for name in ("q", "k", "v", "up")
}
TENSOR = COLUMNS | {"out.w_0": "S(0)", "down.w_0": "S(0)"}

WORDS = {"words": "S(0)", "scores.w_0": "S(1)", "scores.b_0": "S(0)"}


def over_the_second_axis(layouts: dict[str, str]) -> dict[str, list[str]]:
    return {name: ["B", sbp] for name, sbp in layouts.items()}


def trained(main: Program, startup: Program, loss: str, feed: dict[str, np.ndarray], seed: int) -> list[float]:
    scope, executor = Scope(), Executor(seed=seed)
    executor.run(startup, scope=scope)
    return [executor.run(main, feed=feed, fetch_list=[loss], scope=scope)[0].item() for _ in range(STEPS)]


def losses(
    built: Built, shape: tuple[int, ...], layouts: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray, Counter[str]]:
    """Losses of one rank, those of each rank of a grid, and how many ops of each type the first of them has."""
    main, startup, loss, feed = built
    whole = trained(main, startup, loss, feed, 7)

    def rank(world: Any) -> tuple[list[float], Counter[str]]:
        grid = parallel.placement("cpu", shape=shape)
        found = parallel.distribute(main, startup, grid, layouts)
        named = {n: grid.layout(layouts.get(n, ["B"] * len(shape))) for n in feed}
        parts = {n: v[named[n].part(v.shape)] for n, v in feed.items()}
        # Other seeds: the values of the first rank count.
        got = trained(found.main, found.startup, loss, parts, 7 + world.rank)
        return got, Counter(op.type for op in found.main.global_block().ops)

    made = ThreadWorld(int(np.prod(shape))).run(rank)
    assert whole[0] - whole[-1] > 1e-3
    return np.array(whole), np.array([got for got, _ in made]), made[0][1]


@pytest.mark.parametrize(
    ("shape", "layouts", "messages"),
    [
        # A sum for each gradient and the loss.
        ((2,), DATA, {"c_allreduce_sum": 7}),
        ((4,), DATA, {"c_allreduce_sum": 7}),
        # One for the two layers, one for the norm that clips.
        ((2,), {"a.w_0": "S(1)", "a.b_0": "S(0)", "b.w_0": "S(0)"}, {"c_allreduce_sum": 2}),
        (
            (2, 2),
            DATA_OF_TWO | over_the_second_axis({"a.w_0": "S(1)", "a.b_0": "S(0)", "b.w_0": "S(0)"}),
            {"c_allreduce_sum": 9},
        ),
        # Parameters in parts are gathered where they are used, and their gradients summed part by part.
        (
            (2,),
            DATA | {"*.w_0": "S(0)"},
            {"c_allgather": 3, "c_reducescatter": 3, "c_allreduce_sum": 5},
        ),
    ],
)
def test_layers_with_clipping_and_adam(shape: tuple[int, ...], layouts: Any, messages: dict[str, int]) -> None:
    whole, found, ops = losses(mlp(), shape, layouts)
    np.testing.assert_allclose(found, np.tile(whole, (len(found), 1)), atol=1e-5)
    assert {t: n for t, n in ops.items() if t.startswith("c_")} == messages


def test_updates_that_need_the_norm_of_a_parameter_gather_it() -> None:
    layouts = {"a.w_0": "S(1)", "a.b_0": "S(0)", "b.w_0": "S(0)"}
    whole, found, ops = losses(mlp(optimizer.Lamb(0.05)), (2,), layouts)
    np.testing.assert_allclose(found, np.tile(whole, (len(found), 1)), atol=1e-5)
    assert ops["c_allgather"] > 0


@pytest.mark.parametrize(
    ("shape", "layouts"),
    [
        ((2,), DATA),
        ((2,), {"first.w_0": "S(0)", "first.b_0": "S(0)", "third.w_0": "S(1)", "third.b_0": "S(0)"}),
        ((2, 2), DATA_OF_TWO | over_the_second_axis({"second.w_0": "S(0)", "second.b_0": "S(0)"})),
    ],
)
def test_images(shape: tuple[int, ...], layouts: Any) -> None:
    whole, found, _ = losses(lenet(), shape, layouts)
    np.testing.assert_allclose(found, np.tile(whole, (len(found), 1)), atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "layouts"),
    [
        ((4,), DATA),
        ((2,), TENSOR),
        ((2, 2), DATA_OF_TWO | over_the_second_axis(TENSOR)),
        # Words split as well: rows of the table, and the scores of each.
        ((2,), TENSOR | WORDS),
        ((2, 2), DATA_OF_TWO | over_the_second_axis(TENSOR | WORDS)),
    ],
)
def test_attention(shape: tuple[int, ...], layouts: Any) -> None:
    whole, found, ops = losses(block_of_bert(), shape, layouts)
    np.testing.assert_allclose(found, np.tile(whole, (len(found), 1)), atol=1e-5)
    if layouts is TENSOR:
        # One sum behind attention and one behind the two layers, and one for the gradient of what each reads.
        assert ops["c_allreduce_sum"] == 4
    if "words" in layouts:
        for op in ("c_embedding", "c_embedding_grad", "c_softmax_with_cross_entropy"):
            assert ops[op] == 1
        assert ops["c_allgather"] == 0


def test_what_does_not_fit_is_refused() -> None:
    main, startup, *_ = mlp()

    def rank(world: Any) -> list[str]:
        grid, said = parallel.placement("cpu"), []
        for error, layouts in (
            (NotFoundError, {"d.w_0": "S(0)"}),
            (InvalidArgumentError, {"c.w_0": "S(1)"}),
            (InvalidArgumentError, {"c.b_0": "S(1)"}),
            (UnimplementedError, {"c.b_0": "P"}),
        ):
            with pytest.raises(error) as raised:
                parallel.distribute(main, startup, grid, layouts)
            said.append(str(raised.value))
        return said

    unknown, uneven, too_far, partial = ThreadWorld(3).run(rank)[0]
    assert "['d.w_0'] match no parameter and no feed; feeds are x, y" in unknown
    assert "'c.w_0' of shape [12, 4]" in uneven and "a dim 1 that 3 ranks can share in equal parts" in uneven
    assert "splits dim 1 of a tensor of shape [4], which has 1 dims" in too_far
    assert "expected splits and broadcasts" in partial


@pytest.mark.parametrize(
    ("shape", "layouts"),
    [((2,), DATA), ((2, 2), DATA_OF_TWO | over_the_second_axis({"first.w_0": "S(0)", "norm.*": "S(0)"}))],
)
def test_batch_norm_has_the_statistics_of_all_rows(shape: tuple[int, ...], layouts: Any) -> None:
    whole, found, ops = losses(normalised_image(), shape, layouts)
    np.testing.assert_allclose(found, np.tile(whole, (len(found), 1)), atol=1e-5)
    assert ops["sync_batch_norm"] == ops["sync_batch_norm_grad"] == 1
    if len(shape) == 1:
        assert ops["c_allgather"] == 0


def test_parts_drop_different_elements_and_copies_the_same() -> None:
    main, startup = Program(), Program()
    with program_guard(main, startup), unique_name.guard():
        x, z = layers.data("x", [-1, 64]), layers.data("z", [-1, 64])
        layers.dropout(x, 0.5, name="rows"), layers.dropout(z, 0.5, name="copies")
    kept = [op.output("Out")[0] for op in main.global_block().ops]

    def rank(world: Any) -> list[np.ndarray]:
        found = parallel.distribute(main, startup, parallel.placement(), {"x": "S(0)"})
        ones = np.ones((4, 64), "float32")
        return Executor(seed=3).run(found.main, feed={"x": ones, "z": ones}, fetch_list=kept, scope=Scope())

    first, second = ThreadWorld(2).run(rank)
    assert not np.array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])
    assert 0 < np.count_nonzero(first[1]) < first[1].size


def test_fetch_ops_take_the_whole() -> None:
    main, startup = Program(), Program()
    with program_guard(main, startup), unique_name.guard():
        y = layers.scale(layers.data("x", [-1, 3]), 2.0)
    block = main.global_block()
    block.create_var("fetch", type=VarType.FETCH_LIST, persistable=True)
    block.append_op("fetch", {"X": y.name}, {"Out": "fetch"}, {"col": 0})
    whole = RNG.standard_normal((4, 3)).astype("float32")

    def rank(world: Any) -> np.ndarray:
        found = parallel.distribute(main, startup, parallel.placement(), {"x": "S(0)"})
        feed = {"x": whole[2 * world.rank : 2 * world.rank + 2]}
        return Executor().run(found.main, feed=feed, scope=Scope())[0]

    for got in ThreadWorld(2).run(rank):
        np.testing.assert_array_equal(got, whole * 2)


def words_and_one_layer() -> Built:
    main, startup = Program(), Program()
    with program_guard(main, startup), unique_name.guard():
        x, y = layers.data("x", [-1, 3], dtype="int64"), layers.data("y", [-1, 1], dtype="int64")
        words = layers.embedding(x, size=[20, 6], is_sparse=True, param_attr="words", padding_idx=1)
        scores = layers.fc(layers.reduce_sum(words, dim=1), 4, name="c")
        loss = layers.mean(layers.softmax_with_cross_entropy(scores, y))
        feed = {"x": RNG.integers(0, 20, (ROWS, 3)), "y": RNG.integers(0, 4, (ROWS, 1))}
        return finished(main, startup, loss, optimizer.Adam(0.1, lazy_mode=True), feed)


@pytest.mark.parametrize(
    ("shape", "layouts"),
    [((2,), DATA), ((2,), {"words": "S(0)"}), ((2, 2), DATA_OF_TWO | {"words": ["B", "S(0)"]})],
)
def test_sparse_gradients(shape: tuple[int, ...], layouts: Any) -> None:
    whole, found, ops = losses(words_and_one_layer(), shape, layouts)
    np.testing.assert_allclose(found, np.tile(whole, (len(found), 1)), atol=1e-5)
    assert ops["c_allgather"] == ops["c_reducescatter"] == 0


def test_sparse_gradients_of_columns_are_refused() -> None:
    main, startup, *_ = words_and_one_layer()

    def rank(world: Any) -> None:
        parallel.distribute(main, startup, parallel.placement("cpu"), DATA | {"words": "S(1)"})

    with pytest.raises(UnimplementedError, match="give embeddings is_sparse=False"):
        ThreadWorld(2).run(rank)


def test_one_rank_needs_no_layouts() -> None:
    main, startup, loss, feed = mlp()
    grid = parallel.placement("cpu")
    found = parallel.distribute(main, startup, grid)
    assert trained(found.main, found.startup, loss, feed, 1) == trained(main, startup, loss, feed, 1)


def test_state_is_taken_from_one_grid_to_another() -> None:
    """Some steps on one rank, some on a grid of two axes, some on one rank again: as all on one."""
    main, startup, loss, feed = mlp()
    layouts = over_the_second_axis({"a.w_0": "S(1)", "a.b_0": "S(0)", "b.w_0": "S(0)"}) | {"c.w_0": ["S(0)", "S(1)"]}

    def steps(program: Program, scope: Scope) -> list[float]:
        run = Executor().run
        return [run(program, feed=feed, fetch_list=[loss], scope=scope)[0].item() for _ in range(2)]

    scope = Scope()
    Executor(seed=7).run(startup, scope=scope)
    names = [v.name for v in main.global_block().vars.values() if v.persistable]
    found = steps(main, scope)
    state = {n: scope.get_var(n).get().array.copy() for n in names}

    def rank(world: Any) -> tuple[list[float], dict[str, np.ndarray], tuple[int, ...]]:
        mine = parallel.distribute(main, startup, parallel.placement(shape=(2, 2)), layouts)
        own = Scope()
        mine.set_state(own, state)
        with pytest.raises(InvalidArgumentError, match=r"'c.w_0' has shape \[4, 12\]; expected \[12, 4\]"):
            mine.set_state(own, {"c.w_0": state["c.w_0"].T})
        got = steps(mine.main, own)
        return got, mine.state(own), own.get_var("c.w_0").get().array.shape

    got, after, part = ThreadWorld(4).run(rank)[-1]
    assert part == (6, 2)
    for name, value in after.items():
        scope.get_var(name).set(value)
    found += got + steps(main, scope)
    whole = Scope()
    Executor(seed=7).run(startup, scope=whole)
    want = [step for _ in range(3) for step in steps(main, whole)]
    np.testing.assert_allclose(found, want, atol=1e-5)
