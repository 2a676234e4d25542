"""Primitives that are compiled before their turn: they are the same, none is lost, and processes end in peace."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import inference
from oprack.io import save_inference_model
from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc, PrimitiveDesc
from oprack_onednn.threads.compiler import COMPILER, Compiler

LIBRARY.usable()
pytestmark = pytest.mark.skipif(RUNNER.run is None, reason=f"the runner is not there: {RUNNER.problem}")


@pytest.fixture(autouse=True)
def two_cores() -> Iterator[None]:
    with THREAD.limited(2):
        THREAD.open()
        yield
    THREAD.open()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which primitives somebody compiles ahead, by "ahead", and what became of each job, by its primitive or 0."""
    found: list[str] = []
    ahead, collect = Compiler.ahead, Compiler.collect

    def noted(self: Compiler, desc: PrimitiveDesc, threads: int, cores: int) -> int:
        job = ahead(self, desc, threads, cores)
        if job:
            found.append("ahead")
        return job

    def collected(self: Compiler, job: int) -> int:
        primitive = collect(self, job)
        found.append("compiled" if primitive else "left")
        return primitive

    monkeypatch.setattr(Compiler, "ahead", noted)
    monkeypatch.setattr(Compiler, "collect", collected)
    return found


def product(rows: int) -> PrimitiveDesc:
    """A descriptor that nobody else has; of a primitive that takes some time to compile."""
    row = MemoryDesc.strided((rows, 64))
    return PrimitiveDesc("matmul", LIBRARY.engine, row, MemoryDesc.strided((64, 64)), None, row, Attributes())


def chain_of(desc: PrimitiveDesc) -> PrimitiveChain:
    chain = PrimitiveChain()
    x, w = chain.input(desc.desc(_c.QUERY_SRC_MD)), chain.input(desc.desc(_c.QUERY_WEIGHTS_MD))
    chain.add(desc, {_c.SRC: x, _c.WEIGHTS: w, _c.DST: chain.output(desc.desc(_c.QUERY_DST_MD))})
    return chain


def test_what_was_compiled_ahead_computes(asked: list[str]) -> None:
    w = np.random.default_rng(0).standard_normal((64, 64), dtype=np.float32)
    chains = [chain_of(product(rows)) for rows in range(30, 60)]
    for chain in chains:
        chain.compile_ahead()
    for rows, chain in enumerate(chains, 30):
        x, y = np.random.default_rng(rows).standard_normal((rows, 64), dtype=np.float32), np.empty((rows, 64), "f")
        chain.run(x.reshape(-1), w.reshape(-1), y.reshape(-1))
        np.testing.assert_allclose(y, x.astype(np.float64) @ w, atol=1e-4)
    assert asked.count("ahead") == 30 == asked.count("compiled") + asked.count("left")


def test_each_primitive_is_compiled_once(asked: list[str]) -> None:
    desc = product(77)
    for _ in range(3):
        desc.compile_ahead(2, 2)
    assert desc.primitive() is desc.primitive()
    desc.compile_ahead(2, 2)
    assert len(asked) == 2 and asked[0] == "ahead"


def test_descriptors_that_go_take_their_jobs_along(asked: list[str]) -> None:
    descs = [product(rows) for rows in range(100, 120)]
    for desc in descs:
        desc.compile_ahead(2, 2)
    del desc, descs
    gc.collect()
    assert len(asked) == 40


def test_one_core_compiles_nothing_ahead(asked: list[str], tmp_path: Path) -> None:
    assert COMPILER.ahead(product(78), 1, 1) == 0
    asked.clear()
    with THREAD.limited(1):
        run = predictor(tmp_path)
        for size in (8, 12):
            run(size)
    assert not asked


def predictor(folder: Path) -> Any:
    """A function that runs a net of convolutions on a picture of some size."""
    layers = oprack.layers
    main, startup = oprack.Program(), oprack.Program()
    with oprack.program_guard(main, startup):
        x = y = layers.data("x", [None, 3, -1, -1])
        for channels in (16, 8, 16, 16):  # with gaps between taps, which oneDNN computes, that has to compile
            y = layers.conv2d(y, channels, 3, padding=2, dilation=2, act="hard_swish")
    scope = oprack.Scope()
    oprack.Executor(seed=3).run(startup, scope=scope)
    save_inference_model(str(folder / "net"), main, [x.name], [y.name], scope)
    served = inference.create_predictor(inference.Config(str(folder / "net.pdmodel"), str(folder / "net.pdiparams")))
    plain = oprack.Executor(prepared=False, excluded_libraries=["onednn"])

    def run(size: int) -> None:
        x = np.random.default_rng(size).standard_normal((1, 3, size, size + 8), dtype=np.float32)
        (wanted,) = plain.run(main, {"x": x}, [y.name], scope)
        np.testing.assert_allclose(served.run([x])[0], wanted, rtol=2e-5, atol=2e-5)

    return run


def test_a_new_size_is_prepared_as_a_whole(asked: list[str], tmp_path: Path) -> None:
    run, met = predictor(tmp_path), set[int]()
    run(16)
    for size in (24, 40, 24, 32):
        before = len(asked)
        run(size)
        events = asked[before:]
        if size in met:
            assert not events, "its primitives are there"
            continue
        met.add(size)
        count = events.count("ahead")
        assert count >= 3 and events[:count] == ["ahead"] * count, "all are asked for before the first one is taken"
        assert len(events) == 2 * count


def test_the_first_run_of_a_process_compiles_while_it_packs(asked: list[str], tmp_path: Path) -> None:
    predictor(tmp_path)(18)
    assert asked.count("ahead") >= 3 and len(asked) == 2 * asked.count("ahead")


# Ends, or forks a child that ends, while much is to be compiled.
ENDS = """
import os, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import test_compiler as t
with t.THREAD.limited(2):
    t.THREAD.open()
    descs = [t.product(rows) for rows in range(200, 260)]
    for desc in descs:
        desc.compile_ahead(2, 2)
    if sys.argv[2] == "fork":
        child = os.fork()
        if not child:
            del desc, descs[:]
            sys.exit(0)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("way", ["end", "fork"])
def test_a_process_ends_while_something_is_compiled(way: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", ENDS, str(Path(__file__).parent), way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
