"""jit over a lifetime: what changes between calls, in other threads, and between forward and backward."""

from __future__ import annotations

import functools
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import nn, parallel, to_tensor
from oprack.amp import autocast
from oprack.errors import InvalidArgumentError, NanInfError, PreconditionNotMetError, UnimplementedError
from oprack.testing.worlds import ThreadWorld

ONES = np.ones((1, 8), np.float32)
FACTOR = 2.0


def _x(array: Any = ONES, grad: bool = False) -> Any:
    return to_tensor(np.array(array, np.float32), requires_grad=grad)


def _linear(n: int = 2) -> nn.Linear:
    net = nn.Linear(n, n)
    net.weight.set_value(np.eye(n, dtype=np.float32) * 3)
    net.bias.set_value(np.zeros(n, np.float32))
    return net


class Scaled(nn.Module):
    """A Module whose result depends on plain attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.factor, self.table, self.parts = 2.0, [1.0, 2.0], {"a": {"b": 3.0}}
        self.config = Config()
        self.seen = 0

    def forward(self, x: Any) -> Any:
        self.seen += 1
        return x * (self.factor * self.table[1] * self.parts["a"]["b"] * self.config.scale)


class Config:
    def __init__(self) -> None:
        self.scale = 1.0


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", to_tensor(np.zeros(2, np.float32)))
        self.act = None

    def forward(self, x: Any) -> Any:
        y = x - self.mean
        return y if self.act is None else self.act(y)


def _counted(function: Callable[..., Any]) -> tuple[Any, list[int]]:
    """A jitted function, and a list that grows with each capture."""
    calls: list[int] = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return function(*args, **kwargs)

    return oprack.jit(counted), calls


# What the function reads ----------------------------------------------------------------------------------------------
def test_parameters_that_are_unfrozen_get_gradients() -> None:
    net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    f = oprack.jit(net)
    for p in net[0].parameters():
        p.requires_grad = False
    f(_x()).sum().backward()
    assert [p.grad is None for p in net.parameters()] == [True, True, False, False]
    for p in net.parameters():
        p.requires_grad = True
        p.clear_grad()
    f(_x()).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    for p in net[1].parameters():
        p.requires_grad = False
    net.clear_grad()
    f(_x()).sum().backward()
    assert [p.grad is None for p in net.parameters()] == [False, False, True, True]


def test_modes_of_parts() -> None:
    net = nn.Sequential(nn.Identity() if hasattr(nn, "Identity") else nn.ReLU(), nn.Dropout(1.0))
    for f in (oprack.jit(net), oprack.jit(lambda x: net(x)), oprack.jit(lambda x: net[1](x))):
        net.train()
        assert not f(_x()).numpy().any()
        net.eval()
        assert f(_x()).numpy().all()
        net[1].train()
        assert not f(_x()).numpy().any()
        net[1].eval()
        assert f(_x()).numpy().all()


def test_a_frozen_batch_norm_uses_its_running_statistics() -> None:
    net = nn.Sequential(nn.BatchNorm2D(2))
    f = oprack.jit(net)
    image = _x(np.arange(16).reshape(2, 2, 2, 2))
    f(image)
    net[0].eval()
    mean, variance = net[0].mean.numpy(), net[0].variance.numpy()
    expected = (image.numpy() - mean[:, None, None]) / np.sqrt(variance[:, None, None] + 1e-5)
    np.testing.assert_allclose(f(image).numpy(), expected, rtol=1e-5)
    np.testing.assert_array_equal(net[0].mean.numpy(), mean)


def test_programs_of_earlier_states_are_used_again() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    f, calls = _counted(lambda x: net(x))
    for _ in range(3):
        net.train()
        f(_x([[1.0, 2.0]]))
        net.eval()
        f(_x([[1.0, 2.0]]))
    assert len(calls) == 2


def test_parameters_and_buffers_that_are_replaced() -> None:
    net, other = _linear(), _linear()
    f = oprack.jit(net)
    x = _x([[1.0, 2.0]])
    assert f(x).tolist() == [[3, 6]]
    other.weight.set_value(np.full((2, 2), 2.0, np.float32))
    net.weight = other.weight
    assert f(x).tolist() == [[6, 6]]
    f(x).sum().backward()
    assert other.weight.grad.tolist() == [[1, 1], [2, 2]]
    net.bias = None
    assert f(x).tolist() == [[6, 6]]
    normed = Normed()
    g = oprack.jit(normed)
    assert g(x).tolist() == [[1, 2]]
    normed.mean = to_tensor(np.ones(2, np.float32))
    assert g(x).tolist() == [[0, 1]]
    normed.mean.set_value(np.full(2, 2.0, np.float32))
    assert g(x).tolist() == [[-1, 0]]


def test_values_that_change_in_place_are_read_anew() -> None:
    net = _linear()
    f = oprack.jit(net)
    x = _x([[1.0, 2.0]])
    for k in range(1, 6):
        assert f(x).tolist() == [[3.0 * k, 6.0 * k]]
        with oprack.no_grad():
            net.weight.scale_((k + 1) / k)


def test_parts_that_are_added_replaced_and_removed() -> None:
    net = nn.Sequential(_linear())
    f = oprack.jit(net)
    x = _x([[1.0, 2.0]])
    assert f(x).tolist() == [[3, 6]]
    net.append(_linear())
    assert f(x).tolist() == [[9, 18]]
    net[0] = nn.ReLU()
    assert f(x).tolist() == [[3, 6]]
    net.insert(0, _linear())
    assert f(x).tolist() == [[9, 18]]
    del net._modules["0"]  # behind the back of the Module, with the next change noticed
    net.note = 1
    assert f(x).tolist() == [[3, 6]]
    normed = Normed()
    g = oprack.jit(normed)
    assert g(_x([[-1.0, 2.0]])).tolist() == [[-1, 2]]
    normed.act = nn.ReLU()
    assert g(_x([[-1.0, 2.0]])).tolist() == [[0, 2]]
    normed.act = None
    assert g(_x([[-1.0, 2.0]])).tolist() == [[-1, 2]]


def test_hooks_that_are_added_and_removed() -> None:
    net = _linear()
    f = oprack.jit(net)
    x = _x([[1.0, 2.0]])
    assert f(x).tolist() == [[3, 6]]
    remove = net.register_forward_hook(lambda module, args, result: result * 2.0)
    assert f(x).tolist() == [[6, 12]]
    remove()
    assert f(x).tolist() == [[3, 6]]


def test_plain_attributes_of_modules() -> None:
    net = Scaled()
    f, calls = _counted(net)
    x = _x([[1.0]])
    assert f(x).item() == 12
    net.factor = 1.0
    assert f(x).item() == 6
    net.table[1] = 3.0
    assert f(x).item() == 9
    net.parts["a"]["b"] = 1.0
    assert f(x).item() == 3
    net.config.scale = 5.0
    assert f(x).item() == 15
    count = len(calls)
    net.epoch = 3  # which nobody reads
    assert f(x).item() == 15
    assert len(calls) == count
    net.factor = 2.0
    net.table[:], net.parts["a"]["b"], net.config.scale = [1.0, 2.0], 3.0, 1.0
    assert f(x).item() == 12
    assert len(calls) == count  # the first program


class Settings:
    """What a class has beside its instances."""

    scale = 2.0

    @classmethod
    def factor(cls, x: float) -> float:
        return cls.scale * x


def test_members_of_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Net(nn.Module):
        @classmethod
        def double(cls, x: Any) -> Any:
            return x * 2.0

        @staticmethod
        def triple(x: Any) -> Any:
            return x * 3.0

        @property
        def shift(self) -> float:
            return self.offset

        def forward(self, x: Any) -> Any:
            return self.double(self.triple(x)) * Settings.factor(Settings.scale) + self.shift

    net = Net()
    net.offset = 1.0
    f, calls = _counted(net)
    x = _x([1.0])
    for _ in range(4):
        assert f(x).item() == 25
        net.note = 1
    assert len(calls) == 1
    net.offset = 2.0
    assert f(x).item() == 26
    monkeypatch.setattr(Settings, "scale", 1.0)
    assert f(x).item() == 8


def test_closures_and_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    net, number, names = _linear(), 1.0, ["relu"]
    settings = SimpleNamespace(scale=1.0)

    helper = lambda x: x * FACTOR  # noqa: E731

    def f(x: Any) -> Any:
        y = helper(net(x)) * number * settings.scale
        return F.relu(y) if "relu" in names else y

    fast = oprack.jit(f)
    x = _x([[1.0, -2.0]])

    def check() -> None:
        assert fast(x).tolist() == f(x).tolist()

    check()
    number = 3.0
    check()
    net = nn.Linear(2, 2)
    check()
    names.clear()
    check()
    settings.scale = 2.0
    check()
    settings = SimpleNamespace(scale=3.0)
    check()
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 5.0)
    check()

    helper = lambda x: x - 1.0  # noqa: E731
    check()


def test_what_is_gone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    number, settings = 2.0, SimpleNamespace(scale=1.0)
    fast = oprack.jit(lambda x: x * FACTOR * number * settings.scale)
    x = _x([1.0])
    expected = fast(x).item()
    with monkeypatch.context() as patch:
        patch.delattr(sys.modules[__name__], "FACTOR")
        with pytest.raises(NameError):
            fast(x)
    assert fast(x).item() == expected
    del number
    with pytest.raises(NameError):
        fast(x)
    number = 3.0
    assert fast(x).item() == expected * 1.5
    del settings.scale
    with pytest.raises(AttributeError):
        fast(x)


def test_a_later_call_passes_few_functions() -> None:
    net, x = nn.Linear(2, 2), _x([[1.0, 2.0]])
    fast = oprack.jit(net)
    with oprack.no_grad():
        for _ in range(4):
            fast(x)
        passed = []
        sys.setprofile(lambda frame, event, _: passed.append(frame.f_code) if event == "call" else None)
        try:
            result = fast(x)
        finally:
            sys.setprofile(None)
    assert "segment" in {code.co_name for code in passed}, "the generated code ran"
    assert len(passed) <= 14, passed
    assert result.tolist() == net(x).tolist()


def test_attributes_of_objects_that_are_called() -> None:
    class Model:
        def __init__(self) -> None:
            self.scale, self.net = 1.0, _linear()

        def step(self, x: Any) -> Any:
            return self.net(x) * self.scale

        __call__ = step

    model = Model()
    x = _x([[1.0, 2.0]])
    for fast in (oprack.jit(model.step), oprack.jit(model), oprack.jit(functools.partial(Model.step, model))):
        model.scale, model.net = 1.0, _linear()
        assert fast(x).tolist() == [[3, 6]]
        model.scale = 2.0
        assert fast(x).tolist() == [[6, 12]]
        model.net = nn.ReLU()
        assert fast(x).tolist() == [[2, 4]]


def test_a_number_that_changes_with_every_call_is_named() -> None:
    step = 0
    f = oprack.jit(lambda x: x * float(step))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(12):
            assert f(_x([2.0])).item() == 2.0 * step
    assert [str(w.message) for w in caught] == [
        "<lambda> was captured 9 times for calls that are alike, since step changes between them; pass it as an "
        "argument, or a number as a tensor"
    ]


def test_what_the_function_changes_itself_is_not_compared() -> None:
    net = Scaled()
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append(x.shape)
        return net(x)

    fast = oprack.jit(f)
    for _ in range(3):
        for size in (1, 2):
            fast(_x(np.ones((size, 1))))
    assert seen == [(1, 1), (2, 1)]
    assert net.seen == 2


def test_state_that_a_module_keeps_from_call_to_call_is_refused() -> None:
    class Running(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = to_tensor(np.zeros(2, np.float32))

        def forward(self, x: Any) -> Any:
            self.last = self.last * 0.5 + x
            return self.last

    with pytest.raises(PreconditionNotMetError, match=r"\.last is read and then set to a result of the call"):
        oprack.jit(Running())(_x([1.0, 2.0]))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *((1.0, True), (1, True), (1, 1.0), (0.0, -0.0), ([1], (1,)), ((1,), (True,)), ("1", 1), (None, 0)),
        *(([1.0], [True]), ([[0.0]], [[-0.0]]), (("s", [1]), ("s", [True])), ({"s": [1.0]}, {"s": [True]})),
    ],
)
def test_arguments_that_python_takes_for_equal(first: Any, second: Any) -> None:
    def f(x: Any, *, s: Any) -> Any:
        return x * float(sum(map(ord, repr(s))))

    fast = oprack.jit(f)
    x = _x([1.0])
    for s in (first, second, first):
        assert fast(x, s=s).item() == f(x, s=s).item()


def test_numbers_of_tensors_that_the_function_asks_for() -> None:
    net = Normed()
    net.forward = lambda x: x * (float(net.mean.numpy()[0]) + 1.0)
    f, calls = _counted(net)
    x = _x([1.0, 2.0])
    for k in range(3):
        assert f(x).tolist() == [1.0 + k, 2.0 + 2.0 * k]
        f(x)
        with oprack.no_grad():
            net.mean.add_(_x([1.0, 1.0]))
    assert len(calls) == 3


def test_nan_is_no_new_argument() -> None:
    f, calls = _counted(lambda x, *, s: x * 2.0)
    for _ in range(3):
        f(_x([1.0]), s=float("nan"))
    assert len(calls) == 1


def test_random_numbers_are_drawn_anew_in_each_call() -> None:
    drop = nn.Dropout(0.5)
    f = oprack.jit(lambda x: drop(x))
    x = _x(np.ones((4, 64)))
    found = []
    for call in (drop, f):
        oprack.seed(7)
        found.append([call(x).numpy() for _ in range(6)])
    np.testing.assert_array_equal(found[0], found[1])
    assert len({a.tobytes() for a in found[1]}) == 6


# Modes ----------------------------------------------------------------------------------------------------------------
def test_autocast_in_and_out() -> None:
    w = _x(np.ones((8, 3)))
    f, calls = _counted(lambda x, w: x @ w)
    for _ in range(3):
        assert f(_x(), w).dtype == "float32"
        with autocast():
            assert f(_x(), w).dtype == "bfloat16"
        with autocast("float16"):
            assert f(_x(), w).dtype == "float16"
    assert len(calls) == 3


def test_check_finite_looks_at_the_ops_inside() -> None:
    f = oprack.jit(lambda x: F.sigmoid(F.log(x)))
    x = _x([-1.0])
    assert np.isnan(f(x).numpy())
    with oprack.interpreter.check_finite(), pytest.raises(NanInfError, match="log"):
        f(x)
    assert np.isnan(f(x).numpy())


def test_deterministic_and_grad_modes() -> None:
    net = _linear()
    f = oprack.jit(net)
    x = _x([[1.0, 2.0]])
    for _ in range(2):
        assert f(x).requires_grad
        with oprack.no_grad():
            assert not f(x).requires_grad
        with oprack.deterministic():
            assert f(x).tolist() == [[3, 6]]


# Backward -------------------------------------------------------------------------------------------------------------
@pytest.fixture(params=["eager", "jit"])
def through(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], Any]]:
    yield (lambda f: f) if request.param == "eager" else oprack.jit


def _in_place(x: Any) -> None:
    with oprack.no_grad():
        x.scale_(10.0)


def test_a_changed_argument_is_refused(through: Any) -> None:
    w = _x([1.0, 1.0], grad=True)
    f = through(lambda x: (x * w).sum())
    for _ in range(3):
        x = _x([1.0, 2.0])
        x.detach()  # from here on its versions are counted
        loss = f(x)
        _in_place(x)
        with pytest.raises(PreconditionNotMetError, match=r"needs its input .* changed in place since by scale; use"):
            loss.backward()


def test_a_changed_parameter_is_refused(through: Any) -> None:
    w = _x([1.0, 1.0], grad=True)
    f = through(lambda x: (x * w).sum())
    x = _x([1.0, 2.0], grad=True)
    loss = f(x)
    _in_place(w)
    with pytest.raises(PreconditionNotMetError, match=r"needs its input .* changed in place since by scale"):
        loss.backward()


def test_a_changed_view_of_an_argument_is_refused(through: Any) -> None:
    f = through(lambda x, w: (x.reshape([2]) * w).sum())
    x, w = _x([[1.0, 2.0]]), _x([1.0, 1.0], grad=True)
    x.detach()
    loss = f(x, w)
    _in_place(x)
    with pytest.raises(PreconditionNotMetError, match="changed in place since by scale"):
        loss.backward()


def test_a_changed_result_that_gradients_read_is_refused(through: Any) -> None:
    f = through(F.exp)
    x = _x([0.0, 0.0], grad=True)
    y = f(x)
    y.add_(_x([1.0, 1.0]))
    with pytest.raises(PreconditionNotMetError, match=r"needs its output .* changed in place since by"):
        y.sum().backward()


def test_what_gradients_do_not_read_may_change(through: Any) -> None:
    f = through(lambda x, w: x * 2.0 + w)
    x, w = _x([1.0, 2.0], grad=True), _x([1.0, 1.0], grad=True)
    y = f(x, w)
    _in_place(x)
    _in_place(w)
    y.add_(_x([1.0, 1.0]))
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert w.grad.tolist() == [1, 1]


def test_backward_twice_and_accumulation(through: Any) -> None:
    net = _linear()
    f = through(net)
    x = _x([[1.0, 2.0]])
    losses = [f(x).sum(), (f(x) * 2.0).sum()]
    losses[0].backward(retain_graph=True)
    losses[0].backward()
    losses[1].backward()
    assert net.weight.grad.tolist() == [[4, 4], [8, 8]]
    with pytest.raises(PreconditionNotMetError, match="a second time"):
        losses[1].backward()


def test_batch_norm_twice_before_backward(through: Any) -> None:
    net = nn.Sequential(nn.BatchNorm1D(2), _linear())
    f = through(net)
    x = _x([[1.0, 2.0], [3.0, 5.0]])
    total = f(x).sum() + f(x).sum()
    total.backward()
    np.testing.assert_allclose(net[1].bias.grad.numpy(), [4, 4])


def test_gradients_of_gradients_are_those_of_the_formula() -> None:
    x = _x([1.0, 2.0], grad=True)
    (first,) = oprack.grad(oprack.jit(lambda x: x**4.0)(x).sum(), [x], create_graph=True)
    (second,) = oprack.grad(first.sum(), [x], create_graph=True)
    (third,) = oprack.grad(second.sum(), [x])
    np.testing.assert_allclose(first.numpy(), 4 * np.array([1.0, 8.0]), rtol=1e-6)
    np.testing.assert_allclose(second.numpy(), 12 * np.array([1.0, 4.0]), rtol=1e-6)
    np.testing.assert_allclose(third.numpy(), 24 * np.array([1.0, 2.0]), rtol=1e-6)


def test_a_penalty_of_gradients_trains_what_the_function_captures() -> None:
    """Loss = sum of g^2 for g = d sum((x w)^2) / dx = 2 x w^2, whose gradient by w is 8 x^2 w^3 2 = 16 x^2 w^3."""
    x, w = _x([1.0, 2.0], grad=True), _x([3.0, 0.5], grad=True)
    (g,) = oprack.grad(oprack.jit(lambda x: (x * w) * (x * w))(x).sum(), [x], create_graph=True)
    (g * g).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), 16 * np.array([1.0, 4.0]) * np.array([27.0, 0.125]), rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), 8 * np.array([1.0, 2.0]) * np.array([81.0, 0.0625]), rtol=1e-6)


def test_gradients_flow_back_to_the_gradient_that_arrived() -> None:
    x, v = _x([1.0, 2.0], grad=True), _x([3.0, 4.0], grad=True)
    (g,) = oprack.grad(oprack.jit(lambda x: x * x)(x), [x], [v], create_graph=True)
    g.sum().backward()
    np.testing.assert_allclose(v.grad.numpy(), [2.0, 4.0])
    np.testing.assert_allclose(x.grad.numpy(), [6.0, 8.0])


def test_a_missing_gradient_is_zero_in_second_gradients() -> None:
    x = _x([1.0, 2.0], grad=True)
    cube, _ = oprack.jit(lambda x: (x * x * x, x * x))(x)
    (g,) = oprack.grad(cube.sum(), [x], create_graph=True)
    (h,) = oprack.grad(g.sum(), [x])
    np.testing.assert_allclose(h.numpy(), [6.0, 12.0])


def test_second_gradients_leave_running_means_alone() -> None:
    nets = [nn.BatchNorm1D(2) for _ in range(2)]
    for net, f in zip(nets, (nets[0], oprack.jit(nets[1])), strict=True):
        for _ in range(2):
            x = _x([[1.0, 2.0], [3.0, 5.0], [4.0, 1.0]], grad=True)
            y = f(x)
            (g,) = oprack.grad((y * y * y).sum(), [x], create_graph=True)
            (g * g).sum().backward()
        net.found = x.grad.numpy()
    eager, jitted = nets
    np.testing.assert_allclose(jitted.found, eager.found, rtol=1e-3, atol=1e-4)
    for name, value in eager.state_dict().items():
        np.testing.assert_allclose(jitted.state_dict()[name].numpy(), value.numpy(), rtol=1e-6)


def test_second_gradients_of_what_was_changed_since_are_an_error() -> None:
    x, b = _x([1.0, 2.0], grad=True), _x([3.0, 4.0])
    y = oprack.jit(lambda x: (x + b) * (x + b))(x)
    b.copy_(_x([0.0, 0.0]))
    with pytest.raises(PreconditionNotMetError, match="changed in place since"):
        oprack.grad(y.sum(), [x], create_graph=True)


def test_second_gradients_of_random_numbers_are_refused_in_words() -> None:
    x = _x([1.0, 2.0], grad=True)
    noisy = oprack.jit(lambda x: x * x * F.uniform_random(shape=[2], min=1.0, max=2.0))
    with pytest.raises(UnimplementedError, match="draws random numbers"):
        oprack.grad(noisy(x).sum(), [x], create_graph=True)


# Memory ---------------------------------------------------------------------------------------------------------------
A = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.reshape([-1]),
        lambda x: x[1:],
        lambda x: x[0],
        lambda x: x[:, 0],
        lambda x: x[0:2].reshape([-1]),
        lambda x: x.T,
        lambda x: x.unsqueeze(0),
        lambda x: x.unsqueeze(0).squeeze(0),
        lambda x: x.flatten(),
        lambda x: x.split(2)[1],
        lambda x: x.unbind(0)[1],
        lambda x: x.clone(),
        lambda x: x + 0.0,
        lambda x: x.astype("float32"),
        lambda x: x,
        lambda x: (x, x.T)[1],
    ],
)
def test_results_lie_on_memory_as_those_of_eager_calls(f: Any) -> None:
    fast = oprack.jit(f)
    for _ in range(4):  # the first calls of anything go another way
        found = []
        for call in (f, fast):
            x = to_tensor(A.copy())
            y = call(x)
            assert y.numpy().size
            found.append((y is x, np.may_share_memory(x._value, y._value)))
    assert found[0] == found[1]


def test_the_first_call_in_place_writes_where_later_ones_do() -> None:
    for _ in range(3):
        x = to_tensor(A.copy())
        y = x.reshape([-1])
        with oprack.no_grad():
            x.scale_(3.0, 0.34375)  # a pair that no other test calls with
        assert y.tolist() == (A.ravel() * 3 + 0.34375).tolist()


def test_what_is_returned_as_it_came_is_the_argument() -> None:
    w = _x([1.0], grad=True)
    f = oprack.jit(lambda x: {"x": x, "w": w, "y": x * w})
    x = _x([2.0], grad=True)
    found = f(x)
    assert found["x"] is x
    assert found["w"] is w
    (found["y"] + found["x"] + found["w"]).sum().backward()
    assert (x.grad.item(), w.grad.item()) == (2, 3)


def test_results_on_one_memory_know_of_each_other() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        return y, y.T

    for call in (f, oprack.jit(f), oprack.jit(f)):
        for _ in range(3):
            y, turned = call(to_tensor(A.copy()))
            w = _x(A, grad=True)
            z = (turned * w).sum()
            _in_place(y)
            with pytest.raises(PreconditionNotMetError, match="changed in place"):
                z.backward()


def test_an_argument_that_the_function_changes_in_place(through: Any) -> None:
    def f(x: Any) -> Any:
        F.scale(x, scale=3.0, in_place=True)
        return x + 1.0

    call = through(f)
    for _ in range(3):
        x = _x([1.0, 2.0])
        assert call(x).tolist() == [4, 7]
        assert x.tolist() == [3, 6]


# Threads --------------------------------------------------------------------------------------------------------------
def test_threads_share_a_function() -> None:
    net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.BatchNorm1D(8, momentum=0.9), nn.Linear(8, 8))
    net[2].eval()
    f = oprack.jit(net)
    inputs = [np.random.default_rng(i).normal(size=(4 + i % 2, 8)).astype(np.float32) for i in range(4)]
    expected = [net(to_tensor(a)).numpy() for a in inputs]
    slopes = []
    for a in inputs:
        t = to_tensor(a, requires_grad=True)
        slopes.append(oprack.grad([net(t).sum()], [t])[0].numpy())
    errors: list[str] = []

    def work(i: int) -> None:
        try:
            for _ in range(40):
                t = to_tensor(inputs[i], requires_grad=True)
                y = f(t)
                (g,) = oprack.grad([y.sum()], [t])
                np.testing.assert_allclose(y.numpy(), expected[i], rtol=1e-4, atol=1e-6)
                np.testing.assert_allclose(g.numpy(), slopes[i], rtol=1e-4, atol=1e-6)
                with oprack.no_grad():
                    np.testing.assert_allclose(f(inputs[i]).numpy(), expected[i], rtol=1e-4, atol=1e-6)
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []


# Bounds ---------------------------------------------------------------------------------------------------------------
def test_the_program_that_was_used_least_lately_goes() -> None:
    f, calls = _counted(lambda x: x * 2.0)
    f(_x(np.ones(1)))
    for size in range(2, 40):
        f(_x(np.ones(size)))
        f(_x(np.ones(1)))
    assert len(calls) == 39


def test_arguments_that_can_not_be_compared() -> None:
    for k, has in ((bytearray(), "is"), ([bytearray()], "has"), ({"k": (bytearray(),)}, "has")):
        with pytest.raises(InvalidArgumentError, match=f"argument k {has} a bytearray"):
            oprack.jit(lambda x, k: x)(_x(), k=k)


# Global tensors -------------------------------------------------------------------------------------------------------
def test_global_tensors_are_refused_in_words() -> None:
    rows = np.arange(8, dtype=np.float32).reshape(4, 2)

    def rank(world: Any) -> None:
        placement = parallel.placement("cpu", (2,))
        x = to_tensor(rows).to_global(placement, "S(0)", from_whole=True)
        net = nn.Linear(2, 2)
        alone = oprack.jit(net)
        assert alone(to_tensor(rows)).shape == (4, 2)
        parallel.to_global(net, placement, {})
        for call in (
            lambda: oprack.jit(lambda x: x * 2.0)(x),
            lambda: oprack.jit(net)(to_tensor(rows)),
            lambda: alone(to_tensor(rows)),
            lambda: oprack.jit(lambda t: x)(to_tensor(rows)),
            lambda: oprack.to_program(net, [oprack.InputSpec([None, 2])]),
        ):
            with pytest.raises(UnimplementedError, match=r"is a global tensor.*Call the function itself"):
                call()
        w = to_tensor(rows).to_global(placement, "S(0)", from_whole=True)
        w.requires_grad = True
        with pytest.raises(UnimplementedError):
            oprack.grad([F.exp(w).sum()], [w], create_graph=True)

    ThreadWorld(2).run(rank)


# What Python does beside tensors --------------------------------------------------------------------------------------
@pytest.mark.parametrize("value", [np.float64(0.1), np.float32(0.1), np.int64(3), np.array(0.5), np.array([0.5, 1.0])])
@pytest.mark.parametrize(
    "f",
    [
        *(lambda x, v: v * x, lambda x, v: x * v, lambda x, v: v - x, lambda x, v: v / x, lambda x, v: v**x),
        *(lambda x, v: v < x, lambda x, v: x > v, lambda x, v: v // x),
    ],
)
def test_numbers_and_arrays_of_numpy_as_operands(f: Any, value: Any) -> None:
    x = _x([1.0, 2.0])
    found, wanted = oprack.jit(lambda t: f(t, value))(x), f(x, value)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    np.testing.assert_allclose(found.numpy(), f(np.array([1.0, 2.0]), value), rtol=1e-6)


@pytest.mark.parametrize(
    ("write", "values"),
    [
        (lambda c, x: c.fill_(3.0), (3.0, 3.0)),
        (lambda c, x: c.zero_(), (0.0, 0.0)),
        (lambda c, x: c.set_value(np.array([5.0])), (5.0, 5.0)),
        (lambda c, x: c.set_value(oprack.ones([1])), (1.0, 1.0)),
        (lambda c, x: c.copy_(x[:1] * 2.0), (2.0, 2.0)),
        (lambda c, x: c.add_(oprack.ones([1])), (2.0, 21.0)),
        (lambda c, x: c.sub_(x[1:]), (-1.0, -12.0)),
    ],
)
@pytest.mark.parametrize("through", [lambda f: f, oprack.jit])
def test_buffers_that_calls_write_to(through: Any, write: Any, values: Any) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("c", np.ones(1, np.float32))

        def forward(self, x: Any) -> Any:
            with oprack.no_grad():
                write(self.c, x)
            return x + self.c

    net = Net()
    call = through(net)
    for value in values:  # ten times what the call before left is what the second one begins with
        np.testing.assert_allclose(call(_x([1.0, 2.0])).numpy(), [1.0 + value, 2.0 + value])
        assert net.c.item() == value
        net.c.scale_(10.0)


def test_writes_to_parameters_in_captured_functions_are_refused() -> None:
    weight = to_tensor(np.ones(2, np.float32), requires_grad=True)

    def f(x: Any) -> Any:
        weight.set_value(np.zeros(2, np.float32))
        return x * weight

    with pytest.raises(UnimplementedError, match="has requires_grad; do it outside"):
        oprack.jit(f)(_x([1.0, 2.0]))


def test_a_capture_that_is_interrupted_at_any_line_leaves_guards_as_they_were() -> None:
    import sys

    from oprack.capture import guards
    from oprack.testing.fuzz.injection import leaves_block

    class StopHere(Exception):
        pass

    watched = {f.__code__ for f in (guards._noted.__wrapped__, guards._note_reads, guards._note_nothing)}  # type: ignore[attr-defined]
    lines = 0
    while True:
        left = lines

        def trace(frame: Any, event: str, argument: Any) -> Any:
            nonlocal left
            if frame.f_code not in watched:
                return None
            if event == "line" and not leaves_block(frame):
                left -= 1
                if left == -1:
                    raise StopHere
            return trace

        net = Normed()
        net.forward = lambda x, net=net: x * (float(net.mean.numpy()[0]) + 1.0)
        sys.settrace(trace)
        try:
            oprack.jit(net)(_x([1.0, 2.0]))
        except StopHere:
            pass
        finally:
            sys.settrace(None)
        if left >= 0:
            break
        f = oprack.jit(net)
        assert f(_x([1.0, 2.0])).tolist() == [1.0, 2.0]
        with oprack.no_grad():
            net.mean.add_(_x([1.0, 1.0]))
        assert f(_x([1.0, 2.0])).tolist() == [2.0, 4.0], lines
        lines += 1
    assert lines > 20
    # Where it was interrupted while it let go, reads go on being noted, which only makes them slower.
    guards._reads.set(None)
    guards._under_way.clear()
    guards._note_nothing()
