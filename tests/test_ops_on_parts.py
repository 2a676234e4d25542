"""Ops that other ops compute on parts: nothing is gathered, and numbers are those of one rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oprack import functional as F
from oprack import nn, optimizer, parallel, to_tensor
from oprack.errors import InvalidArgumentError
from oprack.testing.worlds import ThreadWorld

RNG = np.random.default_rng(0)


def collectives(world: Any) -> list[str]:
    """Of calls: not what tells ranks facts, nor what gives modules the values of rank 0."""
    names = [line.split(": ")[1].split(" ")[0] for line in world.record]
    return [name for name in names if name not in ("gather_facts", "broadcast")]


def test_words_split_over_ranks() -> None:
    """A table by rows, and scores by words: one sum for the look-up, one maximum and one sum for the loss."""
    table = RNG.standard_normal((1200, 64)).astype("float32")
    weight = RNG.standard_normal((64, 1200)).astype("float32") * np.float32(0.1)
    ids, labels = RNG.integers(0, 1200, (2, 3)), RNG.integers(0, 1200, (2, 3, 1))

    def loss(a: Any, b: Any, x: Any, y: Any) -> Any:
        return F.softmax_with_cross_entropy(F.matmul_v2(F.lookup_table_v2(x, a), b), y).loss.mean()

    a, b = to_tensor(table, requires_grad=True), to_tensor(weight, requires_grad=True)
    whole = loss(a, b, to_tensor(ids), to_tensor(labels))
    whole.backward()

    def rank(world: Any) -> Any:
        parallel.strict()
        grid = parallel.placement()
        rows = to_tensor(table).to_global(grid, "S(0)", from_whole=True)
        columns = to_tensor(weight).to_global(grid, "S(1)", from_whole=True)
        rows.requires_grad = columns.requires_grad = True
        x, y = (to_tensor(v).to_global(grid, "B", from_whole=True) for v in (ids, labels))
        found = loss(rows, columns, x, y)
        found.backward()
        ran = collectives(world)
        return found.numpy(), rows.grad.numpy(), columns.grad.numpy(), ran

    try:
        for found, rows, columns, ran in ThreadWorld(3).run(rank):
            np.testing.assert_allclose(found, whole.numpy(), rtol=1e-5)
            np.testing.assert_allclose(rows, a.grad.numpy(), atol=1e-6)
            np.testing.assert_allclose(columns, b.grad.numpy(), atol=1e-6)
            # Forward: the look-up, the largest score, the sums. Backward: what the scores say of the words' vectors.
            assert ran == ["all_reduce_sum", "all_reduce_max", "all_reduce_sum", "all_reduce_sum"]
    finally:
        parallel.strict(False)


def test_the_gradient_of_a_split_table_is_sparse_where_it_is_asked_for() -> None:
    """Rows of a table over one axis, rows of the batch over the other; a row of padding."""
    table = RNG.standard_normal((10, 4))
    ids, flow = RNG.integers(0, 10, (4, 3)), RNG.standard_normal((4, 3, 4))
    ids[0] = [2, 2, 9]
    want = table.copy()
    np.add.at(want, ids, -0.5 * flow)  # as Paddle, sparse gradients of whole tables have the row of padding

    def rank(world: Any) -> Any:
        parallel.strict()
        grid = parallel.placement(shape=(2, 2))
        rows = to_tensor(table).to_global(grid, ["B", "S(0)"], from_whole=True)
        rows.requires_grad = True
        x = to_tensor(ids).to_global(grid, ["S(0)", "B"], from_whole=True)
        weights = to_tensor(flow).to_global(grid, ["S(0)", "B"], from_whole=True)
        (F.lookup_table_v2(x, rows, is_sparse=True, padding_idx=2) * weights).sum().backward()
        sparse, height = rows.grad.is_sparse, rows.grad._value.height
        optimizer.SGD(0.5, parameter_list=[rows]).step()
        return sparse, height, rows.numpy(), collectives(world)

    try:
        for sparse, height, found, ran in ThreadWorld(4).run(rank):
            assert sparse and height == 5
            np.testing.assert_allclose(found, want, atol=1e-12)
            assert "reduce_scatter" not in ran
    finally:
        parallel.strict(False)


def test_an_id_that_no_part_of_a_table_has_is_refused() -> None:
    def rank(world: Any) -> None:
        grid = parallel.placement()
        rows = to_tensor(np.ones((40, 8))).to_global(grid, "S(0)", from_whole=True)
        F.lookup_table_v2(to_tensor(np.array([40])).to_global(grid, "B", from_whole=True), rows)

    with pytest.raises(InvalidArgumentError, match="Ids holds 40; expected 0 <= id < 40"):
        ThreadWorld(2).run(rank)


def test_batch_norm_of_a_split_batch_has_the_statistics_of_all_rows() -> None:
    image = RNG.standard_normal((6, 3, 4, 4)).astype("float32") * 3 + 1
    net = nn.BatchNorm2D(3)
    x = to_tensor(image, requires_grad=True)
    want = net(x)
    (want * want * want).sum().backward()

    def rank(world: Any) -> Any:
        parallel.strict()
        grid = parallel.placement()
        norm = parallel.to_global(nn.BatchNorm2D(3), grid)
        part = to_tensor(image).to_global(grid, "S(0)", from_whole=True)
        part.requires_grad = True
        got = norm(part)
        (got * got * got).sum().backward()
        ran = collectives(world)
        state = {n: t.numpy() for n, t in norm.named_buffers()}
        return got.numpy(), part.grad.numpy(), norm.weight.grad.numpy(), state, ran

    try:
        for got, gradient, weight, state, ran in ThreadWorld(2).run(rank):
            np.testing.assert_allclose(got, want.numpy(), atol=1e-5)
            np.testing.assert_allclose(gradient, x.grad.numpy(), atol=2e-3)
            np.testing.assert_allclose(weight, net.weight.grad.numpy(), rtol=1e-4)
            for name, buffer in net.named_buffers():
                np.testing.assert_allclose(state[name], buffer.numpy(), rtol=1e-5)
            # mean, variance, the means of the gradient, and the gradients of the parameters in one bucket
            assert "all_gather" not in ran and ran.count("all_reduce_sum") == 4
    finally:
        parallel.strict(False)


def test_a_write_in_place_keeps_the_layout() -> None:
    values = RNG.standard_normal((4, 6)).astype("float32")

    def rank(world: Any) -> Any:
        grid = parallel.placement()
        x = to_tensor(values).to_global(grid, "S(1)", from_whole=True)
        y = F.relu(x, in_place=True)
        summed = to_tensor(values).to_global(grid, "P", from_whole=True)
        F.relu(summed, in_place=True)
        return y is x, x.layout.sbps, x.numpy(), summed.layout.sbps, summed.numpy()

    for same, layout, found, partial, added in ThreadWorld(2).run(rank):
        assert same and layout == (parallel.split(1),) and partial == (parallel.partial_sum,)
        np.testing.assert_array_equal(found, np.maximum(values, 0))
        np.testing.assert_array_equal(added, np.maximum(values, 0))


def test_means_of_integers_and_broadcast_operands() -> None:
    """A mean of integers is rounded once; what is broadcast along a split dim is split with it."""
    whole, row = RNG.integers(0, 9, (4, 6)), RNG.standard_normal(6)
    column = RNG.standard_normal((6, 1)) + 3

    def rank(world: Any) -> Any:
        grid = parallel.placement()
        x = to_tensor(whole).to_global(grid, "S(0)", from_whole=True)
        y = to_tensor(row).to_global(grid, "S(0)", from_whole=True)
        z = to_tensor(whole.astype("float64")).to_global(grid, "S(1)", from_whole=True)
        cube = to_tensor(whole.astype("float64").reshape(2, 2, 6)).to_global(grid, "S(2)", from_whole=True)
        w = to_tensor(column).to_global(grid, "B", from_whole=True)
        quotient = F.elementwise_div(cube, w, axis=2)
        return F.reduce_mean(x, reduce_all=True).numpy(), F.atan2(z, y).numpy(), quotient.numpy().reshape(4, 6)

    for mean, angle, quotient in ThreadWorld(2).run(rank):
        assert mean == F.reduce_mean(to_tensor(whole), reduce_all=True).item()
        np.testing.assert_allclose(angle, np.arctan2(whole, row))
        np.testing.assert_allclose(quotient, whole / column[:, 0])
