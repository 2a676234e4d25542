"""Beside layers: groups of parameters, LBFGS, PyLayer, files, jit, summary, metrics, containers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import oprack
import pytest
from oprack import nn, optimizer, to_tensor
from oprack.errors import CorruptParameterError, InvalidArgumentError


def _leaf(*values: float) -> Any:
    return to_tensor(np.array(values, "float32"), requires_grad=True)


# Optimizers -----------------------------------------------------------------------------------------------------------
def test_groups_have_settings_of_their_own() -> None:
    a, b, c = _leaf(1, 2), _leaf(1, 2), _leaf(1, 2)
    groups = [{"params": [a], "learning_rate": 0.5}, {"params": [b], "weight_decay": 1.0}, {"params": [c]}]
    sgd = optimizer.SGD(0.1, parameters=groups)
    (a.sum() + b.sum() + c.sum()).backward()
    sgd.step()
    np.testing.assert_allclose(a.numpy(), [0.95, 1.95], rtol=1e-6)  # w - 0.1 * 0.5 * 1
    np.testing.assert_allclose(b.numpy(), [1 - 0.1 * 2, 2 - 0.1 * 3], rtol=1e-6)  # w - 0.1 * (1 + 1.0 * w)
    np.testing.assert_allclose(c.numpy(), [0.9, 1.9], rtol=1e-6)


def test_a_group_clips_and_decays_by_itself() -> None:
    a, b = _leaf(3, 4), _leaf(3, 4)
    clip = optimizer.ClipGradByNorm(1.0)
    adamw = optimizer.AdamW(0.1, parameters=[{"params": [a], "weight_decay": 0.0}, {"params": [b]}], weight_decay=0.5)
    sgd = optimizer.SGD(1.0, parameters=[{"params": [a], "grad_clip": clip}, {"params": [b]}])
    ((a * a).sum() / 2 + (b * b).sum() / 2).backward()
    sgd.step()
    np.testing.assert_allclose(a.numpy(), [3 - 0.6, 4 - 0.8], rtol=1e-6)
    np.testing.assert_allclose(b.numpy(), [0, 0], atol=1e-6)
    a.set_value([1, 1])
    b.set_value([1, 1])
    adamw.step()
    # Adam's first step is the learning rate; b decays by 0.1 * 0.5 before
    np.testing.assert_allclose(a.numpy(), [0.9, 0.9], rtol=1e-5)
    np.testing.assert_allclose(b.numpy(), [0.85, 0.85], rtol=1e-5)


def test_a_group_refuses_what_the_optimizer_does_not_have() -> None:
    a = _leaf(1)
    a.sum().backward()
    with pytest.raises(InvalidArgumentError, match=r"'lr'; write learning_rate=0.1; .*factor"):
        optimizer.SGD(0.1, parameters=[{"params": [a], "lr": 0.1}]).step()
    with pytest.raises(InvalidArgumentError, match="one argument"):
        optimizer.SGD(0.1, parameters=[a], parameter_list=[a])
    optimizer.SGD([a], 0.1).step()  # parameters first, as in PyTorch


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_finds_the_least_of_rosenbrock(search: str | None) -> None:
    p = to_tensor(np.array([-1.2, 1.0]), requires_grad=True)
    lbfgs = optimizer.LBFGS(1.0 if search else 0.5, max_iter=50, parameters=[p], line_search_fn=search)

    def closure() -> Any:
        lbfgs.clear_grad()
        loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
        loss.backward()
        return loss

    for _ in range(6):
        lbfgs.step(closure)
    np.testing.assert_allclose(p.numpy(), [1, 1], atol=1e-4)


def test_help_names_every_argument() -> None:
    import inspect

    for name in ("Adam", "SGD", "Lamb", "LBFGS"):
        parameters = inspect.signature(getattr(optimizer, name)).parameters
        assert {"learning_rate", "parameters", "weight_decay", "grad_clip"} <= set(parameters), name


# Gradients by hand ----------------------------------------------------------------------------------------------------
class Both(NamedTuple):
    product: Any
    total: Any


class Scaled(oprack.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any, factor: float, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        ctx.factor = factor
        return Both(x * y * factor, x + y)

    @staticmethod
    def backward(ctx: Any, product: Any, total: Any) -> Any:
        x, y = ctx.saved_tensor()
        return product * y * ctx.factor + total, product * x * ctx.factor + total


def test_a_pylayer_has_the_gradient_that_it_says() -> None:
    x, y = _leaf(1, 2), _leaf(3, 4)
    both = Scaled.apply(x, 2.0, y)
    (both.product.sum() + (both.total * to_tensor([1.0, 10.0])).sum()).backward()
    np.testing.assert_allclose(x.grad.numpy(), [3 * 2 + 1, 4 * 2 + 10])
    np.testing.assert_allclose(y.grad.numpy(), [1 * 2 + 1, 2 * 2 + 10])
    x.clear_grad()
    Scaled.apply(x, 2.0, y.detach())[0].sum().backward()  # nothing reads the other result
    np.testing.assert_allclose(x.grad.numpy(), [6, 8])
    with oprack.no_grad():
        assert not Scaled.apply(x, 2.0, y)[0].requires_grad


def test_a_pylayer_returns_as_many_gradients_as_it_has_tensors() -> None:
    class Wrong(Scaled):
        @staticmethod
        def backward(ctx: Any, product: Any, total: Any) -> Any:
            return product

    with pytest.raises(InvalidArgumentError, match="returned 1 gradients; expected 2"):
        Wrong.apply(_leaf(1), 1.0, _leaf(2))[0].sum().backward()


def test_set_grad_enabled() -> None:
    x = _leaf(1)
    for on in (True, False):
        with oprack.set_grad_enabled(on):
            assert (x * 2).requires_grad is on


# Files ----------------------------------------------------------------------------------------------------------------
def test_a_checkpoint_is_one_file(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    adam = optimizer.Adam(0.1, parameters=net.parameters())
    net(to_tensor([[1.0, 2.0]])).sum().backward()
    adam.step()
    path = tmp_path / "checkpoint.npz"
    state = {"net": net.state_dict(), "optimizer": adam.state_dict(), "epoch": 3, "notes": ["a", (1, None)]}
    oprack.save(state, path)
    found = oprack.load(path)
    assert found["epoch"] == 3 and found["notes"] == ["a", (1, None)]
    fresh = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    fresh.set_state_dict(found["net"])
    again = optimizer.Adam(0.1, parameters=fresh.parameters())
    again.set_state_dict(found["optimizer"])
    for a, b in zip(net.parameters(), fresh.parameters(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    np.testing.assert_array_equal(again.state_dict()["0.moment1"], adam.state_dict()["0.moment1"])


def test_what_can_not_be_saved_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"obj\['a'\]\['0'\] is a set; .*state_dict"):
        oprack.save({"a": [{1}]}, tmp_path / "a")
    with pytest.raises(InvalidArgumentError, match="key 1; expected text"):
        oprack.save({1: 2}, tmp_path / "a")
    oprack.io.save_state(tmp_path / "b", {"x": 1})
    with pytest.raises(CorruptParameterError, match="load_state reads"):
        oprack.load(tmp_path / "b")
    for tree in (["dict"], ["array", None], ["no", []], "x", ["dict", [1]]):
        oprack.io.save_state(tmp_path / "c", {"tree": tree})
        with pytest.raises(CorruptParameterError):
            oprack.load(tmp_path / "c")


# Programs of functions ------------------------------------------------------------------------------------------------
def test_jit_takes_keywords_and_keeps_the_module() -> None:
    fast = oprack.jit(nn.Linear(2, 3))
    x = to_tensor([[1.0, 2.0]])
    assert fast(x).shape == (1, 3) and len(fast.parameters()) == 2 and "weight" in fast.state_dict()
    fast.eval()
    assert fast.training is False and "state_dict" in dir(fast)
    scaled = oprack.jit(lambda t, k=1, mask=None, mode="up": t * k if mask is None else t * mask * k)
    assert scaled(x, k=3).tolist() == [[3, 6]] and scaled(x).tolist() == [[1, 2]]
    assert scaled(x, mask=x, k=2).tolist() == [[2, 8]] and scaled(x, k=3.5).tolist() == [[3.5, 7]]
    y = to_tensor([[1.0, 2.0]], requires_grad=True)
    scaled(x, mask=y).sum().backward()
    assert y.grad.tolist() == [[1, 2]]
    with pytest.raises(InvalidArgumentError, match="argument k is a set"):
        scaled(x, k=set())


def test_jit_says_what_it_can_not_write_down() -> None:
    x = to_tensor([[1.0, 2.0]])
    with pytest.raises(Exception, match=r"layers\.cond"):
        oprack.jit(lambda t: t if t.sum() > 0 else -t)(x)
    with pytest.raises(Exception, match="Python runs once, for all inputs"):
        oprack.jit(lambda t: t * float(t.sum()))(x)


def test_summary_counts_and_leaves_the_net_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    net = nn.Sequential(nn.Conv2D(3, 4, 3), nn.BatchNorm2D(4), nn.Flatten(), nn.Linear(144, 2, bias_attr=False))
    net[1].eval()
    before = net[1].mean.numpy()
    assert oprack.summary(net, [1, 3, 8, 8]) == {"total_params": 112 + 8 + 288, "trainable_params": 112 + 8 + 288}
    printed = capsys.readouterr().out
    assert "[1, 4, 6, 6]" in printed and "408 parameters" in printed
    assert net.training and not net[1].training and (net[1].mean.numpy() == before).all()


# Metrics and networks -------------------------------------------------------------------------------------------------
def test_metrics_count_over_batches() -> None:
    scores, labels = np.array([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]), np.array([1, 1, 2])
    accuracy = oprack.metrics.Accuracy(topk=(1, 2))
    accuracy.update(accuracy.compute(to_tensor(scores), to_tensor(labels.reshape(3, 1))))
    accuracy.update(scores[:1], labels[1:2] * 0)
    assert accuracy.accumulate() == [2 / 4, 3 / 4] and accuracy.name() == ["acc_top1", "acc_top2"]
    said, right = np.array([0.9, 0.6, 0.4, 0.2]), np.array([1, 0, 1, 0])
    for metric, wanted in ((oprack.metrics.Precision(), 0.5), (oprack.metrics.Recall(), 0.5)):
        metric.update(said[:2], right[:2])
        metric.update(said[2:], right[2:])
        assert metric.accumulate() == wanted
    auc = oprack.metrics.Auc()
    auc.update(np.stack([1 - said, said], 1), right)
    assert auc.accumulate() == 3 / 4  # of four pairs, one is the wrong way round


def test_clipping_of_gradients_by_their_norm() -> None:
    a, b = _leaf(3), _leaf(4)
    (a * a / 2 + b * b / 2).sum().backward()
    assert float(nn.utils.clip_grad_norm_([a, b], 1.0)) == pytest.approx(5)
    assert a.grad.item() == pytest.approx(0.6, rel=1e-4) and b.grad.item() == pytest.approx(0.8, rel=1e-4)
    nn.utils.clip_grad_value_([a, b], 0.7)
    assert b.grad.item() == pytest.approx(0.7)
    vector = nn.utils.parameters_to_vector([a, b])
    nn.utils.vector_to_parameters(vector * 2, [a, b])
    assert (a.item(), b.item()) == (6, 8)


def test_containers() -> None:
    net = nn.Sequential(("first", nn.Linear(2, 3)), ("act", nn.ReLU()))
    assert net["first"] is net[0] and len(net[:1]) == 1 and [*net.state_dict()] == ["first.weight", "first.bias"]
    net.append(nn.Linear(3, 1))
    net.insert(0, nn.Identity())
    assert net(to_tensor([[1.0, 2.0]])).shape == (1, 1) and len(net) == 4
    parts = nn.ModuleDict({"a": nn.Linear(2, 2)})
    parts["b"] = nn.ReLU()
    assert list(parts.keys()) == ["a", "b"] and len(parts.parameters()) == 2
    with pytest.raises(LookupError, match=r"no part 'aa'.*did you mean a"):
        parts["aa"]
    weights = nn.ParameterList([oprack.Parameter(np.ones(2, "float32"))])
    assert len(weights.parameters()) == 1 and weights[0].shape == (2,)
    seen: list[str] = []
    net.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Identity", "Linear", "ReLU", "Linear", "Sequential"]
    net.register_forward_pre_hook(lambda m, args: (args[0] * 0,))
    np.testing.assert_allclose(net(to_tensor([[1.0, 2.0]])).numpy(), net[3](to_tensor([[0.0] * 3])).numpy(), atol=1e-6)


def test_copies_of_layers_are_trained_apart() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 3)
    adam = optimizer.Adam(0.1, parameters=encoder.parameters())
    encoder(oprack.randn([2, 5, 4])).sum().backward()
    adam.step()
    assert len({p.name for p in encoder.parameters()}) == len(encoder.parameters()) == 3 * 16


@pytest.mark.parametrize("kind", ["SimpleRNN", "LSTM", "GRU"])
def test_cells_are_steps_of_their_layers(kind: str) -> None:
    layer, cell = getattr(nn, kind)(3, 4), getattr(nn, f"{kind}Cell")(3, 4)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(cell, name).set_value(getattr(layer, f"{name}_l0"))
    x, state = oprack.randn([2, 5, 3]), None
    outputs = []
    for step in range(5):
        y, state = cell(x[:, step], state)
        outputs.append(y)
    np.testing.assert_allclose(layer(x)[0].numpy(), oprack.stack(outputs, 1).numpy(), rtol=1e-5, atol=1e-6)


def test_orthogonal_weights() -> None:
    for size in ([6, 3], [3, 2, 2, 2]):
        w = oprack.nn.create_parameter(size, default_initializer=nn.initializer.Orthogonal(2.0)).numpy()
        w = w.reshape(size[0], -1)
        gram = w.T @ w if w.shape[0] > w.shape[1] else w @ w.T
        np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=1e-5)


def test_weights_of_positive_labels_by_numpy() -> None:
    r = np.random.default_rng(4)
    x, y, p = r.normal(size=(3, 4)), r.uniform(size=(3, 4)), np.array([1.0, 2.0, 0.5, 3.0])
    said = 1 / (1 + np.exp(-x))
    wanted = -(p * y * np.log(said) + (1 - y) * np.log(1 - said))
    found = nn.BCEWithLogitsLoss(reduction="none", pos_weight=to_tensor(p))(to_tensor(x), to_tensor(y))
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


def test_attention_by_numpy() -> None:
    r = np.random.default_rng(3)
    q, k, v = (r.normal(size=(2, 5, 2, 4)).astype("float32") for _ in range(3))
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / 2
    scores = np.where(np.tril(np.ones((5, 5), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = np.einsum("bhqk,bkhd->bqhd", weights / weights.sum(-1, keepdims=True), v)
    attend = nn.functional.scaled_dot_product_attention
    tensors = [to_tensor(t) for t in (q, k, v)]
    np.testing.assert_allclose(attend(*tensors, is_causal=True).numpy(), wanted, rtol=1e-4, atol=1e-6)
    mask = to_tensor(np.tril(np.ones((5, 5), bool)))
    np.testing.assert_allclose(attend(*tensors, attn_mask=mask).numpy(), wanted, rtol=1e-4, atol=1e-6)


def _nadam(steps: int) -> np.ndarray:
    w, m, v, product = np.array([1.0, -2.0, 3.0]), np.zeros(3), np.zeros(3), 1.0
    for t in range(1, steps + 1):
        g = 3 * w * w
        now, then = (0.9 * (1 - 0.5 * 0.96 ** (s * 0.004)) for s in (t, t + 1))
        product *= now
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        momentum = then * m / (1 - product * then) + (1 - now) * g / (1 - product)
        w = w - 0.1 * momentum / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return w


def _radam(steps: int) -> np.ndarray:
    w, m, v, most = np.array([1.0, -2.0, 3.0]), np.zeros(3), np.zeros(3), 2 / 0.001 - 1
    for t in range(1, steps + 1):
        g = 3 * w * w
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        n = most - 2 * t * 0.999**t / (1 - 0.999**t)
        factor = 1.0
        if n > 5:
            share = (n - 4) * (n - 2) * most / ((most - 4) * (most - 2) * n)
            factor = np.sqrt(share) * np.sqrt(1 - 0.999**t) / (np.sqrt(v) + 1e-8)
        w = w - 0.1 * m / (1 - 0.9**t) * factor
    return w


@pytest.mark.parametrize(("name", "wanted"), [("NAdam", _nadam), ("RAdam", _radam)])
def test_updates_that_are_written_out(name: str, wanted: Any) -> None:
    w = to_tensor(np.array([1.0, -2.0, 3.0]), requires_grad=True)
    update = getattr(optimizer, name)(0.1, parameters=[w])
    for _ in range(8):
        (w * w * w).sum().backward()
        update.step()
        update.clear_grad()
    np.testing.assert_allclose(w.numpy(), wanted(8), rtol=5e-4)  # attributes of ops are float32
    assert {"0.moment1", "0.beta2_pow"} <= set(update.state_dict())
