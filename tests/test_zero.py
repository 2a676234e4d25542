"""Zero on ranks that are threads: the numbers of one rank, 1/n of the state, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import nn, optimizer, parallel
from oprack.amp import GradScaler
from oprack.errors import CollectiveError, InvalidArgumentError, PreconditionNotMetError, UnimplementedError
from oprack.testing.worlds import ThreadWorld

ROWS, STEPS, BUCKET = 8, 5, 3e-4  # buckets of some 300 bytes, so that there are several
RNG = np.random.default_rng(0)
X = RNG.standard_normal((ROWS, 8)).astype("float32")
LABELS = RNG.integers(0, 4, (ROWS, 1))
Make = Callable[[Any], Any]


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


@pytest.fixture(scope="module")
def start() -> dict[str, np.ndarray]:
    oprack.seed(3)
    return {name: value.numpy() for name, value in mlp().state_dict().items()}


def backward(net: Any, rows: slice, factor: float = 1.0) -> float:
    loss = F.softmax_with_cross_entropy(net(oprack.to_tensor(X[rows])), oprack.to_tensor(LABELS[rows])).loss.mean()
    (loss * factor).backward()
    return loss.item()


def losses(net: Any, opt: Any, rows: slice, steps: int = STEPS) -> np.ndarray:
    found = []
    for _ in range(steps):
        found.append(backward(net, rows))
        opt.step()
        opt.clear_grad()
    return np.array(found)


def prepared(start: dict[str, np.ndarray]) -> nn.Module:
    net = mlp()
    net.set_state_dict(start)
    return net


def on_ranks(make: Make, start: dict[str, np.ndarray], ranks: int, stage: int, steps: int = STEPS) -> np.ndarray:
    """Losses with a batch that is split over the ranks."""

    def rank(world: parallel.Communicator) -> np.ndarray:
        net = prepared(start)
        module = parallel.DataParallel(net) if stage == 1 else net
        zero = parallel.Zero(make(net), stage, bucket_mb=BUCKET)
        n = ROWS // ranks
        return world.all_reduce(losses(module, zero, slice(world.rank * n, world.rank * n + n), steps)) / ranks

    return ThreadWorld(ranks).run(rank)[0]


OPTIMIZERS: dict[str, Make] = {
    "adam": lambda net: optimizer.Adam(0.05, parameters=net.parameters()),
    "momentum, decay, norm of all": lambda net: optimizer.Momentum(
        0.1, 0.9, parameters=net.parameters(), weight_decay=0.01, grad_clip=optimizer.ClipGradByGlobalNorm(0.2)
    ),
    "adamw by names, norm of each": lambda net: optimizer.AdamW(
        0.05,
        parameters=net.parameters(),
        apply_decay_param_fun=lambda name: ".w" in name,
        grad_clip=optimizer.ClipGradByNorm(0.1),
    ),
    "nadam, groups, values": lambda net: optimizer.NAdam(
        0.05,
        parameters=[
            {"params": [net[0].weight], "learning_rate": 0.1, "grad_clip": optimizer.ClipGradByValue(0.01)},
            {"params": [net[0].bias, net[2].weight, net[2].bias]},
        ],
    ),
}


@pytest.mark.parametrize(("ranks", "stage"), [(2, 1), (2, 2), (4, 2)])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_losses_are_those_of_one_rank(name, ranks, stage, start):
    net = prepared(start)
    alone = losses(net, OPTIMIZERS[name](net), slice(None))
    assert alone[0] > alone[-1]
    np.testing.assert_allclose(on_ranks(OPTIMIZERS[name], start, ranks, stage), alone, atol=1e-5)


@pytest.mark.parametrize("ranks", [2, 4])
def test_each_rank_has_its_share_of_state_and_gradients(ranks, start):
    def rank(world: parallel.Communicator) -> tuple[int, int, list[Any]]:
        net = prepared(start)
        zero = parallel.Zero(OPTIMIZERS["adam"](net), stage=2)
        backward(net, slice(None))
        gradients = sum(p.grad.size for p in zero.parameter_list if p.grad is not None)
        zero.step()
        moments = [zero._updates.scope.find_var(name) for name in zero._updates._variables.values()]
        sizes = [var.value.array.size for var in moments]
        return sum(n for n in sizes if n > 1), gradients, [p.grad for p in net.parameters()]

    whole = 8 * 16 + 16 + 16 * 4 + 4
    assert whole % ranks == 0
    for state, gradients, left in ThreadWorld(ranks).run(rank):
        assert (state, gradients) == (2 * whole // ranks, whole // ranks)  # two moments
        assert left == [None] * 4


def test_a_state_of_four_ranks_goes_on_on_any_number(tmp_path, start):
    net = prepared(start)
    alone = losses(net, OPTIMIZERS["adam"](net), slice(None), 6)
    path = tmp_path / "state.npz"

    def first(world: parallel.Communicator) -> None:
        net = prepared(start)
        zero = parallel.Zero(OPTIMIZERS["adam"](net), stage=2, bucket_mb=BUCKET)
        losses(net, zero, slice(world.rank * 2, world.rank * 2 + 2), 3)
        state = {f"net.{k}": v for k, v in net.state_dict().items()}
        state |= {f"opt.{k}": v for k, v in zero.state_dict().items()}
        if world.rank == 0:
            oprack.io.save_state(path, state)

    def second(world: parallel.Communicator) -> np.ndarray:
        net, state = mlp(), oprack.io.load_state(path)
        net.set_state_dict({k[4:]: v for k, v in state.items() if k.startswith("net.")})
        adam = OPTIMIZERS["adam"](net)
        opt = adam if world.size == 1 else parallel.Zero(adam, stage=2, bucket_mb=2 * BUCKET)
        opt.set_state_dict({k[4:]: v for k, v in state.items() if k.startswith("opt.")})
        again = opt.state_dict()  # before any step
        assert all(np.array_equal(again[k[4:]], v) for k, v in state.items() if k.startswith("opt."))
        return losses(net, opt, slice(None), 3)

    ThreadWorld(4).run(first)
    for ranks in (1, 2, 3):
        for found in ThreadWorld(ranks).run(second):
            np.testing.assert_allclose(found, alone[3:], atol=1e-5)


def test_ranks_agree_on_a_step_that_is_left_out(start):
    """A gradient that overflows on one rank alone."""

    def rank(world: parallel.Communicator) -> tuple[float, bool, bool]:
        net = prepared(start)
        zero = parallel.Zero(OPTIMIZERS["adam"](net), stage=2)
        scaler = GradScaler(init_loss_scaling=1024.0)
        before = [p.numpy().copy() for p in net.parameters()]
        unchanged = []
        for factor in (1.0, np.inf if world.rank == 1 else 1.0):
            values = [p.numpy().copy() for p in net.parameters()]
            loss = net(oprack.to_tensor(X)).mean() * float(factor)
            scaler.scale(loss).backward()
            scaler.step(zero)
            scaler.update()
            zero.clear_grad()
            unchanged.append(all(np.array_equal(p.numpy(), v) for p, v in zip(net.parameters(), values, strict=True)))
        assert len(before) == 4
        return scaler.loss_scaling, unchanged[0], unchanged[1]

    assert ThreadWorld(2).run(rank) == [(512.0, False, True)] * 2


def test_scaled_losses_change_nothing(start):
    def rank(world: parallel.Communicator) -> np.ndarray:
        net = prepared(start)
        zero, scaler, found = parallel.Zero(OPTIMIZERS["adam"](net), stage=2), GradScaler(init_loss_scaling=8.0), []
        for _ in range(3):
            found.append(backward(net, slice(None), 8.0))
            scaler.step(zero)
            scaler.update()
            zero.clear_grad()
        return np.array(found)

    net = prepared(start)
    np.testing.assert_allclose(
        ThreadWorld(2).run(rank)[1], losses(net, OPTIMIZERS["adam"](net), slice(None), 3), atol=1e-5
    )


def test_passes_add_up_and_sparse_gradients_and_unused_parameters(start):
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(6, 3, sparse=True)
            self.unused = nn.Linear(3, 2)

    table = RNG.standard_normal((6, 3)).astype("float32")
    ids = np.array([[1, 2], [2, 5]])

    def rank(world: parallel.Communicator) -> Any:
        net = Net()
        net.table.weight.set_value(table)
        zero = parallel.Zero(optimizer.SGD(1.0, parameters=net.named_parameters()), stage=2)
        for _ in range(2):
            net.table(oprack.to_tensor(ids[world.rank])).sum().backward()
        zero.step()
        return net.table.weight.numpy()

    want = table.copy()
    np.subtract.at(want, ids.ravel(), 1.0)  # two passes, each with the mean of two ranks
    for found in ThreadWorld(2).run(rank):
        np.testing.assert_allclose(found, want, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda net: parallel.Zero(optimizer.Lamb(0.1, parameters=net.parameters())), UnimplementedError, "op lamb "),
        (
            lambda net: parallel.Zero(optimizer.LarsMomentum(0.1, 0.9, parameters=net.parameters())),
            UnimplementedError,
            r"Zero: LarsMomentum runs op lars_momentum \(pack oprack-optimizer\), which has no rule",
        ),
        (
            lambda net: parallel.Zero(optimizer.LBFGS(parameters=net.parameters())),
            InvalidArgumentError,
            "got LBFGS; expected an optimizer .* takes no closure",
        ),
        (lambda net: parallel.Zero(OPTIMIZERS["adam"](net), stage=3), InvalidArgumentError, "stage is 3; expected 1"),
        (lambda net: parallel.Zero(optimizer.Adam(0.1)), PreconditionNotMetError, "it has no parameters"),
        (
            lambda net: parallel.Zero(OPTIMIZERS["adam"](parallel.to_global(net, parallel.placement()))),
            InvalidArgumentError,
            "lies on several ranks already",
        ),
        (lambda net: parallel.Zero(OPTIMIZERS["adam"](net)).step(), PreconditionNotMetError, "no parameter of Adam"),
        (
            lambda net: (
                (parallel.Zero(OPTIMIZERS["adam"](net), 2), backward(net, slice(None)))
                and parallel.clip_grad_norm(net.parameters(), 1.0)
            ),
            PreconditionNotMetError,
            "give the optimizer grad_clip=",
        ),
    ],
)
def test_what_is_wrong_is_said(make, error, message):
    kept = []
    with pytest.raises(error, match=message):
        ThreadWorld(2).run(lambda world: kept.append(make(mlp())))


def test_stage_one_wants_equal_gradients(start):
    def rank(world: parallel.Communicator) -> None:
        net = prepared(start)
        zero = parallel.Zero(OPTIMIZERS["adam"](net))
        backward(net, slice(world.rank, world.rank + 1))
        zero.step()

    with pytest.raises(CollectiveError, match=r"have different gradients of .*put the module into parallel\.DataP"):
        ThreadWorld(2).run(rank)
