"""Parameters, buffers and parts of modules: what may take their place, and the advice of the errors for the rest."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import nn, to_tensor
from oprack.errors import AlreadyExistsError, InvalidArgumentError


def _net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm(2))


@pytest.mark.parametrize("value", [np.zeros((3, 2), np.float32), to_tensor(np.zeros((3, 2))), [1, 2], 0.5, nn.Linear])
def test_a_parameter_can_not_be_overwritten(value: Any) -> None:
    net = _net()
    with pytest.raises(
        InvalidArgumentError, match=r"weight is a Parameter, tensor 'linear_.*net\.weight\.set_value\(array\)"
    ):
        net[0].weight = value
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_the_advice_for_members_works() -> None:
    net, array = nn.Linear(3, 2), np.ones((3, 2), np.float32)
    net.weight.set_value(array)
    assert (net.weight.numpy() == 1).all() and net.weight.requires_grad
    net.weight = oprack.Parameter(2 * array)
    assert (dict(net.named_parameters())["weight"].numpy() == 2).all() and (net(array[:, :1].T).numpy() == 6).all()
    sgd = oprack.optimizer.SGD(1.0, parameter_list=net.parameters())
    net(array[:, :1].T).sum().backward()
    sgd.step()
    assert (net.weight.numpy() == 1).all()
    net.bias = None
    assert net.bias is None and list(net.state_dict()) == ["weight"]
    net.bias = oprack.Parameter(np.zeros(2, np.float32), name="b")
    assert list(net.state_dict()) == ["weight", "bias"] and net.bias.name == "b"
    del net.bias
    assert not hasattr(net, "bias") and list(net.state_dict()) == ["weight"]
    with pytest.raises(AttributeError):
        del net.bias
    for wrong in ([1, 2], np.array(["a"])[:0].astype(np.int64)):
        with pytest.raises(InvalidArgumentError, match="expected a dense tensor of a floating dtype"):
            oprack.Parameter(wrong)
    assert oprack.Parameter(to_tensor([1, 2], "float32")).requires_grad  # the advice


def test_buffers_and_parts() -> None:
    net = _net()
    norm, where = net[1], "net"
    with pytest.raises(InvalidArgumentError, match=rf"is a buffer, tensor .*{where}\.mean\.set_value\(array\)"):
        norm.mean = np.ones(2)
    norm.mean.set_value(np.ones(2))
    norm.mean = to_tensor(np.full(2, 3, np.float32))
    assert (net.state_dict()["1.mean"].numpy() == 3).all()
    norm.mean = None
    assert "1.mean" not in net.state_dict() and norm.mean is None
    holder = nn.Module()
    holder.part = nn.Linear(1, 1)
    with pytest.raises(InvalidArgumentError, match=r"is a part, Linear; got 3 \(int\)\. Expected a Module, or None"):
        holder.part = 3
    holder.part = nn.ReLU()
    holder.part = None
    assert list(holder.children()) == [] and holder.part is None
    holder.w = oprack.Parameter(np.ones(1, np.float32))
    for add in (lambda: holder.add_module("w", nn.ReLU()), lambda: holder.register_buffer("w", np.ones(1))):
        with pytest.raises(AlreadyExistsError, match=r"w is a parameter already; .*: del net\.w"):
            add()
    del holder.w
    holder.w = None
    holder.register_buffer("w", np.ones(1, np.float32))
    assert list(holder.state_dict()) == ["w"] and holder.w.shape == (1,)


def test_a_copy_has_parameters_of_its_own() -> None:
    net = nn.Linear(3, 2, weight_attr=oprack.ParamAttr(learning_rate=0.5), bias_attr=oprack.ParamAttr(trainable=False))
    twin = copy.deepcopy(net)
    assert isinstance(twin.weight, oprack.Parameter) and twin.weight.attr.learning_rate == 0.5
    assert twin.weight.trainable and not twin.bias.trainable
    twin.weight.set_value(np.zeros((3, 2)))
    assert net.weight.numpy().any()


def test_training_goes_on_after_a_change_of_dtype() -> None:
    net = nn.Linear(3, 2)
    sgd = oprack.optimizer.SGD(0.5, parameter_list=net.parameters())
    for dtype in ("float32", "float64", "float32"):
        net.to(dtype)
        before = net.bias.numpy()
        net(to_tensor(np.ones((1, 3), dtype))).sum().backward()
        sgd.step()
        sgd.clear_grad()
        np.testing.assert_allclose(net.bias.numpy(), before - 0.5)
        assert net.bias.dtype == dtype
