"""Global tensors on ranks that are threads: the numbers of one rank, however a net is laid out; what is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import nn, optimizer, parallel
from oprack.errors import (
    CollectiveError,
    InvalidArgumentError,
    NotFoundError,
    PreconditionNotMetError,
    UnimplementedError,
)
from oprack.python.implementation import without_collecting
from oprack.testing.worlds import ThreadWorld
from passed_calls import PassedCalls

ROWS, STEPS = 10, 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((ROWS, 8)).astype("float32")
LABELS = RNG.integers(0, 4, (ROWS, 1))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def losses(net: Any, x: Any, labels: Any, steps: int = STEPS) -> list[float]:
    adam = optimizer.Adam(0.05, parameter_list=net.parameters())
    found = []
    for _ in range(steps):
        loss = F.softmax_with_cross_entropy(net(x), labels).loss.mean()
        loss.backward()
        found.append(loss.item())
        adam.step()
        adam.clear_grad()
    return found


@pytest.fixture(scope="module")
def start() -> dict[str, np.ndarray]:
    oprack.seed(3)
    return {name: value.numpy() for name, value in mlp().state_dict().items()}


@pytest.fixture(scope="module")
def alone(start: dict[str, np.ndarray]) -> list[float]:
    net = mlp()
    net.set_state_dict(start)
    return losses(net, oprack.to_tensor(X), oprack.to_tensor(LABELS))


MEGATRON = {"0.weight": ["B", "S(1)"], "0.bias": ["B", "S(0)"], "2.weight": ["B", "S(0)"]}


@pytest.mark.parametrize(
    ("ranks", "grid", "layouts", "batch"),
    [
        (2, (2,), {}, "S(0)"),
        (4, (4,), {}, "S(0)"),  # 10 rows on 4 ranks: means are weighted
        (2, (2,), {name: sbps[1] for name, sbps in MEGATRON.items()}, "B"),
        (4, (2, 2), MEGATRON, ["S(0)", "B"]),
        (2, (2,), {"*": "S(0)"}, "S(0)"),  # every parameter in parts, its gradient and its state as well
        (4, (2, 2), {}, ["S(0)", "S(0)"]),
    ],
    ids=["data", "data-uneven", "tensor", "data-tensor", "parameters", "data-nested"],
)
def test_losses_are_those_of_one_rank(ranks, grid, layouts, batch, start, alone):
    def rank(world: parallel.Communicator) -> list[float]:
        placement = parallel.placement("cpu", grid)
        net = mlp()
        net.set_state_dict(start)
        parallel.to_global(net, placement, layouts)
        x, labels = (oprack.to_tensor(v).to_global(placement, batch, from_whole=True) for v in (X, LABELS))
        return losses(net, x, labels)

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no op gathers its inputs
        for found in ThreadWorld(ranks).run(rank):
            np.testing.assert_allclose(found, alone, atol=1e-5)


def test_parts_hold_their_share_of_parameters_and_state(start):
    def rank(world: parallel.Communicator) -> tuple[int, int]:
        net = mlp()
        net.set_state_dict(start)
        parallel.to_global(net, parallel.placement(), {"*": "S(0)"})
        return sum(p.to_local().size for p in net.parameters()), sum(p.size for p in net.parameters())

    parts, whole = zip(*ThreadWorld(2).run(rank), strict=True)
    assert set(whole) == {212}
    assert sum(parts) == 212


def test_data_parallel_trains_as_one_rank(start, alone):
    def rank(world: parallel.Communicator) -> list[float]:
        net = mlp()
        if world.rank == 0:
            net.set_state_dict(start)  # the others get it from rank 0
        dp = parallel.DataParallel(net, bucket_mb=1e-4)
        mine = slice(world.rank * 5, world.rank * 5 + 5)
        found = losses(dp, oprack.to_tensor(X[mine]), oprack.to_tensor(LABELS[mine]))
        return world.all_reduce(np.array(found)) / world.size

    for found in ThreadWorld(2).run(rank):
        np.testing.assert_allclose(found, alone, atol=1e-5)


def test_data_parallel_with_sparse_gradients_and_unused_parameters():
    table = RNG.standard_normal((6, 3)).astype("float32")
    ids = np.array([[1, 2], [2, 5]])

    def gradients(net: Any, rows: np.ndarray, use_second: bool) -> Any:
        y = net.first(oprack.to_tensor(rows)).sum()
        if use_second:
            y = y + net.second(oprack.to_tensor(np.ones((1, 3), "float32"))).sum()
        y.backward()
        return net.first.weight.grad.numpy(), net.second.weight.grad.numpy()

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Embedding(6, 3, sparse=True)
            self.second = nn.Linear(3, 2)
            self.third = nn.Linear(3, 2)  # no rank uses it

    def rank(world: parallel.Communicator) -> Any:
        net = Net()
        net.first.weight.set_value(table)
        parallel.DataParallel(net)  # one that is gone does nothing
        dp = parallel.DataParallel(net)
        found = gradients(net, ids[world.rank], use_second=world.rank == 1)
        assert net.third.weight.grad is None
        assert dp.module is net
        return found

    want_first = np.zeros((6, 3), "float32")
    np.add.at(want_first, ids.ravel(), 0.5)  # the mean of two ranks
    for first, second in ThreadWorld(2).run(rank):
        np.testing.assert_allclose(first, want_first, atol=1e-6)
        np.testing.assert_allclose(second, np.full((3, 2), 0.5), atol=1e-6)


def test_no_sync_adds_up_before_the_mean():
    def rank(world: parallel.Communicator) -> Any:
        net = nn.Linear(1, 1, bias_attr=False)
        dp = parallel.DataParallel(net)
        x = oprack.to_tensor(np.full((1, 1), 1.0 + world.rank, "float32"))
        with dp.no_sync():
            dp(x).sum().backward()
        own = net.weight.grad.item()
        dp(x).sum().backward()
        return own, net.weight.grad.item()

    assert ThreadWorld(2).run(rank) == [(1.0, 3.0), (2.0, 3.0)]


def test_modules_that_differ_are_named():
    def rank(world: parallel.Communicator) -> None:
        parallel.DataParallel(nn.Linear(2 + world.rank, 1))

    with pytest.raises(
        CollectiveError, match=r"rank 0 has 'weight' float32\[2, 1\] where rank 1 has 'weight' float32\[3, 1"
    ):
        ThreadWorld(2).run(rank)


def test_gradients_are_clipped_by_the_norm_of_all_parts(start):
    net = mlp()
    net.set_state_dict(start)
    F.softmax_with_cross_entropy(net(oprack.to_tensor(X)), oprack.to_tensor(LABELS)).loss.mean().backward()
    squares = sum(float((p.grad.numpy() ** 2).sum()) for p in net.parameters())

    def rank(world: parallel.Communicator) -> tuple[float, float]:
        grid = parallel.placement()
        own = mlp()
        own.set_state_dict(start)
        parallel.to_global(own, grid, {"0.weight": "S(1)", "2.weight": "S(0)"})
        x, labels = (oprack.to_tensor(v).to_global(grid, "B", from_whole=True) for v in (X, LABELS))
        F.softmax_with_cross_entropy(own(x), labels).loss.mean().backward()
        before = parallel.clip_grad_norm(own.parameters(), 0.1)
        after = sum(float((p.grad.numpy() ** 2).sum()) for p in own.parameters()) ** 0.5
        return before, after

    for before, after in ThreadWorld(2).run(rank):
        assert before == pytest.approx(squares**0.5, rel=1e-5)
        assert after == pytest.approx(0.1, rel=1e-3)


def test_a_state_saved_by_four_ranks_goes_on_on_any_number(tmp_path, start, alone):
    """Parameters and the optimizer's state, laid out one way when saved and another when loaded."""
    path = tmp_path / "state.npz"

    def trained(grid: tuple[int, ...], layouts: dict[str, Any], batch: Any, load: bool, steps: int) -> Any:
        def rank(world: parallel.Communicator) -> Any:
            placement = parallel.placement("cpu", grid)
            net = parallel.to_global(mlp(), placement, layouts)
            adam = optimizer.Adam(0.05, parameter_list=net.parameters())
            if load:
                state = oprack.io.load_state(path)
                net.set_state_dict({k[4:]: v for k, v in state.items() if k.startswith("net.")})
                adam.set_state_dict({k[4:]: v for k, v in state.items() if k.startswith("opt.")})
            else:
                net.set_state_dict(start)
            x, labels = (oprack.to_tensor(v).to_global(placement, batch, from_whole=True) for v in (X, LABELS))
            found = []
            for _ in range(steps):
                loss = F.softmax_with_cross_entropy(net(x), labels).loss.mean()
                loss.backward()
                found.append(loss.item())
                adam.step()
                adam.clear_grad()
            if not load:
                state = {f"net.{k}": v for k, v in net.state_dict().items()}
                oprack.io.save_state(path, state | {f"opt.{k}": v for k, v in adam.state_dict().items()})
            return found

        return ThreadWorld(int(np.prod(grid))).run(rank)

    first = trained((2, 2), MEGATRON, ["S(0)", "B"], False, 3)[0]
    np.testing.assert_allclose(first, alone[:3], atol=1e-5)
    for grid, layouts, batch in [
        ((1,), {}, "B"),
        ((2,), {"*": "S(0)"}, "S(0)"),
        ((3,), {"0.weight": "S(1)"}, "B"),
        ((4,), {"0.weight": "S(0)", "2.weight": "S(1)"}, "S(0)"),
    ]:
        for rest in trained(grid, layouts, batch, True, STEPS - 3):
            np.testing.assert_allclose(rest, alone[3:], atol=1e-5)


def test_gradients_go_back_through_a_move_to_another_grid() -> None:
    def rank(world: parallel.Communicator) -> tuple[Any, Any]:
        line, square = parallel.placement(), parallel.placement("cpu", (2, 2), ("a", "b"))
        w = oprack.to_tensor(X[:4, :4].copy(), requires_grad=True)
        x = w.to_global(line, "S(0)", from_whole=True)
        y = (x * x).to_global(square, ["S(1)", "P"])
        (y * y).sum().backward()
        return y.numpy(), w.grad.numpy()

    for value, gradient in ThreadWorld(4).run(rank):
        np.testing.assert_allclose(value, X[:4, :4] ** 2, rtol=1e-6)
        np.testing.assert_allclose(gradient, 4 * X[:4, :4] ** 3, rtol=1e-5)


def test_dropout_draws_other_numbers_for_other_parts():
    def rank(world: parallel.Communicator) -> np.ndarray:
        x = oprack.to_tensor(np.ones((8, 64), "float32")).to_global(parallel.placement(), "S(0)", from_whole=True)
        return F.dropout(x, dropout_prob=0.5, dropout_implementation="upscale_in_train").numpy()

    a, b = ThreadWorld(2).run(rank)
    np.testing.assert_array_equal(a, b)  # both ranks have the same whole
    assert not np.array_equal(a[:4], a[4:])


def on_two_ranks(function: Callable[[Any], Any]) -> None:
    ThreadWorld(2).run(lambda world: function(parallel.placement()))


def tensor(*shape: int) -> oprack.Tensor:
    return oprack.to_tensor(np.zeros(shape, "float32"))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda g: tensor(8, 6).to_global(g, "S(2)"),
            InvalidArgumentError,
            r"S\(2\) splits dim 2 of a tensor of shape",
        ),
        (
            lambda g: tensor(4, 4).to_global(g, "S(0)", from_whole=True) @ tensor(4, 4),
            InvalidArgumentError,
            r"op matmul_v2: tensor float32\[4, 4\] is of this process alone, other inputs are global",
        ),
        (
            lambda g: tensor(1 + 2 * g.world.rank, 4).to_global(g, "S(0)"),
            CollectiveError,
            r"rank 0 brings float32\[1, 4\]; expected float32\[2, 4\] as its part of \[4, 4\]",
        ),
        (lambda g: tensor(4).to_global(), InvalidArgumentError, r"expected where it goes: x.to_global\(placement"),
        (lambda g: tensor(4).to_global("cpu", "B"), InvalidArgumentError, r"can't go to 'cpu'; expected where it goes"),
        (lambda g: parallel.to_global(mlp(), g, {"weight": "S(0)"}), NotFoundError, r"\['weight'\] match no parameter"),
        (
            lambda g: parallel.to_global(mlp(), g, {"0.weight": "P"}),
            InvalidArgumentError,
            "expected splits and broadcasts",
        ),
    ],
)
def test_what_is_wrong_is_said(call, error, message):
    with pytest.raises(error, match=message):
        on_two_ranks(call)


def test_an_op_without_a_rule_gathers_and_says_so_once():
    def call(grid: Any) -> None:
        x = oprack.to_tensor(np.arange(6, dtype="float32")).to_global(grid, "S(0)", from_whole=True)
        np.testing.assert_array_equal(F.unique(x, dtype=3).out.numpy(), np.arange(6))

    with pytest.warns(UserWarning, match=r"op unique \(pack oprack-tensor\) has no rule sbp"):
        on_two_ranks(call)
    parallel.strict()
    try:
        with pytest.raises(UnimplementedError, match="no rule sbp"):
            on_two_ranks(call)
    finally:
        parallel.strict(False)


@pytest.mark.parametrize("clip", ["ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue"])
def test_a_clip_inside_the_optimizer_goes_by_whole_gradients(clip, start):
    def losses_of(net: Any, x: Any, labels: Any) -> list[float]:
        chosen = getattr(optimizer, clip)(0.01)
        sgd, found = optimizer.SGD(1.0, parameters=net.parameters(), grad_clip=chosen), []
        for _ in range(3):
            loss = F.softmax_with_cross_entropy(net(x), labels).loss.mean()
            loss.backward()
            found.append(loss.item())
            sgd.step()
            sgd.clear_grad()
        return found

    def rank(world: parallel.Communicator) -> list[float]:
        grid, net = parallel.placement(), mlp()
        net.set_state_dict(start)
        parallel.to_global(net, grid, {"0.weight": "S(1)", "2.weight": "S(0)"})
        return losses_of(net, *(oprack.to_tensor(v).to_global(grid, "B", from_whole=True) for v in (X, LABELS)))

    net = mlp()
    net.set_state_dict(start)
    alone = losses_of(net, oprack.to_tensor(X), oprack.to_tensor(LABELS))
    for found in ThreadWorld(2).run(rank):
        np.testing.assert_allclose(found, alone, atol=1e-6)


def test_a_clip_of_a_pack_that_can_not_say_its_factors_is_refused_for_parts(start):
    class Halves(optimizer.ClipGradByGlobalNorm.__mro__[1]):
        def __call__(self, block: Any, pairs: Any) -> Any:
            return list(pairs)

    def rank(world: parallel.Communicator) -> None:
        net = mlp()
        parallel.to_global(net, parallel.placement(), {"0.weight": "S(1)"})
        adam = optimizer.Adam(0.1, parameter_list=net.parameters(), grad_clip=Halves())
        x = oprack.to_tensor(X).to_global(parallel.placement(), "B", from_whole=True)
        net(x).mean().backward()
        adam.step()

    with pytest.raises(UnimplementedError, match=r"Halves: .*call oprack\.parallel\.clip_grad_norm"):
        ThreadWorld(2).run(rank)


@pytest.mark.parametrize("sbp", ["S(0)", "S(1)", "B", "P"])
def test_a_call_in_place_keeps_the_layout(sbp):
    weights = RNG.standard_normal((4, 3)).astype("float32")

    def run(x: Any, y: Any, leaf: Any) -> Any:
        h = x * 2
        h.add_(y).scale_(3.0)
        made = F.relu(h, in_place=True)
        assert made is h
        assert h.inplace_version == 3
        (h * h).sum().backward()
        return h.numpy(), leaf.grad.numpy()

    def rank(world: parallel.Communicator) -> Any:
        grid = parallel.placement()
        leaf = oprack.to_tensor(weights, requires_grad=True)
        x = leaf.to_global(grid, sbp, from_whole=True)
        with pytest.raises(PreconditionNotMetError, match="was not computed"):
            F.relu(parallel.to_global(nn.Linear(2, 2), grid).weight, in_place=True)
        found = run(x, oprack.to_tensor(weights + 1).to_global(grid, "B", from_whole=True), leaf)
        twice = x * 2
        layout = twice.layout
        twice.add_(x)
        assert twice.layout is layout
        return found

    leaf = oprack.to_tensor(weights, requires_grad=True)
    want = run(leaf, oprack.to_tensor(weights + 1), leaf)
    for found in ThreadWorld(2).run(rank):
        for a, b in zip(found, want, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)


def test_gradients_go_by_what_was_read_before_a_write_in_place():
    def rank(world: parallel.Communicator) -> np.ndarray:
        leaf = oprack.to_tensor(X, requires_grad=True)
        x = leaf.to_global(parallel.placement(), "S(0)", from_whole=True)
        h = x * 2
        y = h * h
        h.add_(x)
        (y.sum() + h.sum()).backward()
        return leaf.grad.numpy()

    for found in ThreadWorld(2).run(rank):
        np.testing.assert_allclose(found, 8 * X + 3, rtol=1e-5)


def test_a_call_that_sends_nothing_runs_the_function_of_its_parts():
    def functions(call: Callable[[], Any]) -> int:
        call(), call()  # what is decided once
        with PassedCalls() as passed:
            call()
        return len(passed)

    def rank(world: parallel.Communicator) -> list[int]:
        x = oprack.to_tensor(X)
        y = x.to_global(parallel.placement(), "S(0)", from_whole=True)
        weight = oprack.to_tensor(X, requires_grad=True)
        v = weight.to_global(parallel.placement(), "S(0)", from_whole=True)
        pairs = [(lambda a=a: F.relu(a), lambda b=b: F.relu(b)) for a, b in ((x, y), (weight, v))]
        return [functions(there) - functions(here) for here, there in pairs]

    found = without_collecting(ThreadWorld(2).run, rank)  # of both threads, while either counts
    assert found == [[1, 1]] * 2  # the look-up by shapes


def test_without_a_launcher_a_global_tensor_is_one_of_one_rank():
    grid = parallel.placement()
    x = oprack.to_tensor(X)
    y = x.to_global(grid, "S(0)")
    assert (y.is_global, y.shape, repr(y.layout)) == (True, X.shape, "[S(0)] on placement(cpu, axis0=1)")
    np.testing.assert_array_equal((y * 2).relu().numpy(), np.maximum(X * 2, 0))
    assert y.to_local().layout is None


def test_a_module_gets_the_values_of_the_first_rank():
    """As where each rank seeds by its number, for its data, before it makes the net."""

    def rank(world: parallel.Communicator) -> list[np.ndarray]:
        net = nn.Linear(4, 3)
        net.weight.set_value(np.full((4, 3), world.rank + 1.0, "f4"))
        net.bias.set_value(np.arange(3, dtype="f4") + world.rank)
        parallel.to_global(net, parallel.placement(), {"weight": "S(1)"})
        return [net.weight.numpy(), net.bias.numpy(), net.bias.to_local().numpy()]

    for weight, bias, part in ThreadWorld(3).run(rank):
        np.testing.assert_array_equal(weight, np.ones((4, 3)))
        np.testing.assert_array_equal(bias, [0, 1, 2])
        np.testing.assert_array_equal(part, [0, 1, 2])


@pytest.mark.parametrize(
    ("grid", "sbps", "from_whole", "same"),
    [
        ((2,), "B", True, False),
        ((2,), "S(0)", True, False),
        ((2,), "B", False, False),
        ((2,), "S(0)", False, True),  # each rank has rows of its own
        ((2,), "P", False, True),
        ((2, 2), ["S(0)", "B"], False, False),
    ],
)
def test_copies_that_differ_are_refused(grid: tuple[int, ...], sbps: Any, from_whole: bool, same: bool):
    def rank(world: parallel.Communicator) -> Any:
        x = oprack.to_tensor(np.full((4, 2), world.rank, "f4"))
        return x.to_global(parallel.placement("cpu", grid), sbps, from_whole=from_whole)

    run = ThreadWorld(int(np.prod(grid))).run
    if same:
        run(rank)
    else:
        with pytest.raises(CollectiveError, match=r"ranks 0 and 1 bring .* of different values"):
            run(rank)


@pytest.mark.parametrize("clip", [None, 0.5])
def test_gradients_of_whole_parameters_travel_together(clip: float | None):
    """One sum for all of them, and those of one rank."""
    rows = np.random.default_rng(1).standard_normal((6, 8)).astype("f4")

    def step(net: nn.Module, x: oprack.Tensor) -> list[np.ndarray]:
        sgd = optimizer.SGD(0.1, parameters=net.parameters())
        net(x).square().mean().backward()
        if clip:
            parallel.clip_grad_norm(net.parameters(), clip)
        sgd.step()
        return [p.numpy() for p in net.parameters()]

    def net() -> nn.Module:
        return nn.Sequential(*(nn.Linear(8, 8) for _ in range(5)))

    first = net()
    state = {name: p.numpy().copy() for name, p in first.named_parameters()}
    want = step(first, oprack.to_tensor(rows))

    def rank(world: parallel.Communicator) -> Any:
        grid = parallel.placement()
        split = net()
        split.set_state_dict(state)
        parallel.to_global(split, grid)
        x = oprack.to_tensor(rows).to_global(grid, "S(0)", from_whole=True)
        found = step(split, x)
        return found, [line for line in world.record if "all_reduce" in line]

    for found, sums in ThreadWorld(3).run(rank):
        for a, b in zip(found, want, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)
        assert [line.split(": ")[1] for line in sums] == ["all_reduce_sum float32[360], started"]


def test_ranks_with_fewer_batches_end_the_loop_of_all():
    def rank(world: parallel.Communicator) -> list[int]:
        return list(parallel.even_batches(range(10 * world.rank, 10 * world.rank + 3 + world.rank)))

    assert ThreadWorld(3).run(rank) == [[0, 1, 2], [10, 11, 12], [20, 21, 22]]
    assert list(parallel.even_batches("ab")) == ["a", "b"]


def test_a_rank_that_did_not_use_the_module_averages_with_the_others():
    def rank(world: parallel.Communicator) -> np.ndarray:
        net = parallel.DataParallel(nn.Linear(4, 2))
        if world.rank:
            net.average_gradients()
        else:
            net(oprack.to_tensor(np.ones((3, 4), "f4"))).sum().backward()
        return net.weight.grad.numpy()

    for found in ThreadWorld(2).run(rank):
        np.testing.assert_array_equal(found, np.full((4, 2), 1.5))
