"""Twice as many ops take twice as long: calls of functions are counted from building to running."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import Executor, Program, Scope, io, layers, optimizer, program_guard
from oprack.inference import Config, create_predictor
from passed_calls import PassedCalls

SIZES = 150, 300
MOST = 2.2
"""Calls for twice as many ops; work that is linear in the program done for each op comes near 4."""
FEED = {"x": np.ones((2, 4), "f4")}


def chain(x: Any, count: int) -> Any:
    for i in range(count):
        x = layers.relu(x) if i % 2 else layers.scale(x, 1.0001)
    return x


def sums(x: Any, count: int) -> Any:
    return layers.sum([layers.scale(x, 1.0 + i) for i in range(count)])


def conds(x: Any, count: int) -> Any:
    zero, one = (layers.fill_constant([1], "float32", value) for value in (0.0, 1.0))
    condition = layers.less_than(zero, one)
    for _ in range(count // 4):
        x = layers.cond(condition, lambda x=x: layers.scale(x, 2.0), lambda x=x: layers.scale(x, 0.5))
    return x


def parameters(x: Any, count: int) -> Any:
    for _ in range(count // 2):
        x = layers.elementwise_add(x, layers.create_parameter([4], "float32"))
    return x


def training(x: Any, count: int) -> Any:
    for _ in range(count // 10):
        x = layers.fc(x, 4, act="relu")
    loss = layers.mean(x)
    optimizer.Adam(0.01).minimize(loss)
    return loss


def readers(x: Any, count: int) -> Any:
    """One parameter that many ops read: its gradients are summed."""
    weight = layers.create_parameter([4], "float32")
    loss = layers.mean(layers.sum([layers.elementwise_mul(x, weight) for _ in range(count // 4)]))
    optimizer.SGD(0.1).minimize(loss)
    return loss


@pytest.fixture(autouse=True)
def roomy_cache() -> Iterator[None]:
    """The cache looks through what all programs left in it from time to time, but not while there is so much room."""
    oprack.set_cache_limit(1 << 40)
    yield
    oprack.set_cache_limit(None)


class Counted:
    """Calls by what was done."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        with PassedCalls(builtins=True) as passed:
            yield
        self.calls[what] = len(passed)


def measured(shape: Callable[[Any, int], Any], count: int, path: Path) -> dict[str, int]:
    counted, main, startup = Counted(), Program(), Program()
    with counted.of("build"), program_guard(main, startup):
        result = shape(layers.data("x", [-1, 4]), count)
    executor, scope = Executor(), Scope()
    gc.collect()
    oprack.cache_info()  # what earlier programs left in the cache is counted with none of this one
    with counted.of("startup"):
        executor.run(startup, scope=scope)
    for number in range(3):
        with counted.of(f"run {number}"):
            executor.run(main, FEED, [result], scope)
    if shape not in (training, readers):
        with counted.of("save"):
            io.save_inference_model(str(path), main, ["x"], [result.name], scope)
        with counted.of("create a predictor"):
            predictor = create_predictor(Config(f"{path}.pdmodel", f"{path}.pdiparams"))
        for number in range(2):
            with counted.of(f"run {number} of the predictor"):
                predictor.run([FEED["x"]])
    return counted.calls


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape", [chain, sums, conds, parameters, training, readers])
def test_twice_as_many_ops_take_no_more_than_twice_the_calls(shape: Callable[[Any, int], Any], tmp_path: Path) -> None:
    measured(shape, 40, tmp_path / "first")  # imports what it needs
    few, many = (measured(shape, count, tmp_path / str(count)) for count in SIZES)
    grown = {what: many[what] / calls for what, calls in few.items() if many[what] > MOST * calls}
    assert not grown, grown


@pytest.mark.filterwarnings("ignore")
def test_the_same_program_takes_the_same_calls_again(tmp_path: Path) -> None:
    """What was counted would else depend on the tests that ran before."""
    measured(conds, 40, tmp_path / "first")
    litter: list[Any] = []  # that only the collector ends
    for _ in range(2000):
        litter = [litter[-1:], Program()]
        litter.append(litter)
    found = [measured(conds, 40, tmp_path / str(k)) for k in range(3)]
    assert found[0] == found[1] == found[2]


def test_names_of_generated_code_are_compared_with_no_others() -> None:
    """Copying all names for each name makes no calls, but 133 s of 7 at 40,000 ops."""
    from oprack.runtime.plan.codegen import SegmentGenerator

    class Watched(dict[str, Any]):
        def __iter__(self) -> Any:
            raise AssertionError("all names are looked through for one")

    generator = SegmentGenerator([], (), (), np, (), lambda op: None)  # type: ignore[arg-type, return-value]
    generator.names = Watched(generator.names)
    assert len({generator._named("relu", object()) for _ in range(3)}) == 3
