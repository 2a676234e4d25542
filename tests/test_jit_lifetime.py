"""jit over a lifetime: what the function reads changes between calls, and so do modes."""

from __future__ import annotations

import functools
import sys
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import oprack
import pytest
from jit_functions import Normed, counted, tensor_of, tripling
from oprack import functional as F
from oprack import nn, to_tensor
from oprack.amp import autocast
from oprack.errors import NanInfError, PreconditionNotMetError
from passed_calls import PassedCalls

ONES = np.ones((1, 8), np.float32)
FACTOR = 2.0


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


def test_parameters_that_are_unfrozen_get_gradients() -> None:
    net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    f = oprack.jit(net)
    for p in net[0].parameters():
        p.requires_grad = False
    f(tensor_of(ONES)).sum().backward()
    assert [p.grad is None for p in net.parameters()] == [True, True, False, False]
    for p in net.parameters():
        p.requires_grad = True
        p.clear_grad()
    f(tensor_of(ONES)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    for p in net[1].parameters():
        p.requires_grad = False
    net.clear_grad()
    f(tensor_of(ONES)).sum().backward()
    assert [p.grad is None for p in net.parameters()] == [False, False, True, True]


def test_modes_of_parts() -> None:
    net = nn.Sequential(nn.Identity() if hasattr(nn, "Identity") else nn.ReLU(), nn.Dropout(1.0))
    for f in (oprack.jit(net), oprack.jit(lambda x: net(x)), oprack.jit(lambda x: net[1](x))):
        net.train()
        assert not f(tensor_of(ONES)).numpy().any()
        net.eval()
        assert f(tensor_of(ONES)).numpy().all()
        net[1].train()
        assert not f(tensor_of(ONES)).numpy().any()
        net[1].eval()
        assert f(tensor_of(ONES)).numpy().all()


def test_a_frozen_batch_norm_uses_its_running_statistics() -> None:
    net = nn.Sequential(nn.BatchNorm2D(2))
    f = oprack.jit(net)
    image = tensor_of(np.arange(16).reshape(2, 2, 2, 2))
    f(image)
    net[0].eval()
    mean, variance = net[0].mean.numpy(), net[0].variance.numpy()
    expected = (image.numpy() - mean[:, None, None]) / np.sqrt(variance[:, None, None] + 1e-5)
    np.testing.assert_allclose(f(image).numpy(), expected, rtol=1e-5)
    np.testing.assert_array_equal(net[0].mean.numpy(), mean)


def test_programs_of_earlier_states_are_used_again() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    f, calls = counted(lambda x: net(x))
    for _ in range(3):
        net.train()
        f(tensor_of([[1.0, 2.0]]))
        net.eval()
        f(tensor_of([[1.0, 2.0]]))
    assert len(calls) == 2


def test_parameters_and_buffers_that_are_replaced() -> None:
    net, other = tripling(), tripling()
    f = oprack.jit(net)
    x = tensor_of([[1.0, 2.0]])
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
    net = tripling()
    f = oprack.jit(net)
    x = tensor_of([[1.0, 2.0]])
    for k in range(1, 6):
        assert f(x).tolist() == [[3.0 * k, 6.0 * k]]
        with oprack.no_grad():
            net.weight.scale_((k + 1) / k)


def test_parts_that_are_added_replaced_and_removed() -> None:
    net = nn.Sequential(tripling())
    f = oprack.jit(net)
    x = tensor_of([[1.0, 2.0]])
    assert f(x).tolist() == [[3, 6]]
    net.append(tripling())
    assert f(x).tolist() == [[9, 18]]
    net[0] = nn.ReLU()
    assert f(x).tolist() == [[3, 6]]
    net.insert(0, tripling())
    assert f(x).tolist() == [[9, 18]]
    del net._modules["0"]  # behind the back of the Module, with the next change noticed
    net.note = 1
    assert f(x).tolist() == [[3, 6]]
    normed = Normed()
    g = oprack.jit(normed)
    assert g(tensor_of([[-1.0, 2.0]])).tolist() == [[-1, 2]]
    normed.act = nn.ReLU()
    assert g(tensor_of([[-1.0, 2.0]])).tolist() == [[0, 2]]
    normed.act = None
    assert g(tensor_of([[-1.0, 2.0]])).tolist() == [[-1, 2]]


def test_hooks_that_are_added_and_removed() -> None:
    net = tripling()
    f = oprack.jit(net)
    x = tensor_of([[1.0, 2.0]])
    assert f(x).tolist() == [[3, 6]]
    remove = net.register_forward_hook(lambda module, args, result: result * 2.0)
    assert f(x).tolist() == [[6, 12]]
    remove()
    assert f(x).tolist() == [[3, 6]]


def test_plain_attributes_of_modules() -> None:
    net = Scaled()
    f, calls = counted(net)
    x = tensor_of([[1.0]])
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
    f, calls = counted(net)
    x = tensor_of([1.0])
    for _ in range(4):
        assert f(x).item() == 25
        net.note = 1
    assert len(calls) == 1
    net.offset = 2.0
    assert f(x).item() == 26
    monkeypatch.setattr(Settings, "scale", 1.0)
    assert f(x).item() == 8


def test_closures_and_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    net, number, names = tripling(), 1.0, ["relu"]
    settings = SimpleNamespace(scale=1.0)

    helper = lambda x: x * FACTOR  # noqa: E731

    def f(x: Any) -> Any:
        y = helper(net(x)) * number * settings.scale
        return F.relu(y) if "relu" in names else y

    fast = oprack.jit(f)
    x = tensor_of([[1.0, -2.0]])

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
    x = tensor_of([1.0])
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
    net, x = nn.Linear(2, 2), tensor_of([[1.0, 2.0]])
    fast = oprack.jit(net)
    with oprack.no_grad():
        for _ in range(4):
            fast(x)
        with PassedCalls() as passed:
            result = fast(x)
    assert "segment" in {code.co_name for code in passed}, "the generated code ran"
    assert len(passed) <= 14, passed
    assert result.tolist() == net(x).tolist()


def test_attributes_of_objects_that_are_called() -> None:
    class Model:
        def __init__(self) -> None:
            self.scale, self.net = 1.0, tripling()

        def step(self, x: Any) -> Any:
            return self.net(x) * self.scale

        __call__ = step

    model = Model()
    x = tensor_of([[1.0, 2.0]])
    for fast in (oprack.jit(model.step), oprack.jit(model), oprack.jit(functools.partial(Model.step, model))):
        model.scale, model.net = 1.0, tripling()
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
            assert f(tensor_of([2.0])).item() == 2.0 * step
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
            fast(tensor_of(np.ones((size, 1))))
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
        oprack.jit(Running())(tensor_of([1.0, 2.0]))


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
    x = tensor_of([1.0])
    for s in (first, second, first):
        assert fast(x, s=s).item() == f(x, s=s).item()


def test_numbers_of_tensors_that_the_function_asks_for() -> None:
    net = Normed()
    net.forward = lambda x: x * (float(net.mean.numpy()[0]) + 1.0)
    f, calls = counted(net)
    x = tensor_of([1.0, 2.0])
    for k in range(3):
        assert f(x).tolist() == [1.0 + k, 2.0 + 2.0 * k]
        f(x)
        with oprack.no_grad():
            net.mean.add_(tensor_of([1.0, 1.0]))
    assert len(calls) == 3


def test_nan_is_no_new_argument() -> None:
    f, calls = counted(lambda x, *, s: x * 2.0)
    for _ in range(3):
        f(tensor_of([1.0]), s=float("nan"))
    assert len(calls) == 1


def test_random_numbers_are_drawn_anew_in_each_call() -> None:
    drop = nn.Dropout(0.5)
    f = oprack.jit(lambda x: drop(x))
    x = tensor_of(np.ones((4, 64)))
    found = []
    for call in (drop, f):
        oprack.seed(7)
        found.append([call(x).numpy() for _ in range(6)])
    np.testing.assert_array_equal(found[0], found[1])
    assert len({a.tobytes() for a in found[1]}) == 6


def test_autocast_in_and_out() -> None:
    w = tensor_of(np.ones((8, 3)))
    f, calls = counted(lambda x, w: x @ w)
    for _ in range(3):
        assert f(tensor_of(ONES), w).dtype == "float32"
        with autocast():
            assert f(tensor_of(ONES), w).dtype == "bfloat16"
        with autocast("float16"):
            assert f(tensor_of(ONES), w).dtype == "float16"
    assert len(calls) == 3


def test_check_finite_looks_at_the_ops_inside() -> None:
    f = oprack.jit(lambda x: F.sigmoid(F.log(x)))
    x = tensor_of([-1.0])
    assert np.isnan(f(x).numpy())
    with oprack.interpreter.check_finite(), pytest.raises(NanInfError, match="log"):
        f(x)
    assert np.isnan(f(x).numpy())


def test_deterministic_and_grad_modes() -> None:
    net = tripling()
    f = oprack.jit(net)
    x = tensor_of([[1.0, 2.0]])
    for _ in range(2):
        assert f(x).requires_grad
        with oprack.no_grad():
            assert not f(x).requires_grad
        with oprack.deterministic():
            assert f(x).tolist() == [[3, 6]]
