"""The script that writes docs/benchmarks/scale.txt: what a transformer's layers send, against what its layouts need."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).parent / "benchmarks" / "scale_table.py"


@pytest.fixture(scope="module")
def table() -> Iterator[Any]:
    spec = importlib.util.spec_from_file_location("scale_table", PATH)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)  # which dataclasses asks for
        spec.loader.exec_module(module)
        yield module


def test_layers_split_over_two_axes_send_no_more_than_they_need(table: Any) -> None:
    """Two sums on the tensor axis for each layer forward and two backward, and gradients together on the other."""
    width, layers, rows, length = 1024, 2, 4, 512
    model = table.Model("small", layers, width, 16, rows, length, half=False)
    report = table.simulated(model, 128, 8)
    found = {(n.axis, n.collective): n for n in report.lines}
    assert set(found) == {("tensor", "all_reduce"), ("data", "all_reduce")}
    whole = 4 * rows * length * width
    tensor = found["tensor", "all_reduce"]
    assert tensor.count == 4 * layers - 1  # what the last layer adds is only summed up by the loss
    assert tensor.moved == pytest.approx(tensor.count * 2 * 7 / 8 * whole)
    parameters = layers * (12 * width**2 // 8 + 7 * width // 8 + 6 * width)  # of one rank
    data = found["data", "all_reduce"]
    assert data.moved == pytest.approx(2 * 127 / 128 * 4 * parameters)
    assert data.count <= 4 * parameters / 2**22 + 1  # messages of 4 MiB and more
    tokens = rows * length
    forward = 24 * tokens * width**2 + 4 * tokens * length * width
    assert report.flops == 3 * layers * forward // 8


def test_one_rank_of_many_needs_no_memory_of_many(table: Any) -> None:
    small, large = (table.simulated(table.Model("m", 1, 512, 8, 2, 256), *grid) for grid in ((2, 1), (2, 8)))
    assert large.peak < small.peak / 3


@pytest.mark.parametrize(("name", "rows"), [("1.7B", 8), ("18.4B", 8), ("145.6B", 1), ("1008B", 1)])
def test_simulated_rates_are_near_those_that_were_measured(table: Any, name: str, rows: int) -> None:
    """Megatron-LM's record says what was measured; no number of the model was fitted to it."""
    record = next(r for r in table.RECORDS if r.name == name)
    assert abs(table.reached(record, rows) - record.reached) < 8
