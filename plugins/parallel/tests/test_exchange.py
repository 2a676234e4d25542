"""Gradients that travel while backward goes on: what ranks get, whatever each of them used, and what they are told."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import nn, optimizer, parallel
from oprack.amp import GradScaler
from oprack.eager_tensor import new_tensor
from oprack.errors import CollectiveError
from oprack.testing.worlds import ThreadWorld

RNG = np.random.default_rng(5)
SIZES = [(8, 16), (16, 16), (16, 4)]
WEIGHTS = [RNG.standard_normal(s).astype("float32") * 0.3 for s in SIZES]
X = RNG.standard_normal((4, 6, 8)).astype("float32")  # of rank r: X[r]


class Net(nn.Module):
    """Three weights in a row, of which the second one may be left out or used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList([self.create_parameter(list(s)) for s in SIZES])
        for p, value in zip(self.weights, WEIGHTS, strict=True):
            p.set_value(value)

    def forward(self, x: Any, times: int = 1) -> Any:
        first, second, third = self.weights
        y = x @ first
        for _ in range(times):
            y = (y @ second).tanh()
        return (y @ third).square().mean()


def expected(times: list[int]) -> list[np.ndarray]:
    """Means over the ranks of the gradients of one process."""
    totals = [np.zeros(s, "float32") for s in SIZES]
    for r, n in enumerate(times):
        net = Net()
        net(oprack.to_tensor(X[r]), n).backward()
        for total, p in zip(totals, net.weights, strict=True):
            if p.grad is not None:
                total += p.grad.numpy() / len(times)
    return totals


def passes(world: parallel.Communicator, dp: Any, times: list[list[int]]) -> list[list[np.ndarray]]:
    """Gradients of passes in which ranks use the second weight so many times."""
    found = []
    for each in times:
        dp.clear_gradients()
        dp(oprack.to_tensor(X[world.rank]), each[world.rank]).backward()
        found.append(
            [np.zeros(s) if p.grad is None else p.grad.numpy() for s, p in zip(SIZES, dp.weights, strict=True)]
        )
    return found


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("megabytes", [1e-4, 4.0])
def test_ranks_may_use_other_parameters_in_each_pass(ranks, megabytes):
    """With buckets of one parameter each, and one for all; shared weights, and such as no rank uses for a while."""
    times = [[1] * ranks, [1] * ranks, [2, *[0] * (ranks - 1)], [0] * ranks, [2] * ranks, [0, *[1] * (ranks - 1)]]

    def rank(world: parallel.Communicator) -> Any:
        return passes(world, parallel.DataParallel(Net(), bucket_mb=megabytes), times)

    wanted = [expected(each) for each in times]
    for found in ThreadWorld(ranks).run(rank):
        for got, want in zip(found, wanted, strict=True):
            for a, b in zip(got, want, strict=True):
                np.testing.assert_allclose(a, b, atol=1e-6)


def test_buckets_are_sent_before_backward_ends_in_the_same_order_on_all_ranks():
    """The last weights first; a rank that is slow, or lacks a gradient, changes nothing in the order."""

    def rank(world: parallel.Communicator) -> Any:
        dp = parallel.DataParallel(Net(), bucket_mb=1e-4)
        under_way = []
        dp.weights[0].register_hook(lambda g: under_way.append(len(dp._means._sent)))
        passes(world, dp, [[1, 1], [1, 1], [1, 0]])
        sent = [line.split(": ")[1] for line in world.record if "all_reduce_sum" in line]
        return under_way, sent[3:]

    for r, (under_way, sent) in enumerate(ThreadWorld(2).run(rank)):
        assert under_way == [0, 2, 2 if r == 0 else 1]  # when the first weight's gradient comes
        assert sent == [f"all_reduce_sum float32[{n}], started" for n in (64, 256, 128)] * 2


def test_a_pass_that_fails_on_one_rank_is_told_to_the_others_and_training_can_go_on():
    def rank(world: parallel.Communicator) -> Any:
        dp = parallel.DataParallel(Net(), bucket_mb=1e-4)
        passes(world, dp, [[1, 1]])
        said = []

        def fail(gradient: Any) -> None:
            raise ZeroDivisionError("one too many")

        remove = dp.weights[0].register_hook(fail) if world.rank else lambda: None
        try:
            passes(world, dp, [[1, 1]])
        except (ZeroDivisionError, CollectiveError) as error:
            said.append(f"{type(error).__name__}: {error}")
        remove()
        return said, passes(world, dp, [[1, 1]])[0], not dp._means._ranks.under_way

    (first, mine, nothing), (second, its, _) = ThreadWorld(2).run(rank)
    assert second == ["ZeroDivisionError: one too many"]
    assert first[0].startswith("CollectiveError: DataParallel: the backward pass of another rank failed")
    assert nothing
    for a, b, want in zip(mine, its, expected([1, 1]), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, want, atol=1e-6)


def test_a_pass_inside_of_a_pass_adds_to_gradients_that_are_on_their_way():
    """As recomputation does: what comes to a parameter after its bucket was sent is averaged as well."""

    def rank(world: parallel.Communicator) -> Any:
        dp = parallel.DataParallel(Net(), bucket_mb=1e-4)
        passes(world, dp, [[1, 1]])
        dp.clear_gradients()
        x = oprack.to_tensor(X[world.rank])

        def inner(gradient: Any) -> None:
            with oprack.enable_grad():
                (dp.weights[2] * 3.0).sum().backward()

        remove = dp.weights[0].register_hook(inner)
        dp(x).backward()
        remove()
        return [p.grad.numpy() for p in dp.weights]

    want = expected([1, 1])
    want[2] = want[2] + 3.0
    for found in ThreadWorld(2).run(rank):
        for a, b in zip(found, want, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)


def test_parameters_that_were_frozen_for_a_while_are_averaged_again():
    def rank(world: parallel.Communicator) -> Any:
        dp = parallel.DataParallel(Net())
        for p in dp.weights:
            p.requires_grad = False
            p.requires_grad = True
        return passes(world, dp, [[1, 1], [1, 1]])

    for found in ThreadWorld(2).run(rank):
        for got in found:
            for a, b in zip(got, expected([1, 1]), strict=True):
                np.testing.assert_allclose(a, b, atol=1e-6)


def test_captured_steps_and_hooks_of_users_see_what_they_see_on_one_rank():
    def rank(world: parallel.Communicator) -> Any:
        dp, seen = parallel.DataParallel(Net(), bucket_mb=1e-4), []
        loss = oprack.jit(lambda x: dp(x))
        dp.weights[1].register_hook(lambda g: seen.append(g.numpy().copy()) or g * 2.0)
        for _ in range(3):
            dp.clear_gradients()
            loss(oprack.to_tensor(X[world.rank])).backward()
        return [p.grad.numpy() for p in dp.weights], seen

    want = expected([1, 1])
    own = [expected([1])[1], None]
    for r, (found, seen) in enumerate(ThreadWorld(2).run(rank)):
        for k, (a, b) in enumerate(zip(found, want, strict=True)):
            np.testing.assert_allclose(a, b * (2.0 if k == 1 else 1.0), atol=1e-6)
        assert len(seen) == 3
        if r == 0:  # the rank's own gradient, not the mean
            np.testing.assert_allclose(seen[-1], own[0], atol=1e-6)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_zero_takes_values_that_were_set_between_steps(ranks):
    """Parameters lie in buckets that ranks gather into; what others write into a parameter counts all the same."""

    def rank(world: parallel.Communicator) -> Any:
        net = Net()
        zero = parallel.Zero(optimizer.Momentum(0.1, 0.9, parameters=net.parameters()), stage=2, bucket_mb=1e-4)
        for step in range(4):
            if step == 2:
                net.weights[1].set_value(WEIGHTS[1] * 0.5)
            if step == 3:
                net.set_state_dict({k: v.numpy() * 0.9 for k, v in net.state_dict().items()})
            net(oprack.to_tensor(X[0])).backward()
            zero.step()
            zero.clear_grad()
        return [p.numpy() for p in net.weights]

    net = Net()
    momentum = optimizer.Momentum(0.1, 0.9, parameters=net.parameters())
    for step in range(4):
        if step == 2:
            net.weights[1].set_value(WEIGHTS[1] * 0.5)
        if step == 3:
            net.set_state_dict({k: v.numpy() * 0.9 for k, v in net.state_dict().items()})
        net(oprack.to_tensor(X[0])).backward()
        momentum.step()
        momentum.clear_grad()
    for found in ThreadWorld(ranks).run(rank):
        for a, b in zip(found, net.weights, strict=True):
            np.testing.assert_allclose(a, b.numpy(), atol=1e-6)


@pytest.mark.parametrize(("grid", "sbp"), [((2,), ["S(0)"]), ((2, 2), ["S(0)", "S(0)"])])
def test_gradients_of_global_tensors_travel_in_each_pass_or_once(grid, sbp):
    """Two batches: each pass adds up what it made, or what adds up under no_sync travels once."""

    def steps(net: Any, placement: Any, sync: bool) -> list[np.ndarray]:
        for k in range(2):
            x = oprack.to_tensor(X[k][:4])
            x = x if placement is None else x.to_global(placement, sbp, from_whole=True)
            with contextlib.nullcontext() if sync or placement is None else parallel.no_sync():
                net(x).backward()
        sgd = optimizer.SGD(1.0, parameters=net.parameters())
        sgd.step()
        return [p.numpy() for p in net.parameters()]

    def rank(world: parallel.Communicator) -> Any:
        placement = parallel.placement("cpu", grid)
        groups, found = [placement.group(k) for k in range(len(grid))], []
        for sync in (True, False):
            for group in groups:
                group.record.clear()
            net = parallel.to_global(Net(), placement)
            values = steps(net, placement, sync)
            lines = [line for group in groups for line in group.record]
            found.append((values, sum("all_reduce_sum float32[448], started" in line for line in lines)))
        return found

    want = steps(Net(), None, True)
    for (each, twice), (together, once) in ThreadWorld(int(np.prod(grid))).run(rank):
        assert once == 1
        assert twice == (2 if len(grid) == 1 else 1)  # in grids of more axes, what comes to a sum is added by itself
        for a, b, c in zip(each, together, want, strict=True):
            np.testing.assert_allclose(a, c, atol=1e-5)
            np.testing.assert_allclose(b, c, atol=1e-5)


def test_a_scaler_leaves_a_step_out_on_all_ranks_and_moves_one_number():
    """Parameters in parts: no rank asks for a whole gradient, and what overflows in one part alone counts on all."""

    def rank(world: parallel.Communicator) -> Any:
        net = parallel.to_global(Net(), parallel.placement(), {"*": "S(0)"})
        sgd, scaler, found = optimizer.SGD(1.0, parameters=net.parameters()), GradScaler(init_loss_scaling=64.0), []
        for large in (1.0, np.inf):
            x = X[0][:4].copy()
            x[3, 0] *= large
            scaler.scale(net(oprack.to_tensor(x).to_global(parallel.placement(), "S(0)", from_whole=True))).backward()
            world.record.clear()
            scaler.unscale_(sgd)
            moved = [line.split(": ")[1] for line in world.record if "gather_facts" not in line]
            scaler.step(sgd)
            scaler.update()
            sgd.clear_grad()
            found.append((moved, scaler.loss_scaling, [p.numpy() for p in net.parameters()]))
        return found

    net = Net()
    sgd = optimizer.SGD(1.0, parameters=net.parameters())
    net(oprack.to_tensor(X[0][:4])).backward()
    sgd.step()
    for (moved, scale, values), (_, smaller, same) in ThreadWorld(2).run(rank):
        assert moved == ["all_reduce_sum float32[]"]
        assert (scale, smaller) == (64.0, 32.0)
        for a, b, want in zip(values, same, net.parameters(), strict=True):
            np.testing.assert_allclose(a, want.numpy(), atol=1e-5)
            np.testing.assert_array_equal(a, b)


def test_no_optimizer_keeps_the_memory_of_gradients():
    """What a step reads may lie in memory of all ranks, to which the next backward pass writes."""
    found = [getattr(optimizer, name) for name in dir(optimizer)]
    kinds = {c for c in found if inspect.isclass(c) and issubclass(c, optimizer.Optimizer)}
    kinds -= {optimizer.Optimizer, optimizer.LBFGS}  # which reads `grad`, of which it gets a copy
    assert len(kinds) > 12
    for kind in kinds:
        net = nn.Linear(64, 64)
        updates = kind(0.1, parameters=net.parameters()).updates
        for _ in range(2):
            arrays = [np.full(p.shape, 0.5, "float32") for p in net.parameters()]
            for p, array in zip(net.parameters(), arrays, strict=True):
                array.flags.writeable = False
                p._grad = new_tensor(array, p._meta.without_grad)
            updates.step()
            kept = [a for part in updates.state_parts().values() for _, a in part.regions]
            kept += [p._value for p in net.parameters()]
            assert not any(np.shares_memory(a, b) for a in kept for b in arrays), kind
            assert all((a == 0.5).all() for a in arrays), kind
