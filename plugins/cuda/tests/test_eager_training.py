"""Eager calls at place cuda over strict arrays: the numbers of the CPU, nothing of NumPy in between."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import oprack
import pytest
from oprack import CPUPlace, CUDAPlace, nn, optimizer, to_tensor, unique_name
from oprack import functional as F
from oprack.device import DeviceContextPool
from oprack.functional.op_function import forget
from oprack.packs.manager import default_manager
from oprack_cuda.testing import StrictArray, StrictDeviceContext

A = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def _strict_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    pool = DeviceContextPool(lambda kind: StrictDeviceContext)
    monkeypatch.setattr(default_manager(), "device_contexts", pool)
    yield
    forget()  # generated functions hold on to the device


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2D(1, 4, 3, bias_attr=False), nn.BatchNorm(4), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten()
        )
        self.out = nn.Linear(36, 3)

    def forward(self, image, label):
        return nn.CrossEntropyLoss()(self.out(self.body(image)), label)


def test_training_gives_the_losses_of_the_cpu() -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.standard_normal((4, 1, 8, 8)).astype(np.float32), rng.integers(0, 3, (4, 1))
    losses = []
    for place in (CPUPlace(), CUDAPlace()):
        oprack.seed(3)
        with unique_name.guard():
            net = Net().to(place)
        adam = optimizer.Adam(1e-2, parameter_list=net.parameters())
        found = []
        for _ in range(4):
            loss = net(to_tensor(images, place=place), to_tensor(labels, place=place))
            loss.backward()
            adam.step()
            adam.clear_grad()
            found.append(loss.item())
        losses.append(found)
        assert net.out.weight.place == place
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    assert type(net.out.weight._value) is StrictArray


def test_tensors_stay_where_they_are() -> None:
    x = to_tensor(A, place=CUDAPlace(), requires_grad=True)
    y = (x * 2 + x[0] - 1 > 0).astype("float32") + (x @ x.T).sum() + F.split(x, num=2, axis=1)[0].sum()
    y.sum().backward()
    assert y.place == x.grad.place == CUDAPlace() and "CUDAPlace(0)" in repr(y)
    assert type(y._value) is StrictArray and isinstance(y.numpy(), np.ndarray)
    x.detach().set_value(np.zeros((3, 4)))
    assert not x.numpy().any()
    with pytest.raises(oprack.errors.InvalidArgumentError, match="expected one place"):
        x + to_tensor(A)


def test_gradients_flow_between_places() -> None:
    x = to_tensor(A, requires_grad=True)
    y = x.to(CUDAPlace())
    assert y.place == CUDAPlace() and x.to(CPUPlace()) is x and y.requires_grad
    (y * y).sum().cpu().backward()
    assert x.grad.place == CPUPlace()
    np.testing.assert_allclose(x.grad.numpy(), 2 * A, rtol=1e-6)


def test_jit() -> None:
    x = to_tensor(A, place=CUDAPlace(), requires_grad=True)
    y = oprack.jit(lambda a: F.tanh(a * x))(x)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), (1 - np.tanh(A * A) ** 2) * 2 * A, rtol=1e-4, atol=1e-6)
