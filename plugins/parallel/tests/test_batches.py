"""Which examples ranks have, seeds, and data that end at different times; on ranks that are threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
import pytest
from oprack import io, nn, optimizer, parallel
from oprack.eager_tensor.devices import RANDOM
from oprack.errors import InvalidArgumentError
from oprack.parallel.simulated import FakeWorld
from oprack.testing.worlds import ThreadWorld


@pytest.mark.parametrize(
    ("size", "ends", "want"),
    [
        (7, "repeat", [[0, 3, 6], [1, 4, 0], [2, 5, 0]]),
        (7, "drop", [[0, 3], [1, 4], [2, 5]]),
        (7, "uneven", [[0, 3, 6], [1, 4], [2, 5]]),
        (6, "repeat", [[0, 3], [1, 4], [2, 5]]),
        (2, "repeat", [[0], [1], [0]]),
        (2, "uneven", [[0], [1], []]),
        (0, "repeat", [[], [], []]),
    ],
)
def test_examples_are_dealt_out(size, ends, want):
    def rank(world: parallel.Communicator) -> Any:
        sampler = parallel.RankSampler(size, ends=ends)
        assert len(sampler) == len(list(sampler))
        return list(sampler)

    assert ThreadWorld(3).run(rank) == want


def test_a_random_order_is_that_of_the_first_rank():
    def rank(world: parallel.Communicator) -> Any:
        loader = io.DataLoader(np.arange(20), 2, sampler=parallel.RankSampler(20, shuffle=True, ends="uneven"))
        return [[x for batch in loader for x in batch.numpy().tolist()] for _ in range(2)]

    oprack.seed(3)
    first = ThreadWorld(3).run(rank)
    for loop in range(2):
        assert sorted(x for found in first for x in found[loop]) == list(range(20))
    assert first[0][0] != first[0][1]
    with pytest.raises(InvalidArgumentError, match="ends is 'pad'; expected one of repeat, drop, uneven"):
        parallel.RankSampler(3, ends="pad")  # type: ignore[arg-type]


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_of_sequences_have_as_many_tokens_on_each_rank(ranks, shuffle):
    lengths = np.random.default_rng(0).integers(0, 60, 203)

    def rank(world: parallel.Communicator) -> Any:
        return list(parallel.RankTokenBatchSampler(lengths, 256, shuffle))

    found = ThreadWorld(ranks).run(rank)
    assert len({len(batches) for batches in found}) == 1
    assert sorted(k for batches in found for batch in batches for k in batch) == list(range(203))
    for step in zip(*found, strict=True):
        tokens = [int(lengths[batch].sum()) for batch in step]
        assert all(step)
        assert max(tokens) - min(tokens) <= 60
        assert sum(tokens) <= 256 * ranks + 60 * ranks  # with what is too little for a step of its own


def test_few_examples_and_a_last_step():
    def rank(world: parallel.Communicator) -> Any:
        a = list(parallel.RankTokenBatchSampler([5, 1, 4, 2, 9], 6))
        b = list(parallel.RankTokenBatchSampler([5, 1, 4, 2, 9], 6, drop_last=True))
        assert len(parallel.RankTokenBatchSampler([5, 1, 4, 2, 9], 6)) == len(a)
        return a, b

    # 5, 1, 4 and 2 make a step; 9 alone would leave a rank without, and goes with them
    assert ThreadWorld(2).run(rank) == [([[3, 4]], [[0, 1]]), ([[0, 1, 2]], [[2, 3]])]
    with pytest.raises(InvalidArgumentError, match="1 examples for 2 ranks"):
        ThreadWorld(2).run(lambda world: parallel.RankTokenBatchSampler([3], 6))


def test_ranks_draw_numbers_of_their_own_or_the_same():
    def drawn(rank: int, own: bool) -> list[int]:
        def function(world: Any) -> list[int]:
            parallel.seed(7, own)
            return RANDOM.generator("an op").integers(2**40, size=3).tolist()

        return FakeWorld(3).run(function, rank).result

    oprack.seed(7)
    alone = RANDOM.generator("an op").integers(2**40, size=3).tolist()
    own = [drawn(r, True) for r in range(3)]
    assert own[0] == alone
    assert len({tuple(x) for x in own}) == 3
    assert [drawn(r, True) for r in range(3)] == own
    assert [drawn(r, False) for r in range(3)] == [alone] * 3


@pytest.mark.parametrize("zero", [False, True])
def test_training_goes_on_until_the_last_rank_has_no_data(zero):
    """As one rank on all rows, where ranks have 3, 1 and 2 batches of 4, 2 and 3 rows."""
    rng = np.random.default_rng(1)
    rows = [
        [rng.standard_normal((n, 3)).astype("float32") for _ in range(count)] for n, count in ((4, 3), (2, 1), (3, 2))
    ]
    start = rng.standard_normal((3, 1)).astype("float32")

    def made() -> Any:
        net = nn.Linear(3, 1, bias_attr=False)
        net.weight.set_value(start)
        return net, optimizer.Momentum(0.1, 0.9, parameters=net.parameters())

    def rank(world: parallel.Communicator) -> Any:
        net, steps = made()
        if zero:
            steps = averaging = parallel.Zero(steps, stage=2)
        else:
            averaging = parallel.DataParallel(net)
        for x in parallel.even_batches(rows[world.rank], until="last"):
            weight = parallel.rank_weight(0 if x is None else len(x))
            if x is None:
                averaging.average_gradients()
            else:
                (net(oprack.to_tensor(x)).square().mean() * weight).backward()
            steps.step()
            steps.clear_grad()
        return net.weight.numpy()

    net, steps = made()
    for k in range(3):
        x = np.concatenate([batches[k] for batches in rows if len(batches) > k])
        net(oprack.to_tensor(x)).square().mean().backward()
        steps.step()
        steps.clear_grad()
    for found in ThreadWorld(3).run(rank):
        np.testing.assert_allclose(found, net.weight.numpy(), atol=1e-5)
