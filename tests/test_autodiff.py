"""gradients() and append_backward(): Paddle's numbers for every case file, and how passes name, prune and refuse."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import Executor, Program, Scope, SelectedRows, layers, program_guard, unique_name
from oprack.autodiff import LostGradientWarning, append_backward, gradients
from oprack.autodiff.appender import OpRole
from oprack.errors import (
    InvalidArgumentError,
    NotDifferentiableError,
    NotFoundError,
    PreconditionNotMetError,
)
from oprack.packs.manager import default_manager
from oprack.tensor import LoDTensorArray
from oprack.testing import FileCase, Limitation, load_cases
from oprack.testing.cases import Expected, Stage, compare
from oprack.testing.runner import copied, differences, missing_ops, run_case

CASES = Path(__file__).parent / "data" / "cases"
INDEX = [json.loads(line) for line in (CASES / "index.jsonl").read_text().splitlines()]

# Cases in which another chain of gradient ops than Paddle's is right.
OTHERWISE = [
    Limitation("pad.0005", "Paddle fills the second derivative with pad_value instead of 0", stages=("gradient2",)),
]


def _files(order: str) -> list[str]:
    """Files of ops that packs bring, with gradients of that order."""
    return sorted({e["file"] for e in INDEX if e[order] and default_manager().has_op(e["op_type"])})


# Paddle's numbers ---------------------------------------------------------------------------------------------------
def _differentiated(case: FileCase, stage: Stage) -> tuple[Program, list[str | None]]:
    """The forward program with the gradients of a stage appended, and their names."""
    program = case.program("forward")
    block = program.global_block()
    first = case.header["grad"]
    for cot in first["cotangents"]:
        lod_level = len(cot.get("lod") or [])
        block.create_var(cot["var"], dtype=cot["dtype"], shape=cot["shape"], lod_level=lod_level)
    for var in block.vars.values():
        var.stop_gradient = False
    targets, cotangents = [c["target"] for c in first["cotangents"]], [c["var"] for c in first["cotangents"]]
    names = gradients(targets, [w["wrt"] for w in first["wrt"]], cotangents, block=block)
    if stage == "gradient":
        return program, names
    second = case.header["grad2"]
    by_target = {w["var"]: name for w, name in zip(first["wrt"], names, strict=True)}
    for cot in second["cotangents"]:
        block.create_var(cot["var"], dtype=block.var(cot["target"]).dtype, shape=block.var(cot["target"]).shape)
    targets = [str(by_target[c["target"]]) for c in second["cotangents"]]
    cotangents = [c["var"] for c in second["cotangents"]]
    return program, gradients(targets, [w["wrt"] for w in second["wrt"]], cotangents, block=block)


def _values(case: FileCase, stage: Stage) -> dict[str, Any]:
    """Gradients by the names that the case gives them."""
    program, names = _differentiated(case, stage)
    scope, feed = Scope(), {}
    for name, value in case.inputs(stage).items():
        if name in case.persistable or isinstance(value, SelectedRows):
            scope.var(name).set(copied(value))
        else:
            feed[name] = value
    found = Executor().run(program, feed, [n for n in names if n], scope, return_numpy=False)
    values = iter(LoDTensorArray(v) if isinstance(v, list) else v for v in found)
    wanted = [e.name for e in case.expected(stage)]
    return {name: next(values) for name, own in zip(wanted, names, strict=True) if own}


def _check_file(file: str, stage: Stage) -> None:
    failures, ran = [], 0
    for case in load_cases(CASES / file):
        if not case.has(stage) or not case.has("forward") or missing_ops(case, stage, default_manager()):
            continue
        ran += 1
        reasons, known = _check(case, stage), [k.reason for k in OTHERWISE if k.covers(case.id, stage)]
        if bool(reasons) != bool(known):
            failures.append(f"{case.id}: {'; '.join(reasons) or f'passes now, so it is no exception: {known}'}")
    assert not failures, "\n".join(failures)
    assert ran, f"{file}: no case of this file has a gradient that can run"


def _check(case: FileCase, stage: Stage) -> list[str]:
    got = _values(case, stage)
    absent = [e.name for e in case.expected(stage) if e.name not in got]
    if absent:
        return [f"{', '.join(absent)}: no gradient"]
    found = differences(case, stage, got)
    if not found:
        return []
    # The kernels differ from Paddle's here, which the pack's conformance test lists; then Paddle's gradient program,
    # run by the same kernels, says what the chain of ops should give
    reference = run_case(case, stage, Executor())
    return [
        f"{name} {reason}"
        for name, value in got.items()
        if (reason := compare(Expected(name, reference[name], {"rtol": 1e-6, "atol": 1e-6}), value))
    ]


@pytest.mark.parametrize("file", _files("has_grad"))
def test_first_order(file: str) -> None:
    """The forward program of every case, differentiated here, gives Paddle's gradients."""
    _check_file(file, "gradient")


@pytest.mark.parametrize("file", _files("has_grad2"))
def test_second_order(file: str) -> None:
    """gradients() of what gradients() returned gives Paddle's second derivatives."""
    _check_file(file, "gradient2")


# Passes -------------------------------------------------------------------------------------------------------------
@pytest.fixture
def program() -> Any:
    main, startup = Program(), Program()
    with unique_name.guard(), program_guard(main, startup):
        yield main


def _x(name: str = "x", shape: tuple[int, ...] = (3,), dtype: str = "float32") -> Any:
    found = layers.data(name, list(shape), dtype)
    found.stop_gradient = False
    return found


def _run(program: Program, feed: dict[str, Any], *fetch: Any) -> list[np.ndarray]:
    arrays = {n: np.asarray(v, np.float32) if not isinstance(v, np.ndarray) else v for n, v in feed.items()}
    return Executor().run(program, arrays, list(fetch), Scope())


def _types(program: Program) -> list[str]:
    return [op.type for op in program.global_block().ops]


def test_partial_gradients_are_named_and_summed(program: Program) -> None:
    """x is read three times: its partial gradients are `x@GRAD@RENAME@block0@i`, summed once."""
    x = _x()
    y = x * x + layers.exp(x)
    (g,) = oprack.gradients(y, x)
    sums = [op for op in program.global_block().ops if op.type == "sum"]
    assert [op.inputs["X"] for op in sums] == [[f"x@GRAD@RENAME@block0@{i}" for i in range(3)]]
    assert sums[0].outputs == {"Out": ["x@GRAD"]} and g.name == "x@GRAD"
    (value,) = _run(program, {"x": [1, 2, 3]}, g)
    np.testing.assert_allclose(value, 2 * np.array([1, 2, 3]) + np.exp([1, 2, 3]), rtol=1e-6)


def test_several_calls_in_one_block(program: Program) -> None:
    """A second call has names of its own, so that both results can be fetched."""
    x = _x()
    (one,) = oprack.gradients(x * x, x)
    (two,) = oprack.gradients(layers.exp(x), x)
    (three,) = oprack.gradients([x * 5.0, x * 7.0], [x])
    assert [g.name for g in (one, two, three)] == ["x@GRAD", "x@GRAD_1", "x@GRAD_2"]
    values = _run(program, {"x": [1, 2, 3]}, one, two, three)
    np.testing.assert_allclose(values, [[2, 4, 6], np.exp([1, 2, 3]), [12, 12, 12]], rtol=1e-6)


def test_third_order(program: Program) -> None:
    x = _x()
    y = layers.tanh(x)
    for _ in range(3):
        (y,) = oprack.gradients(y, x)
    (value,) = _run(program, {"x": [0.1, 0.5, -2.0]}, y)
    t = np.tanh([0.1, 0.5, -2.0])
    np.testing.assert_allclose(value, -2 * (1 - t**2) * (1 - 3 * t**2), rtol=1e-4)


def test_a_penalty_on_a_gradient(program: Program) -> None:
    """Gradients may be used in ops, and a loss of them trained on."""
    x = _x()
    (g,) = oprack.gradients(x * x * x, x)
    (value,) = _run(program, {"x": [1, 2, 3]}, oprack.gradients(layers.reduce_sum(g * g), x)[0])
    np.testing.assert_allclose(value, 36 * np.array([1, 2, 3]) ** 3, rtol=1e-6)


def test_given_cotangents(program: Program) -> None:
    x, weight = _x(), _x("weight")
    (g,) = oprack.gradients(x * x, x, weight)
    (value,) = _run(program, {"x": [1, 2, 3], "weight": [1, 0, -1]}, g)
    np.testing.assert_allclose(value, [2, 0, -6])
    with pytest.raises(InvalidArgumentError, match="1 targets but 2 target_gradients; expected one for each, or None"):
        gradients([x], [x], [weight, weight])


def test_of_an_inner_variable_and_of_the_target(program: Program) -> None:
    """Inputs may be anything on the way, the target itself included; None is returned where nothing depends."""
    x, other = _x(), _x("other")
    h = layers.exp(x)
    y = h * h
    of_x, of_h, of_y, none = oprack.gradients(y, [x, h, y, other])
    assert none is None
    values = _run(program, {"x": [0, 1, 2]}, of_x, of_h, of_y)
    e = np.exp([0.0, 1, 2])
    np.testing.assert_allclose(values, [2 * e * e, 2 * e, [1, 1, 1]], rtol=1e-6)


# What does not take part --------------------------------------------------------------------------------------------
def test_no_grad_set_and_stop_gradient(program: Program) -> None:
    """Nothing flows through them, and no op is appended for that side."""
    x = _x()
    (cut,) = oprack.gradients(layers.exp(x) * x, x, no_grad_set=["exp_0.tmp_0"])
    assert "exp_grad" not in _types(program)
    detached = layers.sin(x)
    detached.stop_gradient = True
    (stopped,) = oprack.gradients(detached * x, x)
    assert "sin_grad" not in _types(program)
    (assigned,) = oprack.gradients(layers.sin(x).detach() * x, x)
    values = _run(program, {"x": [0, 1, 2]}, cut, stopped, assigned)
    np.testing.assert_allclose(values, [np.exp([0.0, 1, 2]), np.sin([0.0, 1, 2]), np.sin([0.0, 1, 2])], rtol=1e-6)


def test_ops_off_the_path_are_left_out(program: Program) -> None:
    x = _x()
    layers.exp(x)
    y = layers.sin(x)
    layers.cos(y)
    oprack.gradients(y, x)
    assert [t for t in _types(program) if t.endswith("_grad")] == ["sin_grad"]


def test_outputs_that_nobody_reads_have_zero_gradients(program: Program) -> None:
    """Only the second half of a split is used: the gradient op gets zeros for the first."""
    x = _x(shape=(4,))
    _, second = layers.split(x, 2, dim=0)
    (g,) = oprack.gradients(second * second, x)
    (value,) = _run(program, {"x": [1, 2, 3, 4]}, g)
    np.testing.assert_allclose(value, [0, 0, 6, 8])


def test_integers_have_no_gradient(program: Program) -> None:
    """The index of gather is no reason to look for a gradient of it."""
    x, index = _x(), layers.data("i", [2], "int64")
    index.stop_gradient = False
    of_x, of_index = oprack.gradients(layers.gather(x, index), [x, index])
    assert of_index is None
    (value,) = _run(program, {"x": [1, 2, 3], "i": np.array([2, 2])}, of_x)
    np.testing.assert_allclose(value, [0, 0, 2])


# Loops and branches -------------------------------------------------------------------------------------------------
def test_while(program: Program) -> None:
    """x * w^n in a loop of n rounds, for x and for w."""
    x, w = _x(), _x("w", (1,))
    i, n = layers.fill_constant([1], "int64", 0), layers.data("n", [1], "int64")
    _, y = layers.while_loop(lambda i, y: i < n, lambda i, y: [i + 1, y * w], [i, x])
    grads = oprack.gradients(y, [x, w])
    for rounds in (0, 1, 3):
        feed = {"x": [1, 2, 3], "w": [2], "n": np.array([rounds])}
        value, of_x, of_w = _run(program, feed, y, *grads)
        np.testing.assert_allclose(value, np.array([1, 2, 3]) * 2**rounds)
        np.testing.assert_allclose(of_x, [2**rounds] * 3)
        np.testing.assert_allclose(of_w, [6 * rounds * 2.0 ** (rounds - 1)])


def test_conditional_block(program: Program) -> None:
    """Each branch has its gradient, that of the other is zero."""
    x, w = _x(shape=(1,)), _x("w", (1,))
    y = layers.cond(layers.reduce_sum(x) > 0.0, lambda: x * w, lambda: x * x)
    grads = oprack.gradients(y, [x, w])
    for value in (2.0, -3.0):
        of_x, of_w = _run(program, {"x": [value], "w": [5]}, *grads)
        np.testing.assert_allclose(of_x, [5 if value > 0 else 2 * value])
        np.testing.assert_allclose(of_w, [value if value > 0 else 0])


# append_backward ----------------------------------------------------------------------------------------------------
def _parameter(name: str, shape: list[int], **attr: Any) -> Any:
    return layers.create_parameter(shape, "float32", attr=oprack.ParamAttr(name=name, **attr))


def test_roles_and_pairs(program: Program) -> None:
    """op_role of the loss, of the seed and of gradient ops; op_role_var where a parameter's gradient is complete."""
    w, b = _parameter("w", [3]), _parameter("b", [3])
    loss = layers.mean(layers.exp(w) * w + b)
    pairs = oprack.append_backward(loss)
    assert [(p.name, g.name) for p, g in pairs] == [("w", "w@GRAD"), ("b", "b@GRAD")]
    ops = program.global_block().ops
    roles = {op.type: OpRole(op.attrs["op_role"]) for op in ops}
    assert roles["mean"] == OpRole.FORWARD | OpRole.LOSS and roles["fill_constant"] == OpRole.BACKWARD | OpRole.LOSS
    assert roles["exp"] == OpRole.FORWARD and roles["exp_grad"] == OpRole.BACKWARD
    complete = {op.type: op.attrs["op_role_var"] for op in ops if op.attrs.get("op_role_var")}
    assert complete == {"sum": ["w", "w@GRAD"], "elementwise_add_grad": ["b", "b@GRAD"]}


def test_parameter_list(program: Program) -> None:
    w, b, frozen = _parameter("w", [3]), _parameter("b", [3]), _parameter("frozen", [3], trainable=False)
    loss = layers.mean(w * b * frozen)
    assert [p.name for p, _ in oprack.append_backward(loss, [b])] == ["b"]
    assert [p.name for p, _ in oprack.append_backward(loss)] == ["w", "b"]
    assert append_backward(loss, no_grad_set=[w]) == [("b", "b@GRAD_2")]


def test_an_embedding_has_rows_for_a_gradient(program: Program) -> None:
    ids = layers.data("ids", [None, 1], "int64")
    table = layers.embedding(ids, [7, 2], is_sparse=True, param_attr="table")
    ((_, g),) = oprack.append_backward(layers.mean(table))
    assert g.type is oprack.types.VarType.SELECTED_ROWS and g.shape == (7, 2)


# Refusals -----------------------------------------------------------------------------------------------------------
def test_an_op_without_gradient_names_the_path(program: Program) -> None:
    """The op, its pack, the way from it to the target, and what to do."""
    x = _x()
    (g,) = oprack.gradients(layers.hard_swish(x), x)
    h = layers.reduce_sum(g * 2.0)
    with pytest.raises(
        NotDifferentiableError,
        match=r"op hard_swish_grad \(pack oprack-nn\) has no gradient, but lies on the path to reduce_sum_0.tmp_0: "
        r"hard_swish_grad -> x@GRAD -> scale -> scale_0.tmp_0 -> reduce_sum -> reduce_sum_0.tmp_0; give it a make_grad",
    ) as caught:
        oprack.gradients(h, x)
    assert "name its inputs" in str(caught.value) and "at File " in str(caught.value)


def test_a_refused_pass_appends_nothing(program: Program) -> None:
    x = _x()
    (g,) = oprack.gradients(layers.hard_swish(x), x)
    before = str(program)
    with pytest.raises(NotDifferentiableError):
        oprack.gradients(g, x)
    assert str(program) == before


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda w: w * w, InvalidArgumentError, r"is float32\[3\]; expected one floating element, so reduce it first"),
        (
            lambda w: layers.cast(layers.mean(w), "int64"),
            InvalidArgumentError,
            r"is int64\[\]; expected one floating element",
        ),
        (
            lambda w: layers.mean(layers.fill_constant([3], "float32", 1.0)),
            PreconditionNotMetError,
            "depends on none of the parameters w; check that the layers between them are not cut by stop_gradient",
        ),
        (lambda w: layers.mean(w.detach()), PreconditionNotMetError, "depends on none of the parameters w"),
        (lambda w: layers.data("loss", [1]), PreconditionNotMetError, "no op of block 0 writes the loss 'loss'"),
    ],
)
def test_losses_that_can_not_be_trained(program: Program, build: Any, error: type[Exception], message: str) -> None:
    loss = build(_parameter("w", [3]))
    with pytest.raises(error, match=message):
        oprack.append_backward(loss)


def test_no_parameters(program: Program) -> None:
    with pytest.raises(PreconditionNotMetError, match="has no parameter that may be trained; create one, or pass"):
        oprack.append_backward(layers.mean(_x()))


def test_names_that_are_not_there(program: Program) -> None:
    w = _parameter("w", [3])
    loss = layers.mean(w)
    with pytest.raises(NotFoundError, match="'v' is not a variable of the loss's program"):
        oprack.append_backward(loss, ["v"])
    with pytest.raises(NotFoundError, match=r"variable 'ww' .*did you mean w"):
        oprack.gradients(loss, ["ww"])
    with pytest.raises(InvalidArgumentError, match=r"loss is 'loss' \(str\); expected Variable"):
        oprack.append_backward("loss")


def _slope(f: Any, x: np.ndarray, direction: np.ndarray, step: float = 1e-6) -> float:
    return float((f(x + step * direction) - f(x - step * direction)) / (2 * step))


def _cell(x: Any) -> Any:
    hidden, cell = oprack.functional.lstm(x, WEIGHT_OF_LSTM, BIAS_OF_LSTM)[:2]
    return (cell * cell).sum() + hidden.sum()


def _probabilities(x: Any) -> Any:
    found = oprack.functional.softmax_with_cross_entropy(x, LABELS)
    return found[1].sum() + (found[0] * found[0]).sum() * 10.0


WEIGHT_OF_LSTM = oprack.to_tensor(np.random.default_rng(1).normal(size=(2, 8)))
BIAS_OF_LSTM = oprack.to_tensor(np.random.default_rng(2).normal(size=(1, 14)))
LABELS = oprack.to_tensor(np.array([[0], [1], [5], [2], [7]]))


@pytest.mark.parametrize(("loss", "lod"), [(_cell, [[0, 2, 5]]), (_probabilities, [])])
def test_gradients_of_outputs_that_paddles_gradient_ops_do_not_read(loss: Any, lod: list[list[int]]) -> None:
    """The cell of an LSTM, and the probabilities beside a loss: the slope, in eager calls and by jit alike."""
    rng = np.random.default_rng(0)
    x, direction = rng.normal(size=(5, 8)), rng.normal(size=(5, 8))
    wanted = _slope(lambda v: loss(oprack.to_tensor(v, lod=lod)).numpy(), x, direction)
    for function in (loss, oprack.jit(loss)):
        given = oprack.to_tensor(x, lod=lod, requires_grad=True)
        function(given).backward()
        assert float((given.grad.numpy() * direction).sum()) == pytest.approx(wanted, rel=1e-6)


def test_a_gradient_op_of_paddle_without_the_slot_gives_paddles_number(program: Program) -> None:
    """A program saved by Paddle has no Softmax@GRAD: what flows through the loss alone."""
    x = layers.data("x", [5, 8], "float64")
    x.stop_gradient = False
    loss, _ = layers.softmax_with_cross_entropy(x, layers.data("y", [5, 1], "int64"), return_softmax=True)
    gradients(loss, [x])
    op = next(op for op in program.global_block().ops if op.type == "softmax_with_cross_entropy_grad")
    assert "Softmax@GRAD" not in op.inputs and "Loss@GRAD" in op.inputs


def test_a_gradient_that_arrives_where_none_flows_back_is_named(program: Program) -> None:
    x = layers.data("x", [4, 3], "float64")
    x.stop_gradient = False
    values, _, picked = layers.cross_entropy2(x, layers.data("y", [4, 1], "int64"))
    loss = layers.reduce_sum(values) + layers.reduce_sum(picked)
    with pytest.warns(
        LostGradientWarning, match=r"op cross_entropy2 \(pack oprack-nn\): .* output MatchX \(.*only from Y"
    ):
        gradients(loss, [x])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradients(loss, [x], no_grad_set={picked.name})
