"""The state of eager optimizers: saved in one process and taken over in another, and refused when it does not fit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack import functional as F
from oprack import io, nn, optimizer, to_tensor, unique_name
from oprack.errors import InvalidArgumentError, NotFoundError

RESUME = """
import sys
import numpy as np
from oprack import io, nn, optimizer
sys.path.insert(0, {here!r})
from test_state import make, network, steps
teacher = nn.Linear(4, 4)  # names of variables count from here
net = network()
adam = make("Adam", net, {by_path})
net.load_state_dict(io.load_state({net!r}))
adam.load_state_dict(io.load_state({state!r}))
assert net[0].weight.name != "linear_0.w_0"
steps(net, adam, 20, 25)
io.save_state({out!r}, net.state_dict())
"""

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {},
    "Momentum": {"momentum": 0.9},
    "Adam": {"grad_clip": optimizer.ClipGradByGlobalNorm(1.0)},
    "AdamW": {"weight_decay": 0.1},
    "Adamax": {},
    "Adagrad": {},
    "Adadelta": {},
    "RMSProp": {"momentum": 0.5, "centered": True},
    "Ftrl": {},
    "Lamb": {},
    "LarsMomentum": {"momentum": 0.9},
    "DecayedAdagrad": {},
}


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Linear(4, 4, bias_attr=False))


def make(kind: str, net: nn.Module, by_path: bool = True) -> Any:
    rate = optimizer.lr.CosineAnnealingDecay(0.02, T_max=30)
    listed = net.named_parameters() if by_path else net.parameters()
    return getattr(optimizer, kind)(rate, parameter_list=listed, **OPTIMIZERS[kind])


def steps(net: nn.Module, trainer: Any, first: int, last: int) -> None:
    for n in range(first, last):
        x = np.random.default_rng(n).standard_normal((8, 4)).astype(np.float32)
        F.reduce_mean((net(to_tensor(x)) - x[:, ::-1]) ** 2.0, reduce_all=True).backward()
        trainer.step()
        trainer.clear_grad()
        trainer.schedule.step()


def _equal(found: Any, wanted: Any) -> None:
    assert sorted(found) == sorted(wanted)
    for name, value in wanted.items():
        np.testing.assert_array_equal(np.asarray(found[name]), np.asarray(value), err_msg=name)


def _other_values(net: nn.Module) -> None:
    for p in net.parameters():
        p.set_value(np.ones(p.shape))


@pytest.mark.parametrize("by_path", [True, False])
def test_another_process_goes_on_bit_by_bit(tmp_path: Path, by_path: bool) -> None:
    net = network()
    adam = make("Adam", net, by_path)
    steps(net, adam, 0, 20)
    io.save_state(tmp_path / "net.npz", net.state_dict())
    io.save_state(tmp_path / "adam.npz", adam.state_dict())
    steps(net, adam, 20, 25)
    script = RESUME.format(
        here=str(Path(__file__).parent),
        by_path=by_path,
        net=str(tmp_path / "net.npz"),
        state=str(tmp_path / "adam.npz"),
        out=str(tmp_path / "out.npz"),
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
    _equal(io.load_state(tmp_path / "out.npz"), net.state_dict())


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_each_optimizer_goes_on_bit_by_bit(kind: str) -> None:
    net = network()
    trainer = make(kind, net)
    steps(net, trainer, 0, 4)
    other = network()
    _other_values(other)
    resumed = make(kind, other)
    steps(other, resumed, 7, 9)  # what it had before does not count
    other.load_state_dict(net.state_dict())
    resumed.load_state_dict(trainer.state_dict())
    _equal(_flat(resumed.state_dict()), _flat(trainer.state_dict()))
    steps(net, trainer, 4, 8)
    steps(other, resumed, 4, 8)
    _equal(other.state_dict(), net.state_dict())
    _equal(_flat(resumed.state_dict()), _flat(trainer.state_dict()))


def _flat(state: dict[str, Any]) -> dict[str, Any]:
    return {k: sorted(v.items()) if isinstance(v, dict) else v for k, v in state.items()}


def test_state_goes_by_path_or_by_position() -> None:
    net = nn.Sequential(nn.Linear(2, 3))
    for listed, first in ((net.named_parameters(), "0.weight"), (net.parameters(), "0")):
        adam = optimizer.Adam(0.1, parameter_list=listed)
        assert adam.state_dict() == {"not_updated": [first, "0.bias" if first != "0" else "1"]}
        net(np.ones((1, 2), np.float32)).sum().backward()
        adam.step()
        state = adam.state_dict()
        assert list(state)[:4] == [f"{first}.{n}" for n in ("moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc")]
        assert state[f"{first}.moment1"].shape == (2, 3)
        state[f"{first}.moment1"][:] = 7  # copies
        assert not (adam.state_dict()[f"{first}.moment1"] == 7).any()
        adam.clear_grad()


def test_parameters_without_a_gradient_yet() -> None:
    net, other = network(), network()
    net[2].weight.requires_grad = False
    trainer, resumed = make("Adam", net), make("Adam", other)
    steps(net, trainer, 0, 3)
    state = trainer.state_dict()
    assert state["not_updated"] == ["2.weight"] and "2.weight.moment1" not in state
    steps(other, resumed, 0, 2)
    resumed.set_state_dict(state)
    assert resumed.state_dict()["not_updated"] == ["2.weight"]
    other.set_state_dict(net.state_dict())
    net[2].weight.requires_grad = True
    steps(net, trainer, 3, 6)
    steps(other, resumed, 3, 6)
    _equal(other.state_dict(), net.state_dict())
    assert "not_updated" not in trainer.state_dict()


def _stepped(**options: Any) -> tuple[Any, Any]:
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
    adam = optimizer.Adam(0.1, parameter_list=net.named_parameters(), **options)
    net(np.ones((1, 4), np.float32)).sum().backward()
    adam.step()
    adam.clear_grad()
    return net, adam


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda s: {}, NotFoundError, r"the state has no 0\.weight\.moment1, .* and 10 more; not expected: none"),
        (lambda s: {"foo": np.zeros(3)}, NotFoundError, "not expected: foo; pass strict=False"),
        (lambda s: s | {"2.weight.moment1": s["0.weight.moment1"]}, NotFoundError, "no name missing; not expected: 2"),
        (lambda s: s | {"LR_Scheduler": {}}, NotFoundError, "not expected: LR_Scheduler"),
        (lambda s: s | {"not_updated": ["9.bias"]}, NotFoundError, r"'9\.bias' in not_updated"),
        (lambda s: s | {"not_updated": 3}, InvalidArgumentError, "expected a list of the parameters"),
        (
            lambda s: {k: v for k, v in s.items() if k != "1.bias.moment2"},
            NotFoundError,
            r"the state has no 1\.bias\.moment2; not expected: none; pass",
        ),
        (
            lambda s: s | {"1.weight.moment1": np.zeros((3, 4), np.float32)},
            InvalidArgumentError,
            r"1\.weight\.moment1 of the state is float32\[3, 4\]; expected float32\[4, 3\], for tensor 'linear_",
        ),
        (
            lambda s: s | {"1.weight.moment1": np.zeros((4, 3))},
            InvalidArgumentError,
            r"is float64\[4, 3\]; expected float32",
        ),
        (lambda s: s | {"1.bias.moment1": "x"}, InvalidArgumentError, r"1\.bias\.moment1"),
        (
            lambda s: {k.replace(".weight", "").replace("1.bias", "3"): v for k, v in s.items() if "0.bias" not in k},
            NotFoundError,
            r"goes by positions: give the optimizer parameter_list=net\.parameters\(\)",
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(change: Any, error: Any, text: str) -> None:
    _, adam = _stepped()
    before = adam.state_dict()
    with pytest.raises(error, match=text):
        adam.set_state_dict(change(dict(before)))
    _equal(adam.state_dict(), before)


def test_the_advice_of_the_errors_works() -> None:
    net, adam = _stepped()
    state = adam.state_dict()
    by_position = optimizer.Adam(0.1, parameter_list=net.parameters())
    with pytest.raises(NotFoundError, match=r"give the optimizer parameter_list=net\.named_parameters\(\)"):
        by_position.set_state_dict(state)
    optimizer.Adam(0.1, parameter_list=net.named_parameters()).set_state_dict(state)
    by_position.set_state_dict(state, strict=False)
    del state["1.weight.moment1"]
    state["more"] = np.zeros(1)
    state["1.bias.moment1"] = state["1.bias.moment1"] + 1
    adam.set_state_dict(state, strict=False)
    found = adam.state_dict()
    np.testing.assert_array_equal(found["1.bias.moment1"], state["1.bias.moment1"])
    assert found["1.weight.moment1"].any() and "more" not in found


def test_the_schedule_belongs_to_the_state() -> None:
    net = network()
    trainer = make("Adam", net)
    steps(net, trainer, 0, 3)
    state = trainer.state_dict()
    fresh = make("Adam", net)
    fresh.set_state_dict(state)
    assert fresh.get_lr() == trainer.get_lr() != 0.02
    with pytest.raises(NotFoundError, match="has no LR_Scheduler"):
        fresh.set_state_dict({k: v for k, v in state.items() if k != "LR_Scheduler"})
    with pytest.raises(InvalidArgumentError, match="the state has no last_lr"):
        fresh.set_state_dict(state | {"LR_Scheduler": {"last_epoch": 1}})


def _by_variables(net: nn.Module, adam: Any) -> dict[str, Any]:
    """A state by the names that programs give to its variables."""
    own = dict(net.named_parameters())
    found = {}
    for key, value in adam.state_dict().items():
        path, _, name = key.rpartition(".")
        found[f"{own[path].name}_{name}_0"] = value
    return found | {"learning_rate_0": np.float32(0.1)}


def test_states_by_names_of_variables() -> None:
    with unique_name.guard():
        net, adam = _stepped()
    old = _by_variables(net, adam)
    assert "linear_0.w_0_moment1_0" in old
    fresh = optimizer.Adam(0.1, parameter_list=net.named_parameters())
    fresh.set_state_dict(old)
    _equal(fresh.state_dict(), adam.state_dict())
    with unique_name.guard():
        nn.Linear(4, 4)
        other, other_adam = _stepped()
    with pytest.raises(NotFoundError, match=r"names of variables, .* now linear_1\.w_0, linear_1\.b_0, linear_2\.w_0"):
        other_adam.set_state_dict(old)
    assert len(other.parameters()) == 4


def test_the_state_follows_the_dtype_of_the_parameters(tmp_path: Path) -> None:
    net, adam = _stepped()
    net.to(dtype="float64")
    net(np.ones((1, 4))).sum().backward()
    adam.step()  # the state follows the parameters
    state = adam.state_dict()
    assert state["0.weight.moment1"].dtype == np.float64
    io.save_state(tmp_path / "s.npz", state)
    _equal(io.load_state(tmp_path / "s.npz"), state)
    with pytest.raises(InvalidArgumentError, match=r"is float64\[4, 4\]; expected float32"):
        _stepped()[1].set_state_dict(state)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (lambda net: net, r"Sequential.*; expected a list of parameters: net\.parameters\(\)"),
        (lambda net: net[0].weight, "expected a list of parameters: put it into a list"),
        (lambda net: 3, r"3 \(int\); expected a list of parameters: net\.parameters"),
        (lambda net: [{"parameters": net.parameters()}], r'dicts such as \{"params": net\.parameters\(\)'),
        (lambda net: [net], r"expected parameters, as net\.parameters\(\) gives them"),
        (lambda net: [*net.named_parameters()] * 2, "several times"),
    ],
)
def test_parameter_lists_are_checked(given: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        optimizer.Adam(0.1, parameter_list=given(nn.Sequential(nn.Linear(2, 2))))
