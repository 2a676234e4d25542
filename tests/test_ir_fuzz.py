"""Random programs, whose names are overwritten and read anew, give the same numbers with and without passes; damaged
ones are refused by errors of oprack or run as before."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oprack.desc import ProgramDesc
from oprack.desc.attr_values import attr_type_of
from oprack.errors import OprackError
from oprack.io import load_inference_model
from oprack.ir import Graph, ModelWarning, optimize, select_passes
from oprack.ir.driver import Fusion, Fusions
from oprack.packs.pack import BrokenPackWarning
from oprack.runtime import Executor
from oprack.tensor import Scope
from oprack.testing import PassCase, check_passes

SMALL = Path(__file__).parent / "data" / "small_models"
CHANNELS = 4
SHAPE = (2, CHANNELS, 3, 3)
NAMES = ("x", "a", "b", "c", "d")
RNG = np.random.default_rng(0)
PARAMS = {
    "one": np.array([0.75]),
    "channel": RNG.uniform(0.5, 1.5, CHANNELS),
    "full": RNG.uniform(0.5, 1.5, (CHANNELS, 1, 1)),
    "filter": RNG.uniform(-0.5, 0.5, (CHANNELS, CHANNELS, 1, 1)),
    "padded": RNG.uniform(-0.3, 0.3, (CHANNELS, CHANNELS, 3, 3)),
    "mean": RNG.uniform(-1, 1, CHANNELS),
    "variance": RNG.uniform(0.5, 1.5, CHANNELS),
}

name = st.sampled_from(NAMES)
constant = st.sampled_from([("one", -1), ("channel", 1), ("full", -1)])


def scale(x: str, out: str, factor: float, shift: float, after: bool) -> tuple[Any, ...]:
    return "scale", {"X": x}, {"Out": out}, {"scale": factor, "bias": shift, "bias_after_scale": after}


def with_constant(kind: str, x: str, out: str, constant: tuple[str, int], swapped: bool) -> tuple[Any, ...]:
    y, axis = constant
    inputs = {"X": y, "Y": x} if swapped and kind in ("elementwise_add", "elementwise_mul") else {"X": x, "Y": y}
    return kind, inputs, {"Out": out}, {"axis": axis}


def conv(x: str, out: str, padded: bool) -> tuple[Any, ...]:
    filters, pads = ("padded", [1, 1]) if padded else ("filter", [0, 0])
    return "conv2d", {"Input": x, "Filter": filters}, {"Output": out}, {"paddings": pads}


def batch_norm(x: str, out: str) -> tuple[Any, ...]:
    inputs = {"X": x, "Scale": "channel", "Bias": "mean", "Mean": "mean", "Variance": "variance"}
    outputs = {"Y": out, "MeanOut": "mean", "VarianceOut": "variance", "SavedMean": "sm", "SavedVariance": "sv"}
    return "batch_norm", inputs, outputs, {"is_test": True}


def unary(kind: str, x: str, out: str) -> tuple[Any, ...]:
    attrs = {"transpose2": {"axis": [0, 1, 3, 2]}, "dropout": {"is_test": True, "dropout_implementation": UPSCALE}}
    outputs = {"Out": out} | ({"XShape": "shape"} if kind == "transpose2" else {})
    return kind, {"X": x}, outputs, attrs.get(kind, {})


UPSCALE = "upscale_in_train"
number = st.sampled_from([0.0, 1.0, 0.5, -1.25])
kinds = st.sampled_from(["elementwise_add", "elementwise_mul", "elementwise_sub", "elementwise_div"])
op = st.one_of(
    st.builds(scale, name, name, number, number, st.booleans()),
    st.builds(with_constant, kinds, name, name, constant, st.booleans()),
    st.builds(conv, name, name, st.booleans()),
    st.builds(batch_norm, name, name),
    st.builds(unary, st.sampled_from(["assign", "relu", "transpose2", "dropout"]), name, name),
    st.builds(lambda x, y, out: ("elementwise_add", {"X": x, "Y": y}, {"Out": out}, {}), name, name, name),
    st.builds(lambda x, y, out: ("elementwise_mul", {"X": x, "Y": y}, {"Out": out}, {}), name, name, name),
)


@settings(max_examples=150)
@given(ops=st.lists(op, min_size=1, max_size=12), fetch=st.lists(name, min_size=1, max_size=3, unique=True))
def test_random_programs(ops: list[tuple[Any, ...]], fetch: list[str]) -> None:
    check_passes(random_program(ops, fetch), rtol=1e-8, atol=1e-8)


def random_program(ops: list[tuple[Any, ...]], fetch: list[str]) -> PassCase:
    first = [("assign", {"X": "x"}, {"Out": n}, {}) for n in NAMES[1:]]
    return PassCase({"x": RNG.uniform(-1, 1, SHAPE)}, PARAMS, [*first, *ops], fetch)


@settings(max_examples=100)
@given(ops=st.lists(op, min_size=1, max_size=14), fetch=st.lists(name, min_size=1, max_size=3, unique=True))
def test_fusions_leave_nothing_to_match(ops: list[tuple[Any, ...]], fetch: list[str]) -> None:
    """A walk skips ops that others have tried in vain; one that begins anew and skips none finds nothing more."""
    chained = [_chained(op, f"v{i}", f"v{i + 1}") for i, op in enumerate(ops)]
    feeds = {"v0": RNG.uniform(-1, 1, SHAPE)}
    for case in (random_program(ops, fetch), PassCase(feeds, PARAMS, chained, [f"v{len(ops)}"])):
        check_fixed(case)


def _chained(op: tuple[Any, ...], x: str, out: str) -> tuple[Any, ...]:
    """The same op, of x alone where it read several variables."""
    kind, inputs, outputs, attrs = op
    inputs = {slot: x if n in NAMES else n for slot, n in inputs.items()}
    return kind, inputs, {slot: out if n in NAMES else n for slot, n in outputs.items()}, attrs


def check_fixed(case: PassCase) -> None:
    program, scope = case.build()
    graph = Graph(program.desc, scope=scope, keep=case.fetch)
    for one in select_passes():
        rewrite = one.load()
        rewrite(graph)
        if isinstance(rewrite, Fusion | Fusions):
            assert not rewrite(graph), one.name


def damaged(program: ProgramDesc, seed: int) -> ProgramDesc:
    """A few random changes: names exchanged, ops and variables gone or doubled, attributes and shapes of others."""
    rng = random.Random(seed)
    program = program.clone()
    block = program.blocks[0]
    for _ in range(rng.randint(1, 3)):
        one, other = rng.choice(block.ops), rng.choice(block.ops)
        slots = rng.choice([s for s in (one.inputs, one.outputs) if s] or [{"X": []}])
        slot = rng.choice(list(slots))
        change = rng.randrange(7)
        if change == 0:
            slots[slot] = [rng.choice(list(block.vars))]
        elif change == 1:
            slots[slot] = slots[slot] * 2
        elif change == 2:
            slots[slot] = []
        elif change == 3:
            block.ops.remove(one)
        elif change == 4:
            block.ops.insert(rng.randrange(len(block.ops)), other.clone())
        elif change == 5:
            names = list(one.attrs) or ["nothing"]
            value = rng.choice([0, -1, [1, 2, 3], "NHWC", 1e30, True])
            one.set_attr(rng.choice(names), value, attr_type_of(value))
        else:
            var = block.vars[rng.choice(list(block.vars))]
            var.shape = rng.choice([(), (3,), (2, 2), (-1, 8, 1, 1), None])
    return program


def answer(program: ProgramDesc, feed: dict[str, Any], fetch: list[str], scope: Scope) -> Any:
    try:
        return Executor().run(program, feed, fetch, scope)
    except OprackError as error:
        return type(error)


@pytest.mark.parametrize("model", ["resnet", "mobilenet", "bert"])
@pytest.mark.parametrize("seed", range(25))
def test_damaged_programs(model: str, seed: int) -> None:
    scope = Scope()
    loaded = load_inference_model(SMALL / model, scope)
    with np.load(SMALL / f"{model}.npz") as data:
        feed = {n: data[f"in/{n}"] for n in loaded.feed_names}
    program = damaged(loaded.program.desc, seed)
    before = str(program)
    plain = answer(program, feed, loaded.fetch_names, scope)
    passes = select_passes(excluded_libraries=["onednn"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", BrokenPackWarning)  # the program is wrong, and no pack
        warnings.simplefilter("ignore", ModelWarning)
        try:
            done = optimize(program, scope, keep=loaded.fetch_names, passes=passes)
        except OprackError:
            assert isinstance(plain, type)
            return
    assert str(program) == before
    if isinstance(plain, type):
        return
    for want, got in zip(plain, answer(done.program, feed, loaded.fetch_names, scope), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
