"""Modules, their state, optimizers on their parameters, and the way from modules to programs."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack import InputSpec, inference, io, nn, no_grad, optimizer, to_program, to_tensor, unique_name
from oprack import functional as F
from oprack.errors import (
    InvalidArgumentError,
    NotFoundError,
    PreconditionNotMetError,
    UnknownLayerError,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((4, 3)).astype(np.float32)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 5)
        self.norm = nn.BatchNorm(5)
        self.rest = nn.Sequential(nn.ReLU(), nn.Dropout(0.5), nn.Linear(5, 2, bias_attr=False))

    def forward(self, x):
        return self.rest(self.norm(self.first(x)))


def _net() -> Net:
    oprack.seed(1)
    with unique_name.guard():
        return Net()


def test_parts_and_names() -> None:
    net = _net()
    paths = ["first.weight", "first.bias", "norm.weight", "norm.bias", "rest.2.weight"]
    assert [n for n, _ in net.named_parameters()] == paths
    assert net.first.weight.name == "linear_0.w_0" and net.norm.bias.name == "batchnorm_0.b_0"
    assert [n for n, _ in net.named_buffers()] == ["norm.mean", "norm.variance"]
    assert len(list(net.modules())) == 7 and isinstance(net.rest[2], nn.Linear) and len(net.rest) == 3
    assert "(first): Linear(weight: [3, 5], bias: [5])" in repr(net) and "p=0.5" in repr(net)
    net.shared = net.first
    assert len(net.parameters()) == 5
    del net.shared
    assert not hasattr(net, "shared") and hasattr(net, "first")
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'second'"):
        _ = net.second
    with pytest.raises(UnknownLayerError, match="Linear"):
        _ = nn.Linaer
    with pytest.raises(InvalidArgumentError, match="super"):

        class Early(nn.Module):
            def __init__(self):
                self.a = 1

        Early()


def test_same_seed_same_parameters() -> None:
    for a, b in zip(_net().parameters(), _net().parameters(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_training_and_evaluation() -> None:
    net = _net()
    before = net.norm.mean.numpy()
    out = net(to_tensor(X))
    assert out.requires_grad and (net.norm.mean.numpy() != before).any()
    assert not net.norm.mean.requires_grad and net.norm.mean.is_leaf
    net.eval()
    kept = net.norm.mean.numpy()
    np.testing.assert_array_equal(net(to_tensor(X)).numpy(), net(to_tensor(X)).numpy())
    np.testing.assert_array_equal(net.norm.mean.numpy(), kept)
    assert not net.rest[1].training and net.train().rest[1].training


def test_state() -> None:
    net, other = _net(), Net()
    net(to_tensor(X))
    other.set_state_dict(net.state_dict())
    for name, value in other.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), net.state_dict()[name].numpy())
    state = {n: v.numpy() for n, v in net.state_dict().items()}
    with pytest.raises(NotFoundError, match=r"has no first\.bias"):
        other.set_state_dict({n: v for n, v in state.items() if n != "first.bias"})
    with pytest.raises(InvalidArgumentError, match=r"first\.weight has shape \[3, 5\]"):
        other.set_state_dict(state | {"first.weight": np.zeros(3)})
    other.set_state_dict({"first.bias": np.ones(5)}, strict=False)
    np.testing.assert_array_equal(other.first.bias.numpy(), np.ones(5))


def test_state_on_disk(tmp_path) -> None:
    net = _net()
    opt = optimizer.Adam(0.1, parameter_list=net.parameters())
    net(to_tensor(X)).sum().backward()
    opt.step()
    io.save_state(tmp_path / "net.npz", net.state_dict() | {f"optimizer/{n}": v for n, v in opt.state_dict().items()})
    found = io.load_state(tmp_path / "net.npz")
    np.testing.assert_array_equal(found["first.weight"], net.first.weight.numpy())
    assert any(n.startswith("optimizer/0.moment1") for n in found)


def test_hooks_of_modules() -> None:
    net, seen = _net().eval(), []
    remove = net.first.register_forward_hook(lambda module, args, result: seen.append(result.shape))
    net(to_tensor(X))
    remove()
    net(to_tensor(X))
    assert seen == [(4, 5)]


def test_lists_and_types() -> None:
    parts = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    parts.append(nn.ReLU())
    assert len(parts) == 4 and [type(p).__name__ for p in parts][-1] == "ReLU" and len(parts.state_dict()) == 6
    layer = nn.Linear(2, 2).to(dtype="float64")
    assert layer.weight.dtype == "float64" and layer.weight.requires_grad
    assert layer(to_tensor(np.ones((1, 2)))).dtype == "float64"
    frozen = nn.Linear(2, 2, weight_attr=oprack.ParamAttr(trainable=False, name="w"))
    assert not frozen.weight.requires_grad and frozen.weight.name == "w"


MODULES = [
    (lambda: nn.Conv2D(4, 6, 3, padding=1, stride=2), (2, 4, 5, 5), (2, 6, 3, 3)),
    (lambda: nn.Conv2D(4, 4, 3, groups=4), (2, 4, 5, 5), (2, 4, 3, 3)),
    (lambda: nn.Conv2DTranspose(4, 2, 2, stride=2), (1, 4, 3, 3), (1, 2, 6, 6)),
    (lambda: nn.MaxPool2D(2), (1, 2, 4, 4), (1, 2, 2, 2)),
    (lambda: nn.AvgPool2D(3, stride=1, padding=1), (1, 2, 4, 4), (1, 2, 4, 4)),
    (lambda: nn.AdaptiveAvgPool2D(2), (1, 2, 5, 7), (1, 2, 2, 2)),
    (lambda: nn.LayerNorm(4), (2, 3, 4), (2, 3, 4)),
    (lambda: nn.LayerNorm([3, 4]), (2, 3, 4), (2, 3, 4)),
    (lambda: nn.GroupNorm(2, 4), (2, 4, 3, 3), (2, 4, 3, 3)),
    (lambda: nn.InstanceNorm(4), (2, 4, 3, 3), (2, 4, 3, 3)),
    (lambda: nn.Flatten(), (2, 3, 4), (2, 12)),
    (lambda: nn.GELU(), (2, 3), (2, 3)),
    (lambda: nn.Softmax(axis=0), (2, 3), (2, 3)),
    (lambda: nn.LeakyReLU(alpha=0.2), (2, 3), (2, 3)),
]


@pytest.mark.parametrize(("make", "shape", "expected"), MODULES)
def test_modules_of_packs(make, shape, expected) -> None:
    module = make().to(dtype="float64")
    x = rng.standard_normal(shape)
    assert module(to_tensor(x)).shape == expected
    assert oprack.gradcheck(module, [x]) == []


@pytest.mark.parametrize("name", ["SimpleRNN", "LSTM", "GRU"])
@pytest.mark.parametrize("direction", ["forward", "bidirect"])
def test_recurrent_modules(name: str, direction: str) -> None:
    module = getattr(nn, name)(3, 4, num_layers=2, direction=direction).to(dtype="float64")
    x = rng.standard_normal((2, 5, 3))
    out, state = module(to_tensor(x))
    width = 8 if direction == "bidirect" else 4
    states = state if name == "LSTM" else (state,)
    assert out.shape == (2, 5, width) and [s.shape for s in states] == [(width // 2, 2, 4)] * len(states)
    assert oprack.gradcheck(lambda v: module(v)[0], [x]) == []
    lengths = to_tensor(np.array([5, 3], np.int32))
    padded, _ = module(to_tensor(x), lengths=lengths)
    alone, _ = module(to_tensor(x[1:, :3]))
    np.testing.assert_allclose(padded.numpy()[1:, :3], alone.numpy(), rtol=1e-9)
    assert not padded.numpy()[1, 3:].any()
    traced = to_program(lambda v: module(v)[0], [InputSpec([None, 5, 3], "float64")])
    (found,) = oprack.Executor().run(traced.program, {"x0": x}, traced.fetch_names, traced.scope)
    np.testing.assert_allclose(found, out.numpy(), rtol=1e-9)


def test_a_cell_by_hand() -> None:
    gru = nn.GRU(3, 2).to(dtype="float64")
    x = rng.standard_normal((1, 1, 3))
    h0 = rng.standard_normal((1, 1, 2))
    w = {n: p.numpy() for n, p in gru.named_parameters()}
    a, b = w["weight_ih_l0"] @ x[0, 0] + w["bias_ih_l0"], w["weight_hh_l0"] @ h0[0, 0] + w["bias_hh_l0"]
    r, z = (1 / (1 + np.exp(-(a + b)[i : i + 2])) for i in (0, 2))
    n = np.tanh(a[4:] + r * b[4:])
    out, _ = gru(to_tensor(x), to_tensor(h0))
    np.testing.assert_allclose(out.numpy()[0, 0], (1 - z) * n + z * h0[0, 0], rtol=1e-9)


def test_losses() -> None:
    logits, labels = to_tensor(X, requires_grad=True), to_tensor([[0], [1], [2], [0]])
    mean, total = nn.CrossEntropyLoss()(logits, labels), nn.CrossEntropyLoss(reduction="sum")(logits, labels)
    np.testing.assert_allclose(total.item(), 4 * mean.item(), rtol=1e-6)
    np.testing.assert_allclose(mean.item(), F.cross_entropy(F.softmax(logits), labels).mean().item(), rtol=1e-6)
    assert nn.CrossEntropyLoss(reduction="none")(logits, labels).shape == (4, 1)
    np.testing.assert_allclose(nn.MSELoss()(logits, logits.detach() + 1).item(), 1.0, rtol=1e-6)
    np.testing.assert_allclose(nn.L1Loss()(logits, logits.detach() + 1).item(), 1.0, rtol=1e-6)
    with pytest.raises(InvalidArgumentError, match="reduction"):
        nn.MSELoss("avg")


# Optimizers -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name", ["SGD", "Momentum", "Adam", "AdamW", "Adamax", "Adagrad", "Adadelta", "RMSProp", "Ftrl", "Lamb"]
)
def test_every_optimizer_steps(name: str) -> None:
    net = nn.Linear(3, 1)
    options = {"momentum": 0.9} if name == "Momentum" else {}
    opt = getattr(optimizer, name)(0.05, parameter_list=net.parameters(), **options)
    target = to_tensor(X @ np.float32([[1], [2], [3]]))
    losses = []
    for _ in range(15):
        loss = nn.MSELoss()(net(to_tensor(X)), target)
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0] and net.weight.grad is None


def test_state_of_optimizers_goes_on() -> None:
    def run(opt, net, steps: int) -> None:
        for _ in range(steps):
            (net(to_tensor(X)) ** 2.0).sum().backward()
            opt.step()
            opt.clear_grad()
            opt.schedule.step()

    def make():
        oprack.seed(2)
        with unique_name.guard():
            net = nn.Linear(3, 2)
        rate = optimizer.lr.StepDecay(0.1, step_size=2)
        return optimizer.Adam(rate, parameter_list=net.parameters()), net

    whole, expected = make()
    run(whole, expected, 5)
    first, net = make()
    run(first, net, 3)
    second, resumed = make()
    resumed.set_state_dict(net.state_dict())
    second.set_state_dict(first.state_dict())
    run(second, resumed, 2)
    for a, b in zip(resumed.parameters(), expected.parameters(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_only_parameters_with_gradients_are_stepped() -> None:
    used, unused = nn.Linear(3, 2), nn.Linear(3, 2)
    opt = optimizer.Adam(0.1, parameter_list=[*used.parameters(), *unused.parameters()])
    with pytest.raises(PreconditionNotMetError, match="no parameter has a gradient"):
        opt.step()
    before = unused.weight.numpy()
    for parts in ([used], [used, unused], [unused]):
        sum((part(to_tensor(X)).sum() for part in parts), to_tensor(0.0)).backward()
        opt.step()
        opt.clear_grad()
    assert (unused.weight.numpy() != before).any()
    with pytest.raises(PreconditionNotMetError, match=r"parameters=net\.parameters\(\)"):
        optimizer.SGD(0.1).step()
    with pytest.raises(InvalidArgumentError, match="a name"):
        optimizer.SGD(0.1, parameter_list=[to_tensor(X, requires_grad=True, name="w") for _ in range(2)]).step()


def test_a_step_is_noticed_by_what_was_saved_before() -> None:
    net = nn.Linear(3, 2)
    opt = optimizer.SGD(0.1, parameter_list=net.parameters())
    loss = (net(to_tensor(X, requires_grad=True)) ** 2.0).sum()
    loss.backward(retain_graph=True)
    opt.step()
    with pytest.raises(PreconditionNotMetError, match=r"matmul_v2 needs its input Y \('linear_\d+\.w_0'\).*SGD\.step"):
        loss.backward()


# Programs -------------------------------------------------------------------------------------------------------------
def test_a_module_as_a_program(tmp_path) -> None:
    net = _net()
    net(to_tensor(X))
    net.eval()
    expected = net(to_tensor(X)).numpy()
    traced = to_program(net, [InputSpec([None, 3], name="image")])
    assert traced.feed_names == ["image"] and "linear_0.w_0" in traced.tensors
    (found,) = oprack.Executor().run(traced.program, {"image": X}, traced.fetch_names, traced.scope)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    io.save_inference_model(tmp_path / "m", traced.program, traced.feed_names, traced.fetch_names, traced.scope)
    predictor = inference.create_predictor(inference.Config(str(tmp_path / "m.pdmodel"), str(tmp_path / "m.pdiparams")))
    handle = predictor.get_input_handle("image")
    handle.copy_from_cpu(np.concatenate([X, X]))
    predictor.run()
    result = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
    np.testing.assert_allclose(result, np.concatenate([expected, expected]), rtol=1e-5)


def test_functions_as_programs() -> None:
    constant = to_tensor(np.ones(3, np.float32))

    def f(a, b):
        parts = F.split(a, num=3, axis=1)
        return {"sum": (a * 2 + b).sum(), "parts": [parts[0], (a + constant).reshape([-1])[1:].mean()], "same": b}

    traced = to_program(f, [InputSpec([4, 3]), to_tensor(X)])
    values = oprack.Executor().run(traced.program, {"x0": X, "x1": X}, traced.fetch_names, traced.scope)
    eager = f(to_tensor(X), to_tensor(X))
    for found, wanted in zip(values, [eager["sum"], *eager["parts"], eager["same"]], strict=True):
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5)
    with pytest.raises(InvalidArgumentError, match="expected tensors"):
        to_program(lambda x: 3, [InputSpec([1])])
    with pytest.raises(InvalidArgumentError, match="no spec"):
        to_program(f, [3])


def test_jit_gives_the_same_numbers_and_gradients() -> None:
    losses, means = [], []
    for compiled in (False, True):
        net = _net()
        opt = optimizer.Momentum(0.05, 0.9, parameter_list=net.parameters())
        f = oprack.jit(net) if compiled else net
        found = []
        for _ in range(4):
            loss = (f(to_tensor(X)) ** 2.0).mean()
            loss.backward()
            opt.step()
            opt.clear_grad()
            found.append(loss.item())
        losses.append(found)
        means.append(net.norm.mean.numpy())
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-6)
    np.testing.assert_allclose(means[0], means[1], rtol=1e-6)


def test_jit_of_functions() -> None:
    traces = []

    @oprack.jit
    def f(a, b):
        traces.append(a.shape)
        return F.tanh(a @ b), (a * a).sum(axis=0)

    a, b = rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
    assert oprack.gradcheck(f, [a, b], order=2) == []
    count = len(traces)
    f(to_tensor(a, requires_grad=True), to_tensor(b, requires_grad=True))
    assert len(traces) == count and f.__name__ == "f"
    with no_grad():
        assert not f(to_tensor(a), to_tensor(b))[0].requires_grad
    x = to_tensor(a, requires_grad=True)
    y = f(x, to_tensor(b))[1].sum()
    with no_grad():
        x.scale_(2.0)
    with pytest.raises(PreconditionNotMetError, match="changed in place since by scale"):
        y.backward()


def test_jit_of_what_reads_no_tensor_or_has_no_gradient() -> None:
    three = oprack.jit(lambda: F.fill_constant(shape=[2], dtype="float32", value=3.0))
    np.testing.assert_array_equal(three().numpy(), [3, 3])
    largest = oprack.jit(lambda x: F.arg_max(x, axis=0, keepdims=False))
    found = largest(to_tensor([1.0, 4.0, 2.0], requires_grad=True))
    assert found.numpy() == 1 and not found.requires_grad


def test_jit_with_dims_that_vary() -> None:
    traces = []

    def f(x):
        traces.append(x.shape)
        return F.softmax(x * 2)

    compiled = oprack.jit(f, specs=[InputSpec([None, 3])])
    for rows in (1, 4, 2):
        np.testing.assert_allclose(compiled(X[:rows]).numpy(), F.softmax(to_tensor(X[:rows]) * 2).numpy(), rtol=1e-6)
    assert traces[0] == (-1, 3) and len(traces) == 1
