"""Results of benchmarks: an engine that computed something else has no times, and other precisions are asked for."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

FOLDER = Path(__file__).parent / "benchmarks"


@pytest.fixture(scope="module")
def bench():
    """The modules, which have each other by plain names: those of other tests with these names are back afterwards."""
    names = [file.stem for file in FOLDER.glob("*.py")]
    others = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in ("engines", "report", "turns")})
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(others)


def result(bench, engine, ms, *sample):
    outputs = [{"sample": list(sample), "largest": max(map(abs, sample))}]
    return bench.turns.Result(engine, "net", 1, median_ms=ms, outputs=outputs)


@pytest.mark.parametrize(
    "engine, sample, wrong",
    [
        ("paddle", (1.0, -2.001), False),
        ("paddle", (1.0, -1.5), True),
        ("paddle", (1.0, float("nan")), True),
        ("paddle", (1.0, -2.0, 3.0), True),
        ("openvino bf16", (1.0, -2.1), False),
        ("openvino bf16", (1.0, 2.0), True),
    ],
)
def test_outputs_that_differ_are_an_error(bench, engine, sample, wrong):
    own, other = result(bench, "oprack", 2.0, 1.0, -2.0), result(bench, engine, 1.0, *sample)
    bench.turns.compare([own, other])
    assert not own.error
    assert bool(other.error) is wrong


def test_nobody_is_compared_with_times_of_something_else(bench):
    rows = [("oprack", 2.0, 1.0, -2.0), ("paddle", 0.001, 5.0, 5.0), ("torch", 4.0, 1.0, -2.0)]
    results = [result(bench, *row) for row in rows]
    bench.turns.compare(results)
    own, wrong, _ = bench.report.table(results).splitlines()[1:]
    assert " 0.50 " in own
    assert "differ" in wrong


def test_other_precisions_take_part_where_they_are_named(bench):
    usual = set(bench.engines.USUAL)
    assert usual.isdisjoint(bench.engines.PRECISIONS)
    assert {"oprack", "paddle", "onnxruntime", "openvino", "torch"} <= usual
