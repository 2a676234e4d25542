"""Training in mixed precision: the scale adapts, bad steps are left out, and losses fall as in float32."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack import nn, optimizer, to_tensor
from oprack.errors import InvalidArgumentError, PreconditionNotMetError


def problem():
    """A net, its optimizer, and a batch that it can learn."""
    rng = np.random.default_rng(0)
    oprack.seed(7)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
    x = rng.standard_normal((32, 6)).astype("float32")
    return net, optimizer.SGD(0.05, parameter_list=net.parameters()), to_tensor(x), to_tensor(x[:, :1] * 2 + 1)


def losses(steps, scaler=None, dtype=None):
    net, sgd, x, y = problem()
    found = []
    for _ in range(steps):
        if dtype is None:
            error = net(x) - y
        else:
            with oprack.amp.autocast(dtype):
                error = net(x).astype("float32") - y
        loss = (error * error).mean()
        found.append(loss.item())
        if scaler is None:
            loss.backward()
            sgd.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(sgd)
            scaler.update()
        sgd.clear_grad()
    return found


def test_scaling_changes_nothing_in_float32():
    # a power of two scales without rounding
    assert losses(5, oprack.amp.GradScaler(init_loss_scaling=1024.0)) == losses(5)
    assert losses(5, oprack.amp.GradScaler(enable=False)) == losses(5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_training_in_half_precision(dtype):
    mixed, plain = losses(60, oprack.amp.GradScaler(init_loss_scaling=128.0), dtype), losses(60)
    assert mixed[-1] < 0.2 * mixed[0]
    np.testing.assert_allclose(mixed, plain, rtol=0.1, atol=0.05)


def test_a_bad_step_is_left_out_and_shrinks_the_scale():
    net, sgd, x, _ = problem()
    scaler = oprack.amp.GradScaler(init_loss_scaling=8.0, decr_ratio=0.25)
    before = [p.numpy().copy() for p in net.parameters()]
    scaler.scale((net(x) * float("inf")).mean()).backward()
    scaler.step(sgd)
    scaler.update()
    assert scaler.loss_scaling == 2.0
    for p, was in zip(net.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.numpy(), was)


def test_the_scale_grows_after_good_steps():
    scaler = oprack.amp.GradScaler(init_loss_scaling=4.0, incr_every_n_steps=2, incr_ratio=3.0)
    losses(2, scaler)
    assert scaler.loss_scaling == 12.0
    fixed = oprack.amp.GradScaler(init_loss_scaling=4.0, incr_every_n_steps=2, use_dynamic_loss_scaling=False)
    losses(2, fixed)
    assert fixed.loss_scaling == 4.0


def test_gradients_can_be_looked_at_between():
    net, sgd, x, y = problem()
    scaler = oprack.amp.GradScaler(init_loss_scaling=64.0)
    (net(x) - y).sum().backward()
    wanted = [p.grad.numpy().copy() for p in net.parameters()]
    sgd.clear_grad()
    scaler.scale((net(x) - y).sum()).backward()
    scaler.unscale_(sgd)
    for p, gradient in zip(net.parameters(), wanted, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), gradient, rtol=1e-6, atol=1e-6)
    with pytest.raises(PreconditionNotMetError, match="unscaled already"):
        scaler.unscale_(sgd)


def test_sparse_gradients():
    oprack.seed(1)
    table = nn.Embedding(20, 3, sparse=True)
    sgd = optimizer.SGD(1.0, parameter_list=table.parameters())
    scaler = oprack.amp.GradScaler(init_loss_scaling=16.0)
    before = table.weight.numpy().copy()
    scaler.scale(table(to_tensor(np.array([3, 5, 3]))).sum()).backward()
    assert table.weight.grad.is_sparse
    scaler.step(sgd)
    counts = np.bincount([3, 5, 3], minlength=20)[:, None]
    np.testing.assert_allclose(table.weight.numpy(), before - counts, rtol=1e-6)


def test_state_goes_on_in_another_scaler():
    first = oprack.amp.GradScaler(init_loss_scaling=4.0, incr_every_n_steps=3)
    losses(2, first)
    second = oprack.amp.GradScaler(incr_every_n_steps=3)
    second.load_state_dict(first.state_dict())
    losses(1, second)
    assert second.loss_scaling == 8.0
    with pytest.raises(InvalidArgumentError, match="bad_steps is missing"):
        second.load_state_dict({"scale": [1.0], "good_steps": [0]})


@pytest.mark.parametrize("wrong", [{"incr_ratio": 1.0}, {"decr_ratio": 1.5}, {"incr_every_n_steps": 0}], ids=str)
def test_arguments_are_checked(wrong):
    with pytest.raises(InvalidArgumentError, match="GradScaler"):
        oprack.amp.GradScaler(**wrong)


def test_a_step_without_gradients_says_what_to_do():
    _, sgd, *_ = problem()
    with pytest.raises(PreconditionNotMetError, match=r"scale\(loss\)\.backward"):
        oprack.amp.GradScaler().step(sgd)


NETS = {
    "conv": lambda: nn.Sequential(
        nn.Conv2D(3, 4, 3), nn.BatchNorm2D(4), nn.Hardswish(), nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(4, 2)
    ),
    "depthwise": lambda: nn.Sequential(nn.Conv2D(3, 3, 3, groups=3), nn.PReLU(), nn.MaxPool2D(2)),
    "transposed": lambda: nn.Sequential(nn.Conv2DTranspose(3, 4, 3), nn.GroupNorm(2, 4)),
    "linear and conv": lambda: nn.Sequential(nn.Linear(8, 8), nn.Conv2D(3, 4, 3), nn.Upsample(scale_factor=2)),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", NETS)
def test_what_has_no_kernel_stays_in_float32(name, dtype):
    """On CPUs no pack has kernels of convolutions for half precision; a net with them trains all the same."""
    oprack.seed(2)
    net, x = NETS[name](), oprack.rand([2, 3, 8, 8])
    net(x).sum().backward()
    wanted = [p.grad.numpy().copy() for p in net.parameters()]
    net.clear_grad()
    with oprack.amp.autocast(dtype):
        y = net(x)
    y.astype("float32").sum().backward()
    for p, gradient in zip(net.parameters(), wanted, strict=True):
        assert p.grad.dtype == "float32"
        np.testing.assert_allclose(p.grad.numpy(), gradient, rtol=0.05, atol=0.05 * np.abs(gradient).max() + 1e-5)


def test_which_ops_are_cast():
    x, w = oprack.rand([2, 3]), oprack.rand([3, 2])
    autocast = oprack.amp.autocast

    def dtypes():
        return (x @ w).dtype, oprack.functional.softmax((x @ w).astype("bfloat16")).dtype

    with autocast():
        assert dtypes() == ("bfloat16", "float32")
        with autocast(enable=False):
            assert dtypes() == ("float32", "bfloat16")
        with autocast("float16"):  # the innermost counts
            assert dtypes() == ("float16", "float32")
        with autocast(level="O0"):
            assert dtypes() == ("float32", "bfloat16")
        assert dtypes() == ("bfloat16", "float32")
    with autocast(custom_black_list={"matmul_v2"}, custom_white_list={"softmax"}):
        assert dtypes() == ("float32", "bfloat16")
    with pytest.raises(InvalidArgumentError, match="matmul in custom_white_list and in custom_black_list"):
        autocast(custom_black_list={"matmul"}, custom_white_list={"matmul"})
    with pytest.raises(InvalidArgumentError, match=r"level is 'O2'.*net\.to\(dtype\)"):
        autocast(level="O2")
    assert nn.Linear(2, 2).to("bfloat16").weight.dtype == "bfloat16"


def test_an_error_after_a_cast_names_autocast():
    with oprack.amp.autocast(), pytest.raises(InvalidArgumentError) as caught:
        oprack.rand([2, 3]) @ oprack.rand([2, 3])
    assert "autocast had cast inputs of op matmul_v2 to bfloat16" in caught.value.__notes__[-1]
