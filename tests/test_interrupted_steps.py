"""Runs that end early: what a step leaves behind, what comes out, and what the next run gives."""

import ast
import gc
import itertools
import random
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack import Executor, Program, Scope, layers, nn, optimizer, program_guard, to_tensor
from oprack.cache import Budget
from oprack.desc import OpDesc
from oprack.errors import BlockDepthError, OprackError
from oprack.kernel import kernel_specs
from oprack.kernel.commit import Commit
from oprack.packs.manager import default_manager
from oprack.runtime.prepared import PreparedCache
from oprack.tensor import CPUPlace, SelectedRows
from oprack.testing.fuzz.examples.example import Example
from oprack.testing.fuzz.injection import Injections, Interrupter
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernels import update as native_updates
from oprack_optimizer.kernels import adam, momentum
from oprack_optimizer.kernels._update import BLOCK
from oprack_optimizer.ops._state import AdamRule, AdamState, MomentumRule, MomentumState

ROOT = Path(__file__).parents[1]
SOURCES = [f for part in ("core", "plugins/*", "op_packages/*") for f in ROOT.glob(f"{part}/src/**/*.py")]
WORKERS = ROOT / "core" / "src" / "oprack" / "python" / "workers.py"
BOTH = pytest.mark.parametrize("prepared", [True, False], ids=["plan", "reference"])


def test_interruptions_at_random_lines_come_out_as_they_are_and_leave_nothing_torn() -> None:
    pytest.importorskip("hypothesis")
    report = Injections(default_manager(), seed=7).run(seconds=15, most=120)
    assert not report.failures
    assert report.injected > 10


@pytest.mark.parametrize("rounds", [3, None])
def test_programs_that_never_end_are_not_interrupted(rounds: int | None) -> None:
    main = Program()
    with program_guard(main, Program()):
        i = layers.fill_constant([1], "int64", 0)
        end = layers.fill_constant([1], "int64", 3)
        goes_on = layers.less_than(i, end)
        loop = layers.While(goes_on)
        with loop.block():
            layers.increment(i, 1 if rounds else -1, in_place=True)
            layers.less_than(i, end, cond=goes_on)
    example = Example(main, {}, [{}], [i.name])
    assert Injections(default_manager(), seed=7).ends(example) is (rounds is not None)


def test_locks_are_taken_by_with_alone() -> None:
    """The handler of a signal may raise behind a call of acquire(), in front of the try block that gives it back."""
    assert len(SOURCES) > 400
    # a job's locks are opened once: it is begun by one, and ended for all
    for file in (f for f in SOURCES if f != WORKERS and "serve" not in f.relative_to(ROOT).parts):  # asyncio's
        text = file.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "acquire" in text else ():
            assert not (isinstance(node, ast.Attribute) and node.attr == "acquire"), f"{file}:{node.lineno}"


def test_no_locks_of_the_standard_library_that_are_written_in_python() -> None:
    """Condition.__enter__ is a function of Python: a handler that raises as it returns leaves its lock taken."""
    found = set()
    for file in (f for f in SOURCES if not {"serve", "ui", "testing", "cli"} & {*f.relative_to(ROOT).parts}):
        text = file.read_text("utf-8")
        if re.search(r"concurrent\.futures|threading\.(Condition|Event|Semaphore|Barrier|Timer)|[^e]Queue\(", text):
            found.add(file.relative_to(ROOT).as_posix())
    # a comment
    assert found == {"plugins/inference/src/oprack/inference/optim_entry.py"}, f"use {WORKERS.name}, or locks of C"


def test_a_timer_never_leaves_a_lock_taken() -> None:
    def stop(number: int, frame: Any) -> None:
        raise TimeoutError

    budget, rng, stopped = Budget(1 << 20), random.Random(3), 0
    before = signal.signal(signal.SIGALRM, stop)
    try:
        while stopped < 300:
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 1e-4))
                while True:
                    budget.settle()
            except TimeoutError:
                stopped += 1
            assert not budget._lock.locked()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_interruptions_at_lines_are_where_signals_are_handled() -> None:
    """Python handles none between a with block and its exit, where tracing stops once more."""
    cache, manager = PreparedCache(), default_manager()
    desc = Training(True).main.desc

    def get(at: int) -> int:
        one = Interrupter("interrupt", at)
        with suppress(KeyboardInterrupt), one.active():
            cache.get(desc, manager, CPUPlace())
        assert not cache._lock.locked(), one.where
        return one.lines

    lines = [get(0), get(0)][1]
    assert lines > 10
    assert all(get(at) <= lines for at in range(1, lines + 1))


def _update_kernels() -> dict[str, Any]:
    """Calls of kernels that write a parameter to its own memory and return more than that: call(param, gradient)."""
    n, one = BLOCK + 5, np.ones(1, np.float32)
    rule, descent = AdamRule(0.9, 0.999, 1e-8, False), MomentumRule(0.9, True, "", 0.0, False, 1.0)

    def state(size: int) -> AdamState:
        return AdamState(0.1 * one, np.ones(size, np.float32), np.ones(size, np.float32), 0.9 * one, 0.99 * one)

    def rows(p: Any, g: Any) -> Any:
        wide, some = p.reshape(-1, 1), SelectedRows([3, 1], g[:2].reshape(-1, 1), len(p))
        moments = state(len(p))
        moments = moments._replace(Moment1=moments.Moment1.reshape(-1, 1), Moment2=moments.Moment2.reshape(-1, 1))
        return adam.update(wide, some, moments, rule, np, wide, lazy=True)

    def native(op_type: str, *inputs: Any, **attrs: Any) -> Any:
        kernels = {s.op_type: s.function for s in kernel_specs(native_updates)}
        return lambda p, g: kernels[op_type](p, g, *(i(len(p)) for i in inputs), out=p, **attrs)

    full, number = (lambda size: np.ones(size, np.float32)), (lambda size: 0.1 * one)
    mu = {
        "mu": 0.9,
        "use_nesterov": False,
        "regularization_method": "",
        "regularization_coeff": 0.0,
        "rescale_grad": 1.0,
    }
    betas = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "use_global_beta_pow": False}
    return {
        "adam in blocks": (n, lambda p, g: adam.update(p, g, state(n), rule, np, p)),
        "momentum in blocks": (n, lambda p, g: momentum.update(p, g, MomentumState(full(n), 0.1 * one), descent, p)),
        "adam in rows": (9, rows),
        "native momentum": (9, native("momentum", full, number, **mu)),
        "native adam": (9, native("adam", number, full, full, number, number, **betas)),
    }


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Python drops an interruption of a finalizer, and garbage of other tests may be collected at any line."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("name", _update_kernels())
def test_an_update_in_place_that_is_interrupted_at_any_line_has_written_nothing_or_says_what_it_returns(
    name: str, no_collection: None
) -> None:
    size, call = _update_kernels()[name]
    before, gradient, ends = np.linspace(1, 2, size, dtype=np.float32), np.ones(size, np.float32), {True: 0, False: 0}
    if not LIBRARY.usable() and call(before.copy(), gradient) is NotImplemented:
        pytest.skip("there is no native code for it here")
    expected = call(before.copy(), gradient)
    for at in itertools.count(1):
        param, one = before.copy(), Interrupter("interrupt", at)
        try:
            with one.active():
                call(param, gradient)
            break
        except KeyboardInterrupt as error:
            found = Commit.result_of(error)
        ends[found is not None] += 1
        if found is None:
            np.testing.assert_array_equal(param, before, one.where)
        else:
            assert found[0].ctypes.data == param.ctypes.data
            for got, want in zip(found, expected, strict=True):
                assert (got is None and want is None) or np.array_equal(got, want), one.where
    assert ends[False] > 5 and ends[True] >= 1, ends


class Training:
    """sgd with momentum on y = w x, and an op behind the update that fails when it is told to."""

    def __init__(self, prepared: bool) -> None:
        self.main, startup = Program(), Program()
        with program_guard(self.main, startup):
            x, ids = layers.data("x", [None, 2]), layers.data("ids", [None], "int64")
            y = layers.fc(x, 1, bias_attr=False)
            optimizer.Momentum(0.5, momentum=0.9).minimize(layers.mean(y))
            self.last = layers.gather(x, ids)
        self.executor, self.scope = Executor(prepared=prepared), Scope()
        self.executor.run(startup, scope=self.scope)
        (op,) = (op for op in self.main.desc.blocks[0].ops if op.type == "momentum")
        self.weight, self.velocity = op.input("Param")[0], op.input("Velocity")[0]

    def step(self, index: int = 0) -> None:
        feed = {"x": np.array([[1, 2]], "f4"), "ids": np.array([index])}
        self.executor.run(self.main, feed, [self.last], self.scope)

    def value(self, name: str) -> np.ndarray:
        return np.array(self.scope.get_var(name).get().array).ravel()


@BOTH
def test_an_op_that_fails_leaves_what_the_ops_before_it_did(prepared: bool) -> None:
    training = Training(prepared)
    for _ in range(3):
        training.step()
    weight, velocity = training.value(training.weight), training.value(training.velocity)
    gradient = np.array([1, 2], "f4")  # of the mean of one product
    with pytest.raises(OprackError):
        training.step(index=9)
    new = 0.9 * velocity + gradient
    np.testing.assert_allclose(training.value(training.velocity), new, rtol=1e-6)
    np.testing.assert_allclose(training.value(training.weight), weight - 0.5 * new, rtol=1e-5)


@BOTH
def test_a_variable_that_is_written_twice_has_its_value_between_when_an_op_fails_there(prepared: bool) -> None:
    main, startup = Program(), Program()
    with program_guard(main, startup):
        x, ids = layers.data("x", [2]), layers.data("ids", [None], "int64")
        counter = layers.create_global_var([2], 0.0, "float32", persistable=True)
        layers.assign(x * 2.0, counter)
        last = layers.gather(x, ids)
        layers.assign(counter * 10.0, counter)
    executor, scope = Executor(prepared=prepared), Scope()
    executor.run(startup, scope=scope)

    def run(index: int) -> np.ndarray:
        feed = {"x": np.array([1, 3], "f4"), "ids": np.array([index])}
        executor.run(main, feed, [last], scope)

    for _ in range(3):
        run(0)
        np.testing.assert_array_equal(scope.get_var(counter.name).get().array, [20, 60])
    with pytest.raises(OprackError):
        run(9)
    np.testing.assert_array_equal(scope.get_var(counter.name).get().array, [2, 6])


def test_an_eager_step_that_is_interrupted_leaves_each_parameter_and_its_state_of_one_step() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    adam = optimizer.Adam(0.1, parameters=net.named_parameters())

    def state() -> dict[str, np.ndarray]:
        found = {f"{name}.param": np.array(p.numpy()) for name, p in net.named_parameters()}
        return found | {
            k: np.array(v) for k, v in adam.state_dict().items() if k.endswith(("moment1", "beta1_pow_acc"))
        }

    def step(at: int) -> Interrupter:
        net(to_tensor(np.ones((1, 2), "f4"))).sum().backward()
        one = Interrupter("interrupt", at)
        with one.active():
            try:
                adam.step()
            except KeyboardInterrupt as error:
                assert error is one.error
        adam.clear_grad()
        return one

    for _ in range(3):
        lines = step(0).lines
    moved = 0
    for part in (0.5, 0.7, 0.8, 0.85, 0.9, 0.93, 0.96, 0.99):
        before = state()
        assert step(int(lines * part)).error is not None
        after = state()
        changed = {key: bool((after[key] != value).any()) for key, value in before.items()}
        for name, _ in net.named_parameters():
            assert len({changed[key] for key in changed if key.startswith(f"{name}.")}) == 1, (part, changed)
        moved += any(changed.values())
    assert moved


@BOTH
def test_a_fed_variable_that_an_op_was_to_write_and_left_out_is_read(prepared: bool) -> None:
    main = Program()
    with program_guard(main, Program()):
        layers.data("x", [None, 3]), layers.data("m", [None, 3])
    block = main.global_block()
    for name in ("out", "y"):
        block.create_var(name, dtype="float32", shape=[-1, 3])
    attrs = {"is_test": True, "dropout_prob": 0.5, "dropout_implementation": "upscale_in_train"}
    block.append_op(OpDesc("dropout", {"X": "x"}, {"Out": "out", "Mask": "m"}, attrs))
    block.append_op(OpDesc("relu", {"X": "m"}, {"Out": "y"}, {}))
    executor = Executor(prepared=prepared)
    for run in range(4):
        feed = {"x": np.ones((2, 3), "f4"), "m": np.full((2, 3), run, "f4")}
        np.testing.assert_array_equal(executor.run(main, feed, ["y"], Scope())[0], feed["m"])


def test_blocks_that_are_nested_too_deep_to_run_are_refused_where_they_are_written() -> None:
    main = Program()

    def nest(x: Any, condition: Any, deep: int) -> Any:
        if not deep:
            return x * 2.0
        return layers.cond(condition, lambda: nest(x, condition, deep - 1), lambda: x * 0.5)

    with program_guard(main, Program()):
        x = layers.data("x", [2])
        condition = layers.less_than(layers.fill_constant([1], "float32", 0.0), layers.fill_constant([1], "float32", 1))
        nest(x, condition, 63)
        with pytest.raises(BlockDepthError, match="nested 65 deep here; expected at most 64"):
            nest(x, condition, 200)
        assert main.current_block_idx == 0
