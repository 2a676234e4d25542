"""jit of functions of global tensors: the numbers of eager calls, alike on all ranks; what it can't hold is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import layers, nn, optimizer, parallel
from oprack.errors import CollectiveError, InvalidArgumentError, UnimplementedError
from oprack.testing.worlds import ThreadWorld

RNG = np.random.default_rng(0)
X = RNG.standard_normal((10, 8)).astype("float32")
LABELS = RNG.integers(0, 4, (10, 1))
MEGATRON = {"0.weight": ["B", "S(1)"], "0.bias": ["B", "S(0)"], "3.weight": ["B", "S(0)"]}


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.BatchNorm(16), nn.Linear(16, 4))


@pytest.fixture(scope="module")
def start() -> dict[str, np.ndarray]:
    oprack.seed(3)
    return {name: value.numpy() for name, value in net().state_dict().items()}


def trained(model: Any, x: Any, labels: Any, around: Callable[[Any], Any]) -> tuple[list[float], list[np.ndarray]]:
    step = around(lambda x, labels: F.softmax_with_cross_entropy(model(x), labels).loss.mean())
    adam, found = optimizer.Adam(0.05, parameter_list=model.parameters()), []
    for _ in range(3):
        loss = step(x, labels)
        loss.backward()
        found.append(loss.item())
        adam.step()
        adam.clear_grad()
    return found, [b.numpy() for _, b in model.named_buffers()]


def on_ranks(
    ranks: int, grid: tuple[int, ...], layouts: Any, batch: Any, start: dict[str, np.ndarray], around: Any
) -> list[Any]:
    def rank(world: parallel.Communicator) -> Any:
        placement, model = parallel.placement(shape=grid), net()
        model.set_state_dict(start)
        parallel.to_global(model, placement, layouts)
        x, labels = (oprack.to_tensor(v).to_global(placement, batch, from_whole=True) for v in (X, LABELS))
        return *trained(model, x, labels, around), [m for m in world.record if "all" in m or "reduce" in m]

    return ThreadWorld(ranks).run(rank)


@pytest.mark.parametrize(
    ("ranks", "grid", "layouts", "batch"),
    [(4, (4,), {}, "S(0)"), (4, (2, 2), MEGATRON, ["S(0)", "B"]), (2, (2,), {"*": "S(0)"}, "S(0)")],
    ids=["data-uneven", "data-tensor", "parameters"],
)
def test_a_captured_step_trains_as_eager_calls_on_one_rank(ranks, grid, layouts, batch, start) -> None:
    whole = net()
    whole.set_state_dict(start)
    losses, buffers = trained(whole, oprack.to_tensor(X), oprack.to_tensor(LABELS), lambda f: f)
    eager = on_ranks(ranks, grid, layouts, batch, start, lambda f: f)
    for (found, statistics, sent), (_, _, of_eager) in zip(
        on_ranks(ranks, grid, layouts, batch, start, oprack.jit), eager, strict=True
    ):
        np.testing.assert_allclose(found, losses, rtol=2e-5)
        for a, b in zip(statistics, buffers, strict=True):  # running means are written by the captured call as well
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
        kinds = [text.partition(": ")[2] for text in sent[-12:]]
        assert kinds == [text.partition(": ")[2] for text in of_eager[-12:]]  # the same collectives in the same order


def on_two(function: Callable[..., Any], rows: int = 4) -> list[Any]:
    value = RNG.standard_normal((rows, 2)).astype("float32")

    def rank(world: parallel.Communicator) -> Any:
        x = oprack.to_tensor(value).to_global(parallel.placement(), "S(0)", from_whole=True)
        return function(x, world)

    return [value, *ThreadWorld(2).run(rank)]


def test_gradients_of_gradients_flow_through_captured_calls() -> None:
    def of(x: Any, world: Any) -> Any:
        x.requires_grad = True
        f = oprack.jit(lambda x: (x * x * x.detach() * 2.0).sum())
        (g,) = oprack.grad(f(x), [x], create_graph=True)
        (h,) = oprack.grad((g * g).sum(), [x])
        return g.numpy(), h.numpy()

    value, *found = on_two(of)
    for g, h in found:
        np.testing.assert_allclose(g, 4 * value**2, rtol=1e-5)
        np.testing.assert_allclose(h, 32 * value**3, rtol=1e-5)  # of the detached factor there is no slope


def test_a_shape_whose_part_is_the_same_on_one_rank_is_captured_anew() -> None:
    def of(x: Any, world: Any) -> Any:
        f = oprack.jit(lambda x: x.reshape([-1, 1]) / float(x.shape[0]))
        first, shorter = f(x), x[:3].to_global(sbp="S(0)")
        return first.numpy(), f(shorter).numpy(), repr(f)

    value, *found = on_two(of)
    for whole, shorter, text in found:
        np.testing.assert_allclose(whole, value.reshape(-1, 1) / 4, rtol=1e-6)
        np.testing.assert_allclose(shorter, value[:3].reshape(-1, 1) / 3, rtol=1e-6)
        assert "for 2 kinds of calls" in text


def test_what_the_function_reads_is_compared_in_each_call() -> None:
    def of(x: Any, world: Any) -> Any:
        settings = {"factor": 2.0}
        f = oprack.jit(lambda x: x * settings["factor"])
        first = f(x).numpy()
        settings["factor"] = 3.0
        return first, f(x).numpy()

    value, *found = on_two(of)
    for twice, thrice in found:
        np.testing.assert_allclose(twice, 2 * value, rtol=1e-6)
        np.testing.assert_allclose(thrice, 3 * value, rtol=1e-6)


def test_a_module_whose_weights_become_global_is_captured_anew() -> None:
    rows = X[:4]

    def rank(world: parallel.Communicator) -> Any:
        placement, layer = parallel.placement(), nn.Linear(8, 2)
        fast, x = oprack.jit(layer), oprack.to_tensor(rows)
        alone = fast(x).numpy()
        parallel.to_global(layer, placement, {"weight": "S(1)", "bias": "S(0)"})
        found = fast(x.to_global(placement, "B", from_whole=True))
        with pytest.raises(InvalidArgumentError, match="is of this process alone, other inputs are global"):
            fast(x)
        return alone, found.numpy(), found.is_global

    first, *others = ThreadWorld(2).run(rank)
    for alone, found, is_global in (first, *others):
        assert is_global
        np.testing.assert_allclose(found, first[0], rtol=1e-5)  # the weights are those of rank 0
        assert alone.shape == found.shape


def test_random_numbers_are_those_of_eager_calls() -> None:
    # One rank, since ranks that are threads draw from one source.
    x, found = oprack.to_tensor(X).to_global(parallel.placement(), "S(0)", from_whole=True), []
    for f in (F.dropout, oprack.jit(lambda x, **k: F.dropout(x, **k))):
        oprack.seed(5)
        found.append([f(x, dropout_prob=0.5).numpy() for _ in range(2)])
    np.testing.assert_array_equal(*found)
    assert (found[0][0] != found[0][1]).any()


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x, world: oprack.jit(lambda x: x.to_global(sbp="B"))(x), UnimplementedError, "has no layout while"),
        (lambda x, world: oprack.jit(lambda x: x if x.is_global else x * 2)(x), UnimplementedError, "to_local()"),
        (
            lambda x, world: oprack.jit(lambda x: layers.cond(x.sum() > 0, lambda: x * 2, lambda: x))(x),
            UnimplementedError,
            "a loop or a branch .op conditional_block",
        ),
        (
            lambda x, world: oprack.jit(lambda x: x * 2 if world.rank else x + 1)(x),
            CollectiveError,
            "decide differently on what jit captured of <lambda>, whose branches and settings",
        ),
        (lambda x, world: oprack.to_program(lambda y: x * y, [oprack.InputSpec([4, 2])]), UnimplementedError, "global"),
    ],
    ids=["to_global", "is_global", "branch", "differs", "to_program"],
)
def test_what_can_not_be_captured_is_refused(function: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        on_two(function)
