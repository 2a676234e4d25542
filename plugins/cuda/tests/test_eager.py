"""Eager calls at place cuda, over strict arrays: operators and gradients stay at the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
import pytest
from oprack.eager_tensor import devices
from oprack_cuda.testing import StrictArray, StrictDeviceContext

PLACE = oprack.CUDAPlace(0)
F = oprack.functional


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(devices.pool()._contexts, PLACE, StrictDeviceContext(PLACE))
    return PLACE


def _loss(place: Any, x: np.ndarray, w: np.ndarray) -> tuple[Any, Any, Any]:
    given, weight = oprack.to_tensor(x, place=place), oprack.to_tensor(w, place=place)
    given.requires_grad = weight.requires_grad = True
    hidden = F.gelu(F.matmul_v2(given, weight)) * 2 + 1
    loss = F.reduce_mean(F.softmax(hidden) * hidden, reduce_all=True)
    loss.backward()
    return loss, given, weight


def test_calls_and_gradients_agree_with_the_cpu(place: Any, emulated: None) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((4, 3), (3, 2)))
    for _ in range(3):  # traced, then generated code
        device, host = _loss(place, x, w), _loss(oprack.CPUPlace(), x, w)
        assert {type(t._value) for t in (*device, *(t.grad for t in device[1:]))} == {StrictArray}
        for a, b in zip(
            (device[0], *(t.grad for t in device[1:])), (host[0], *(t.grad for t in host[1:])), strict=True
        ):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_tensors_move_between_places(place: Any) -> None:
    x = oprack.to_tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    there = x.to(place)
    assert there.place == place and np.array_equal(there.to(oprack.CPUPlace()).numpy(), x.numpy())
    with pytest.raises(oprack.errors.InvalidArgumentError, match="expected one place"):
        F.elementwise_add(x, there)
