"""recompute: results and gradients of the call itself, of any order, with fewer values that are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import nn, parallel
from oprack.amp import autocast
from oprack.autograd import grad, recompute
from oprack.errors import PreconditionNotMetError
from oprack.parallel.simulated import FakeWorld
from oprack.testing.worlds import ThreadWorld

RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 6)).astype("float32")


class Block(nn.Module):
    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(width, width), nn.BatchNorm1D(width), nn.Linear(width, width)
        self.drop = nn.Dropout(0.3)

    def forward(self, x: oprack.Tensor) -> oprack.Tensor:
        return x + self.drop(F.relu(self.norm(self.second(F.tanh(self.first(x))))))


def called(again: bool, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return recompute(function, *args, **options) if again else function(*args, **options)


def nested(again: bool, net: nn.Module, x: Any) -> Any:
    """Two segments of two blocks, each of which is a segment as well."""

    def two(x: Any, first: int) -> Any:
        for block in list(net)[first : first + 2]:
            x = called(again, block, x)
        return x

    for first in (0, 2):
        x = called(again, two, x, first=first)
    return x


def flat(again: bool, net: nn.Module, x: Any) -> Any:
    for block in net:
        x = called(again, block, x)
    return x


def numbers(again: bool, how: Callable[..., Any], cast: bool) -> list[np.ndarray]:
    """Loss, gradients, buffers, and what is drawn afterwards."""
    oprack.seed(4)
    net = nn.Sequential(*[Block() for _ in range(4)])
    x = oprack.to_tensor(X)
    x.requires_grad = True
    with autocast(enable=cast, dtype="bfloat16"):
        loss = (how(again, net, x) ** 2).mean()
    loss.backward()  # outside of autocast, as it should be
    tensors = [
        loss,
        x.grad,
        *(p.grad for p in net.parameters()),
        *(b for _, b in net.named_buffers()),
        oprack.rand([2]),
    ]
    return [t.numpy() for t in tensors]


@pytest.mark.parametrize("cast", [False, True])
@pytest.mark.parametrize("how", [flat, nested])
def test_the_same_bits(how, cast):
    for found, wanted in zip(numbers(True, how, cast), numbers(False, how, cast), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_gradients_of_gradients_of_tensors_from_outside_and_of_some_alone():
    inner, outer = nn.Linear(6, 6), nn.Linear(6, 1)

    def found(again: bool) -> list[np.ndarray]:
        x = oprack.to_tensor(X)
        x.requires_grad = True
        outside = x * 2

        def function(t: Any) -> tuple[Any, Any, str]:
            return F.tanh(inner(t) * outside), F.sigmoid(t), "a text"

        a, b, text = called(again, function, x)
        assert text == "a text"
        first = grad((outer(a) * b.sum()).sum(), x, create_graph=True)[0]
        second = grad((first * first).sum(), [x, inner.weight])
        only = grad(called(again, inner, oprack.to_tensor(X)).sum(), inner.weight)
        return [g.numpy() for g in (first, *second, *only)]

    for got, wanted in zip(found(True), found(False), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_sequences_and_walks_that_retain_the_graph():
    x = oprack.to_tensor(oprack.LoDTensor(X, [[0, 0, 3, 8, 8]]))
    x.requires_grad = True
    y = recompute(lambda t: F.sequence_pool(F.tanh(t), pooltype="SUM"), x)
    assert y.shape == (4, 6)
    y.sum().backward(retain_graph=True)
    first = x.grad.numpy().copy()
    y.sum().backward()
    np.testing.assert_allclose(first, 1 - np.tanh(X) ** 2, rtol=1e-5)
    np.testing.assert_allclose(x.grad.numpy(), 2 * first, rtol=1e-6)
    with pytest.raises(PreconditionNotMetError, match="a second time"):
        y.sum().backward()


def test_memory_is_that_of_one_segment_and_the_arguments_of_all():
    def step(again: bool) -> Callable[[Any], None]:
        def run(_: parallel.Communicator) -> None:
            net = parallel.to_global(nn.Sequential(*[Block(64) for _ in range(16)]), parallel.placement())
            x = oprack.to_tensor(np.ones((1024, 64), "float32"))
            flat(again, net, x.to_global(parallel.placement(), "B", from_whole=True)).mean().backward()

        return run

    plain, again = (FakeWorld(1).run(step(k)) for k in (False, True))
    assert again.peak < 0.5 * plain.peak
    assert plain.flops < again.flops < 1.4 * plain.flops  # one more forward pass


def test_global_tensors():
    oprack.seed(1)
    start = {name: t.numpy() for name, t in Block().state_dict().items()}

    def rank(world: parallel.Communicator) -> list[list[np.ndarray]]:
        found = []
        for again in (False, True):
            net = Block()
            net.set_state_dict(start)
            net.drop.p = 0.0
            parallel.to_global(net, parallel.placement(), {"first.weight": "split(1)", "second.weight": "split(0)"})
            x = oprack.to_tensor(X).to_global(parallel.placement(), "B", from_whole=True)
            called(again, net, x).mean().backward()
            found.append([p.grad.numpy() for p in net.parameters()])
        return found

    for plain, again in ThreadWorld(2).run(rank):
        for a, b in zip(plain, again, strict=True):
            np.testing.assert_array_equal(a, b)


def test_where_nothing_is_recorded_it_is_the_call():
    with oprack.no_grad():
        assert recompute(F.tanh, oprack.to_tensor(X)).is_leaf
    assert recompute(lambda: 3) == 3
    net = nn.Linear(6, 2)
    traced = oprack.to_program(lambda x: recompute(net, x), [oprack.InputSpec([None, 6], name="x")])
    assert [op.type for op in traced.program.global_block().ops] == [
        op.type for op in oprack.to_program(net, [oprack.InputSpec([None, 6], name="x")]).program.global_block().ops
    ]


def test_what_would_be_wrong_numbers_is_an_error():
    net = nn.Linear(6, 6)
    x = oprack.to_tensor(X)
    y = recompute(lambda t: F.tanh(net(t)), x)
    x.set_value(X + 1)
    with pytest.raises(PreconditionNotMetError, match="the gradient of recompute needs its input"):
        y.sum().backward()
    y = recompute(lambda t: F.tanh(net(t)), oprack.to_tensor(X))
    net.weight.set_value(net.weight.numpy() + 1)
    with pytest.raises(PreconditionNotMetError, match="changed in place since by an op or a step of an optimizer"):
        y.sum().backward()
    calls = []
    y = recompute(lambda t: F.tanh(net(t)) if calls or calls.append(1) else F.relu(net(t)), oprack.to_tensor(X))
    with pytest.raises(PreconditionNotMetError, match=r"recorded .*relu.* the first time and .*tanh.* the second"):
        y.sum().backward()
    leaked = []
    recompute(lambda t: (leaked.append(F.tanh(net(t))), F.relu(leaked[0]))[1], oprack.to_tensor(X))
    with pytest.raises(PreconditionNotMetError, match="is inside a function of recompute"):
        leaked[0].sum().backward()
