"""Optimizer classes against the documented formulas, and what their programs look like."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import Executor, ParamAttr, Program, Scope, layers, optimizer, program_guard, unique_name
from oprack.errors import InvalidArgumentError, NotFoundError, PreconditionNotMetError
from oprack.optimizer import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue, L1Decay, L2Decay
from oprack.types import VarType

sys.path.insert(0, str(Path(__file__).parent))
import update_formulas as f

RATE = 0.1
O = optimizer  # noqa: E741

# name -> (how it is made, its rule, which rows a SelectedRows gradient changes: all ("dense") or those it has ("rows"))
RULES: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "SGD": (O.SGD, f.sgd, "dense"),
    "Momentum": (lambda r, **k: O.Momentum(r, 0.8, **k), f.momentum(0.8), "dense"),
    "Momentum-nesterov": (lambda r, **k: O.Momentum(r, 0.8, True, **k), f.momentum(0.8, True), "dense"),
    "Momentum-L2": (
        lambda r, **k: O.Momentum(r, 0.8, regularization=0.05, **k),
        f.momentum(0.8, decay=0.05),
        "dense",
    ),
    "Adam": (O.Adam, f.adam(), "dense"),
    "Adam-betas": (lambda r, **k: O.Adam(r, 0.8, 0.95, 1e-4, **k), f.adam(0.8, 0.95, 1e-4), "dense"),
    "Adam-lazy": (lambda r, **k: O.Adam(r, lazy_mode=True, **k), f.adam(), "rows"),
    "AdamW": (lambda r, **k: O.AdamW(r, weight_decay=0.2, **k), f.adam(decay=0.2), "dense"),
    "Adamax": (O.Adamax, f.adamax, ""),
    "Adagrad": (O.Adagrad, f.adagrad(0.0), "dense"),
    "Adagrad-start": (lambda r, **k: O.Adagrad(r, initial_accumulator_value=0.5, **k), f.adagrad(0.5), "dense"),
    "DecayedAdagrad": (O.DecayedAdagrad, f.decayed_adagrad, ""),
    "Adadelta": (O.Adadelta, f.adadelta, ""),
    "RMSProp": (lambda r, **k: O.RMSProp(r, momentum=0.3, **k), f.rmsprop(False), "dense"),
    "RMSProp-centered": (lambda r, **k: O.RMSProp(r, momentum=0.3, centered=True, **k), f.rmsprop(True), "dense"),
    "Ftrl": (lambda r, **k: O.Ftrl(r, 0.01, 0.02, **k), f.ftrl, "rows"),
    "Lamb": (O.Lamb, f.lamb, "dense"),
    "LarsMomentum": (lambda r, **k: O.LarsMomentum(r, lars_coeff=0.02, **k), f.lars, ""),
    "Dpsgd": (lambda r, **k: O.Dpsgd(r, clip=0.3, sigma=0.0, **k), f.dpsgd, ""),
}


def _op(op_type: str, inputs: dict[str, Any], attrs: dict[str, Any] | None = None) -> Any:
    helper = layers.LayerHelper(op_type)
    out = helper.create_variable_for_type_inference()
    helper.append_op(op_type, inputs, {"Out": out}, attrs)
    return out


def _parameter(name: str, shape: list[int], dtype: str, **attr: Any) -> Any:
    return layers.LayerHelper("model").create_parameter(ParamAttr(name=name, **attr), shape, dtype)


class Regression:
    """mean((x @ w + b + table[ids] - y)^2), as a program and in NumPy. w learns at half the rate."""

    def __init__(self, make: Any, sparse: bool = False, dtype: str = "float64", **attr: Any) -> None:
        self.main, self.startup, self.sparse, self.dtype = Program(), Program(), sparse, dtype
        with unique_name.guard(), program_guard(self.main, self.startup):
            x, y = layers.data("x", [None, 3], dtype), layers.data("y", [None, 1], dtype)
            p = x @ _parameter("w", [3, 1], dtype, **{"learning_rate": 0.5, **attr}) + _parameter("b", [1], dtype)
            if sparse:
                table, ids = _parameter("table", [7, 1], dtype), layers.data("ids", [None, 1], "int64")
                p = p + _op("lookup_table", {"Ids": ids, "W": table}, {"is_sparse": True})
            d = p - y
            self.loss = _op("mean", {"X": d * d})
            self.optimizer = make(RATE)
            self.ops, self.pairs = self.optimizer.minimize(self.loss)
        self.scope = Scope()
        Executor(seed=5).run(self.startup, scope=self.scope)
        self.names = [p.name for p, _ in self.pairs]

    def feed(self, step: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(step)
        feed = {"x": rng.normal(size=(6, 3)).astype(self.dtype), "y": rng.normal(size=(6, 1)).astype(self.dtype)}
        return feed | ({"ids": rng.integers(0, 5, (6, 1))} if self.sparse else {})

    def values(self) -> dict[str, np.ndarray]:
        return {n: np.array(self.scope.get_var(n).get()) for n in self.names}

    def gradients(self, w: dict[str, np.ndarray], feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        d = feed["x"] @ w["w"] + w["b"] - feed["y"]
        if self.sparse:
            d = d + w["table"][feed["ids"][:, 0]]
        d = 2 * d / len(d)
        found = {"w": feed["x"].T @ d, "b": d.sum(0)}
        if self.sparse:
            found["table"] = np.zeros((7, 1))
            np.add.at(found["table"], feed["ids"][:, 0], d)
        return found

    def run(self, exe: Any, step: int) -> float:
        return float(exe.run(self.main, self.feed(step), [self.loss], self.scope)[0])


def _check(model: Regression, rule: Any, rows_only: bool, prepared: bool, adjusted: Any = None) -> None:
    """Five steps of the program and of the rule."""
    want = model.values()
    states: dict[str, dict[str, Any]] = {n: {} for n in want}
    exe = Executor(prepared=prepared)
    for step in range(5):
        feed = model.feed(step)
        model.run(exe, step)
        gradients = model.gradients(want, feed)
        if adjusted is not None:
            gradients = adjusted(gradients, want)
        for name, g in gradients.items():
            rate = RATE * (0.5 if name == "w" else 1.0)
            if name == "table" and rows_only:
                kept = {k: np.array(v) for k, v in states[name].items()}
                rows = np.unique(feed["ids"])
                new = rule(want[name], g, states[name], rate, step + 1)
                for key, value in states[name].items():
                    before = kept.get(key, np.zeros_like(value))
                    states[name][key] = np.where(np.isin(np.arange(7), rows)[:, None], value, before)
                want[name] = np.where(np.isin(np.arange(7), rows)[:, None], new, want[name])
            else:
                want[name] = rule(want[name], g, states[name], rate, step + 1)
        for name, value in model.values().items():
            np.testing.assert_allclose(value, want[name], rtol=2e-6, atol=2e-7, err_msg=f"{name} after step {step}")


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_dense(name: str, prepared: bool) -> None:
    make, rule, _ = RULES[name]
    _check(Regression(make), rule, False, prepared)


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("name", [name for name, (_, _, sparse) in RULES.items() if sparse])
def test_selected_rows(name: str, prepared: bool) -> None:
    """The gradient of an embedding with is_sparse, in which rows repeat and two rows never occur."""
    make, rule, sparse = RULES[name]
    model = Regression(make, sparse=True)
    assert model.main.global_block().var("table@GRAD").type is VarType.SELECTED_ROWS
    _check(model, rule, sparse == "rows", prepared)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["value", "norm", "global norm"])
def test_clipping(kind: str, sparse: bool) -> None:
    """Of all gradients but that of b, which has need_clip=False; SelectedRows are merged first."""
    limit = 0.2
    clip = {"value": ClipGradByValue, "norm": ClipGradByNorm, "global norm": ClipGradByGlobalNorm}[kind](limit)

    def adjusted(gradients: dict[str, Any], want: Any) -> dict[str, Any]:
        chosen = {n: g for n, g in gradients.items() if n != "w"}
        if kind == "value":
            chosen = {n: g.clip(-limit, limit) for n, g in chosen.items()}
        elif kind == "norm":
            chosen = {n: g * min(1, limit / np.linalg.norm(g)) for n, g in chosen.items()}
        else:
            norm = np.sqrt(sum((g * g).sum() for g in chosen.values()))
            chosen = {n: g * limit / max(limit, norm) for n, g in chosen.items()}
        return gradients | chosen

    model = Regression(lambda r: O.SGD(r, grad_clip=clip), sparse=sparse, need_clip=False)
    _check(model, f.sgd, False, True, adjusted)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("own", [None, L1Decay(0.3), L2Decay(0.2)])
@pytest.mark.parametrize("shared", [L1Decay(0.1), L2Decay(0.1), 0.1])
def test_regularization(shared: Any, own: Any, sparse: bool) -> None:
    """After clipping; a parameter's own regularizer replaces the optimizer's."""

    def penalty(regularizer: Any, w: np.ndarray) -> np.ndarray:
        if isinstance(regularizer, float):
            regularizer = L2Decay(regularizer)
        return regularizer.coeff * (np.sign(w) if isinstance(regularizer, L1Decay) else w)

    def adjusted(gradients: dict[str, Any], want: dict[str, Any]) -> dict[str, Any]:
        found = {n: g.clip(-0.1, 0.1) for n, g in gradients.items()}
        return {n: g + penalty(own if n == "w" and own else shared, want[n]) for n, g in found.items()}

    for make, rule in ((O.SGD, f.sgd), (O.Momentum, f.momentum(0.9))):
        model = Regression(
            lambda r, make=make: make(r, regularization=shared, grad_clip=ClipGradByValue(0.1)),
            sparse=sparse,
            regularizer=own,
        )
        _check(model, rule, False, True, adjusted)


def test_dpsgd_adds_noise() -> None:
    """The same seed gives the same noise, another one other noise."""

    def trained(seed: int) -> np.ndarray:
        model = Regression(lambda r: O.Dpsgd(r, sigma=2.0, batch_size=4.0))
        model.run(Executor(seed=seed), 0)
        return model.values()["w"]

    assert np.array_equal(trained(1), trained(1))
    assert not np.array_equal(trained(1), trained(2))


# Programs -----------------------------------------------------------------------------------------------------------
def test_program_is_paddles() -> None:
    """Names, slots, roles, and constants of the startup program as Paddle 2.6.2 has them for Adam."""
    model = Regression(O.Adam, dtype="float32")
    block = model.main.global_block()
    updates = [op for op in block.ops if op.type == "adam"]
    assert [op.inputs["Param"] for op in updates] == [["b"], ["w"]], "in the order of the names"
    op = updates[1]
    inputs, outputs = ({s: n for s, n in slots.items() if n} for slots in (op.inputs, op.outputs))
    assert inputs == {
        "Param": ["w"],
        "Grad": ["w@GRAD"],
        "LearningRate": ["learning_rate_0.scaled_0"],
        "Moment1": ["w_moment1_0"],
        "Moment2": ["w_moment2_0"],
        "Beta1Pow": ["w_beta1_pow_acc_0"],
        "Beta2Pow": ["w_beta2_pow_acc_0"],
    }
    assert outputs == {f"{s}Out": n for s, n in inputs.items() if s not in ("Grad", "LearningRate")}
    assert op.attrs["op_role"] == 2 and op.attrs["op_role_var"] == ["w", "w@GRAD"]
    assert op.attrs["op_namescope"] == "/optimizer_1/"
    scale = next(op for op in block.ops if op.type == "scale")
    assert (scale.attrs["op_role"], scale.attrs["scale"]) == (18, 0.5)
    assert updates[0].inputs["LearningRate"] == ["learning_rate_0"]
    filled = {
        op.outputs["Out"][0]: (op.attrs["shape"], op.attrs["value"], op.attrs["op_role"])
        for op in model.startup.global_block().ops
        if op.type == "fill_constant"
    }
    assert filled["learning_rate_0"] == ([], pytest.approx(0.1), 0)
    assert filled["w_moment2_0"] == ([3, 1], 0.0, 0)
    assert filled["w_beta1_pow_acc_0"] == ([1], pytest.approx(0.9), 0)
    assert filled["w_beta2_pow_acc_0"] == ([1], pytest.approx(0.999), 0)
    assert model.optimizer.state("w", "moment1").name == "w_moment1_0"
    assert {op.attrs["op_role"] for op in block.ops} == {0, 256, 257, 1, 2, 18}
    assert model.main.clone(for_test=True).op_types().isdisjoint({"adam", "scale", "mean_grad"})


@pytest.mark.parametrize("name", sorted({n.partition("-")[0] for n in RULES}))
def test_fluid_names(name: str) -> None:
    assert getattr(optimizer, f"{name}Optimizer") is getattr(optimizer, name)


def test_serialized_program_trains_the_same() -> None:
    """A program that was written and parsed gives the same numbers."""
    clip = ClipGradByGlobalNorm(0.5)
    model = Regression(lambda r: O.Adam(r, grad_clip=clip, regularization=0.1), sparse=True, dtype="float32")
    parsed, scope = Program.parse(model.main.serialize()), Scope()
    for var in model.main.list_vars():
        if var.persistable:
            scope.var(var.name).set(np.array(model.scope.get_var(var.name).get()))
    exe = Executor()
    for step in range(3):
        loss = model.run(exe, step)
        assert float(exe.run(parsed, model.feed(step), [model.loss.name], scope)[0]) == loss


def test_excluded_from_decay() -> None:
    """AdamW, Lamb and LarsMomentum take parameters out of their decay; AdamW scales learning rates."""
    adamw = Regression(
        lambda r: O.AdamW(r, apply_decay_param_fun=lambda n: n != "b", lr_ratio=lambda p: 0.25 if p.name == "b" else 1)
    )
    assert [(op.attrs["with_decay"], op.attrs["lr_ratio"]) for op in adamw.ops] == [(False, 0.25), (True, 1.0)]
    lamb = Regression(lambda r: O.Lamb(r, exclude_from_weight_decay_fn=lambda p: p.name == "b"))
    assert [op.attrs["weight_decay"] for op in lamb.ops] == [0.0, pytest.approx(0.01)]
    lars = Regression(lambda r: O.LarsMomentum(r, exclude_from_weight_decay=["b"]))
    assert [op.attrs["lars_weight_decay"] for op in lars.ops] == [[0.0], [pytest.approx(0.0005)]]


def test_learning_rate_from_a_variable() -> None:
    """A Variable of the program, here fed."""
    main, startup, scope = Program(), Program(), Scope()
    with unique_name.guard(), program_guard(main, startup):
        w, rate = _parameter("w", [1], "float32"), layers.data("rate", [1])
        sgd = O.SGD(rate)
        sgd.minimize(w * 2.0)
    exe = Executor()
    exe.run(startup, scope=scope)
    before = scope.get_var("w").get().array.item()
    exe.run(main, {"rate": np.array([0.25], np.float32)}, scope=scope)
    assert scope.get_var("w").get().array.item() == pytest.approx(before - 0.5, rel=1e-6)
    with pytest.raises(PreconditionNotMetError, match="variable 'rate'; fetch it from a run"):
        sgd.get_lr()


def test_set_lr() -> None:
    model = Regression(O.SGD)
    model.optimizer.set_lr(0.0, model.scope)
    assert model.optimizer.get_lr() == 0.0
    before = model.values()
    model.run(Executor(), 0)
    assert all(np.array_equal(before[n], v) for n, v in model.values().items())
    scheduled = Regression(lambda r: O.SGD(O.lr.StepDecay(r, 2)))
    assert scheduled.optimizer.get_lr() == RATE
    with pytest.raises(PreconditionNotMetError, match="set_lr can't change a learning rate that <StepDecay"):
        scheduled.optimizer.set_lr(0.1)


def test_backward_and_apply_gradients_apart() -> None:
    """Between them gradients may be changed by ops; parameter_list and no_grad_set choose what is trained."""
    main, startup, scope = Program(), Program(), Scope()
    with unique_name.guard(), program_guard(main, startup):
        w, b = _parameter("w", [2], "float32"), _parameter("b", [2], "float32")
        loss = _op("mean", {"X": w * b})
        sgd = O.SGD(1.0)
        ((p, g),) = sgd.backward(loss, parameter_list=[w])
        assert (p.name, g.name) == ("w", "w@GRAD")
        sgd.apply_gradients([(p, g * 10.0)])
    exe = Executor()
    exe.run(startup, scope=scope)
    before = {n: np.array(scope.get_var(n).get()) for n in "wb"}
    exe.run(main, scope=scope)
    np.testing.assert_allclose(scope.get_var("w").get().array, before["w"] - 5 * before["b"], rtol=1e-5)
    np.testing.assert_array_equal(scope.get_var("b").get().array, before["b"])


def test_a_parameter_that_is_not_trainable() -> None:
    model = Regression(O.SGD, trainable=False)
    assert model.names == ["b"]


def test_fp32_and_two_losses() -> None:
    """One optimizer may minimize two losses of one program; the state of a parameter is shared."""
    main, startup, scope = Program(), Program(), Scope()
    with unique_name.guard(), program_guard(main, startup):
        w = _parameter("w", [2], "float32")
        momentum = O.Momentum(0.1, 0.5)
        momentum.minimize(_op("mean", {"X": w}))
        momentum.minimize(_op("mean", {"X": w * 3.0}))
    assert [v.name for v in main.list_vars() if v.persistable] == ["w", "learning_rate_0", "w_velocity_0"]
    exe = Executor()
    exe.run(startup, scope=scope)
    before = np.array(scope.get_var("w").get())
    exe.run(main, scope=scope)
    # 0.5, then 0.25 + 1.5
    np.testing.assert_allclose(scope.get_var("w").get().array, before - 0.1 * (0.5 + 1.75), rtol=1e-6)
    np.testing.assert_allclose(scope.get_var("w_velocity_0").get().array, [1.75, 1.75], rtol=1e-6)


# Refusals -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: O.SGD("0.1"), "SGD: learning_rate is '0.1'; expected a finite number, a scheduler"),
        (lambda: O.SGD(float("nan")), "SGD: learning_rate is nan"),
        (lambda: O.Adam(0.1, regularization="l2"), "Adam: regularization is 'l2'; expected a WeightDecay"),
        (lambda: O.Adam(0.1, grad_clip=1.0), "Adam: grad_clip is 1.0; expected a GradientClip"),
        (lambda: ClipGradByGlobalNorm(0.0), "clip_norm is 0; expected a number greater than 0"),
        (lambda: ClipGradByNorm(-1.0), "clip_norm is -1.0; expected a finite number of at least 0"),
        (lambda: ClipGradByValue(1.0, 2.0), "min is 2.0 and max is 1.0; expected min <= max"),
        (lambda: L2Decay("x"), "L2Decay: coeff is 'x'; expected a finite number"),
    ],
)
def test_bad_arguments(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


def test_bad_beta() -> None:
    """The op's own check names the attribute."""
    with pytest.raises(oprack.errors.AttributeValueError, match=r"adam.*beta1.*1\.5"):
        Regression(lambda r: O.Adam(r, beta1=1.5))


def test_state_before_minimize() -> None:
    with pytest.raises(NotFoundError, match="no 'moment1' of parameter 'w'; it has moment1, moment2"):
        O.Adam(0.1).state("w", "moment1")


def test_no_gradients() -> None:
    with pytest.raises(PreconditionNotMetError, match="there is no gradient to apply"):
        O.SGD(0.1).apply_gradients([])


def test_two_programs() -> None:
    """An optimizer's state is in one program; parameters of another one are refused."""
    model, other = Regression(O.Adam), Regression(O.Adam)
    with program_guard(other.main, other.startup):
        with pytest.raises(InvalidArgumentError, match=r"trains another program.*'mean_0.tmp_0'.* parameters b, w"):
            model.optimizer.minimize(other.loss)
        with pytest.raises(InvalidArgumentError, match="parameter 'w' is of another program than loss"):
            O.SGD(0.1).minimize(other.loss, parameter_list=[p for p, _ in model.pairs])
        with pytest.raises(InvalidArgumentError, match="apply the gradients of one program at a time"):
            O.SGD(0.1).apply_gradients([model.pairs[0], other.pairs[1]])


def test_clips_and_regularizers_are_found_under_all_their_names():
    assert optimizer.GradientClipByNorm is ClipGradByNorm and optimizer.L2DecayRegularizer is L2Decay
    assert issubclass(L1Decay, optimizer.WeightDecay) and issubclass(ClipGradByValue, optimizer.GradientClip)
