"""FakeWorld: what a program sends, computes and holds on any number of ranks, against real ranks and by formulas."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import nn, optimizer, parallel
from oprack.cli.main import main
from oprack.errors import InvalidArgumentError, UnimplementedError
from oprack.parallel.costs import Accelerator
from oprack.parallel.links import Link, Links, fitted, traffic
from oprack.parallel.simulated import FakeWorld
from oprack.testing.worlds import ThreadWorld

MEGATRON = {"0.weight": ["B", "S(1)"], "0.bias": ["B", "S(0)"], "2.weight": ["B", "S(0)"]}


def mlp(size: int = 8) -> nn.Module:
    return nn.Sequential(nn.Linear(size, 4 * size), nn.ReLU(), nn.Linear(4 * size, size))


def trained(grid: parallel.Placement, rows: int, steps: int, size: int = 8, layouts: Any = MEGATRON) -> Any:
    step = prepared(grid, size, layouts)
    return [step(rows) for _ in range(steps)][-1]


def prepared(grid: parallel.Placement, size: int, layouts: Any) -> Any:
    net = parallel.to_global(mlp(size), grid, layouts)
    adam = optimizer.Adam(0.05, parameter_list=net.parameters())

    def step(rows: int) -> oprack.Tensor:
        x = oprack.to_tensor(np.ones((rows // grid.shape[0], size), "float32")).to_global(grid, ["S(0)", "B"])
        y = net(x)
        loss = (y * y).mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    return step


class Counting:
    """The collectives of a world of threads, by axis and name."""

    def __init__(self) -> None:
        self.found: Counter[tuple[str, str]] = Counter()

    def of(self, record: Any) -> None:
        for line in record:
            where, what = line.split(": ", 1)
            if what.startswith(
                ("gather_facts", "split")
            ):  # ranks that compare what they do, and groups that are opened
                continue
            self.found[where.split(" of ")[1], what.split()[0].removesuffix("_sum").removesuffix("_max")] += 1


@pytest.mark.parametrize("layouts", [MEGATRON, {"*": ["B", "S(0)"]}, {"*weight": ["S(0)", "S(1)"]}], ids=str)
def test_the_collectives_are_those_of_real_ranks(layouts: Any) -> None:
    def real(world: parallel.Communicator) -> Counter[tuple[str, str]]:
        grid = parallel.placement("cpu", (2, 2), ("data", "tensor"))
        groups = [grid.group(k) for k in range(2)]
        counting = Counting()
        for g in groups:
            g.record = type(g.record)(maxlen=None)
        trained(grid, 8, 2, layouts=layouts)
        for g in groups:
            counting.of(g.record)
        return counting.found

    expected = ThreadWorld(4).run(real)
    for rank in range(4):
        report = FakeWorld(4, {"data": 2, "tensor": 2}).run(
            lambda _: trained(parallel.placement(), 8, 2, 8, layouts), rank
        )
        sent = {(n.axis, n.collective): n.count for n in report.lines if n.axis != "world"}
        assert sent == dict(expected[rank])


def test_products_and_memory_are_those_of_the_formulas() -> None:
    size, rows, ranks = 64, 4096, {"data": 128, "tensor": 8}

    def function(world: Any) -> None:
        grid = parallel.placement()
        assert repr(grid) == "placement(shapes, data=128 x tensor=8)"
        step = prepared(grid, size, MEGATRON)
        world.restart()  # the whole weights were there before they were laid out
        step(rows)

    for rank in (0, 517, 1023):
        report = FakeWorld(1024, ranks).run(function, rank)
        one = 2 * (rows // 128) * size * (4 * size // 8)  # one product of this rank's rows and columns
        assert report.flops == one * 5  # two forward, one and two backward: nobody asks for the gradient of x
        state = 4 * (2 * size * 4 * size // 8) * 4  # weights, gradients and two moments, float32
        assert state < report.peak < state + 40 * rows // 128 * size * 4
        gradients = 4 * (2 * size * 4 * size // 8 + 4 * size // 8 + size)
        data = next(n for n in report.lines if n.axis == "data")
        assert (data.collective, data.ranks) == ("all_reduce", 128)
        assert data.moved == pytest.approx(2 * 127 / 128 * (gradients + 4), rel=0.01)


def test_ops_cost_what_they_compute_and_move() -> None:
    """y = relu(reshape(x w)), and its gradients, by hand."""
    rows, inputs, outputs = 32, 64, 128

    def function(world: Any) -> None:
        x, w = (oprack.to_tensor(np.ones(s, "float32")) for s in ((rows, inputs), (inputs, outputs)))
        w.stop_gradient = False
        world.restart()
        F.relu(oprack.reshape(oprack.matmul(x, w), [-1])).backward(oprack.full([rows * outputs], 1.0))

    accelerator = Accelerator({"float32": 1e12}, 1e11, 1e-6)
    report = FakeWorld(2, accelerator=accelerator).run(function)
    made = {w.op: w for w in report.work}
    x, w, y = 4 * rows * inputs, 4 * inputs * outputs, 4 * rows * outputs
    flops = 2 * rows * inputs * outputs
    assert (made["matmul_v2"].flops, made["matmul_v2"].moved) == (flops, x + w + y)
    assert made["matmul_v2"].seconds == pytest.approx(1e-6 + flops / 1e12 + (x + w + y) / 1e11)
    assert (made["relu"].moved, made["relu_grad"].moved) == (2 * y, 3 * y)
    assert (made["reshape2"].moved, made["reshape2"].seconds) == (0, 0.0)
    assert made["matmul_v2_grad"].flops == flops, "nobody asks for the gradient of x"


def test_memory_of_views_is_counted_once() -> None:
    def function(world: Any) -> Any:
        x = oprack.to_tensor(np.ones((64, 64), "float32"))
        y = F.relu(x)
        world.restart()
        return [oprack.reshape(y, [-1]), oprack.transpose(y, [1, 0]), oprack.unsqueeze(y, [0])]

    assert FakeWorld(2).run(function).peak == 2 * 4 * 64 * 64


def test_an_accelerator_by_its_name_or_numbers() -> None:
    a100 = Accelerator.of("A100")
    rate = 312e12 * 0.859
    # 108 tiles of 256 x 128 at a time: 109 of them take two rounds
    one, two = (a100.seconds([(10**12, n * 256 * 128)], 0, "float16") for n in (108, 109))
    assert one == pytest.approx(a100.start + 1e12 / rate)
    assert two == pytest.approx(a100.start + 1e12 / rate * 216 / 109)
    given = Accelerator.of("flops=2e14,bandwidth=1e12,start=0")
    assert given.seconds([(10**14, 1)], 10**12, "int8") == pytest.approx(1.5)
    for text in ("B7", "flops=1e12", "flops=1e12,bandwidth=0", "flops=1e12,bandwidth=x", "flops=1,bandwidth=1,a=1"):
        with pytest.raises(InvalidArgumentError, match="expected one of V100, A100, H100"):
            Accelerator.of(text)


def test_a_convolution_is_counted_by_its_taps() -> None:
    def function(world: Any) -> Any:
        x = oprack.to_tensor(np.ones((2, 3, 8, 8), "float32"))
        return nn.Conv2D(3, 5, 3, padding=1)(x).shape

    report = FakeWorld(2).run(function)
    assert report.result == (2, 5, 8, 8)
    assert report.flops == 2 * (2 * 5 * 8 * 8) * (3 * 3 * 3)


def test_data_parallel_and_calls_outside_are_as_ever() -> None:
    def function(world: Any) -> float:
        net = parallel.DataParallel(mlp())
        loss = net(oprack.to_tensor(np.ones((4, 8), "float32"))).mean()
        loss.backward()
        return float(loss.item())

    def real(world: parallel.Communicator) -> Counter[tuple[str, str]]:
        world.record = type(world.record)(maxlen=None)
        function(world)
        counting = Counting()
        counting.of(world.record)
        return counting.found

    report = FakeWorld(16).run(function, 5)
    assert np.isnan(report.result)
    assert {(n.axis, n.collective): n.count for n in report.lines} == dict(ThreadWorld(2).run(real)[0])
    assert report.count("broadcast") == 5  # of four parameters, and of the order in which gradients were ready
    x = oprack.to_tensor(np.ones((2, 3), "float32"))
    assert F.relu(x).numpy().tolist() == [[1.0] * 3] * 2
    assert F.full([2], 3.0).numpy().tolist() == [3.0, 3.0]
    assert mlp()(oprack.to_tensor(np.ones((4, 8), "float32"))).place == oprack.CPUPlace()


def test_what_depends_on_values_is_refused() -> None:
    with pytest.raises(UnimplementedError, match=r"op unique: the shape of .* follows from values"):
        FakeWorld(2).run(lambda _: F.unique(oprack.to_tensor(np.ones(3, "float32")), dtype=3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FakeWorld(4, {"data": 3}), r"4 ranks in the grid \{'data': 3\}"),
        (lambda: FakeWorld(4).run(print, 4), "rank 4 of 4; expected 0 to 3"),
        (lambda: FakeWorld(4).run(lambda w: w.split(0, 0, "odd")), "say the group's size"),
    ],
)
def test_worlds_that_make_no_sense_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


def test_a_link_is_found_again_from_what_it_gives() -> None:
    link = Link(30e-6, 2e9)
    rows = [(size, link.seconds("all_reduce", size, 4)) for size in (4, 1 << 14, 1 << 20, 1 << 24)]
    found = fitted("all_reduce", 4, rows)
    assert (found.latency, found.bandwidth) == (pytest.approx(30e-6), pytest.approx(2e9))
    assert traffic("all_reduce", 100, 1) == (0.0, 0)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"links": {}}', '{"links": {"*": {"latency": 1, "bandwidth": 0}}}', '{"links": {"*": 3}}']
)
def test_files_that_hold_no_links_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "links.json"
    path.write_text(text)
    with pytest.raises(InvalidArgumentError, match=r"links\.json: .*expected"):
        Links.read(path)


def test_layouts_are_chosen_by_the_links_of_each_axis() -> None:
    grid = parallel.placement("cpu", (1, 1), ("data", "tensor"))
    world = FakeWorld(4, {"data": 2, "tensor": 2}, Links({"data": Link(1.0, 1.0)}, Link(0.0, 1e9)))

    def function(_: Any) -> list[float]:
        from oprack.parallel.layouts.boxing import cost

        here = parallel.placement()
        whole = here.layout(["B", "B"])
        return [cost(here.layout(s), whole, (4, 4), 4) for s in (["S(0)", "B"], ["B", "S(0)"])]

    slow, fast = world.run(function).result
    assert (slow, fast) == (pytest.approx(1.0 + 32), pytest.approx(32e-9))
    assert grid.world.links == Links()


PROGRAM = """
import sys
import numpy as np, oprack
from oprack import nn, parallel
grid = parallel.placement()
net = parallel.to_global(nn.Linear(8, 8), grid, {"weight": ["B", "S(1)"], "bias": ["B", "S(0)"]})
x = oprack.to_tensor(np.ones((16, 8), "float32")).to_global(grid, ["S(0)", "B"], from_whole=True)
net(x).mean().backward()
net.weight.grad.to_global(sbp=["B", "B"])
print("has run", *sys.argv[1:])
"""


def test_the_command_simulates_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    assert (
        main(["parallel", "simulate", "--grid", "data=8,tensor=4", "--accelerator", "A100", str(path), "a", "b"]) == 0
    )
    said = capsys.readouterr().out
    assert said.count("has run a b") == 1
    assert "32 ranks; links: all axes 20 us, 5 GB/s" in said
    assert "data      all_reduce" in said
    assert "rank 16: as rank 0" in said
    assert "matmul_v2_grad float32" in said and "a step takes" in said
    assert main(["parallel", "simulate", "--grid", "data=2", "--accelerator", "H1", str(path)]) == 3
    assert "expected one of V100, A100, H100, or its numbers" in capsys.readouterr().err
    assert main(["parallel", "simulate", "--ranks", "4", "--grid", "data=3", str(path)]) == 3
    assert "expected axes whose sizes multiply to it" in capsys.readouterr().err
    assert main(["parallel", "simulate", "--json", "--grid", "data=2,tensor=2", "--rank", "3", str(path)]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert (report["rank"], report["flops"], report["compute_seconds"]) == (3, 2 * 2 * 8 * 8 * 4, 0.0)
    assert {"adam", "matmul_v2"} - {w["op"] for w in report["work"]} == {"adam"}
