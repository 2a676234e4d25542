"""What a training step of GPT-like nets would take on 8 to 1,024 GPUs, by simulation; writes docs/benchmarks/scale.txt.

    python tests/benchmarks/scale_table.py --out docs/benchmarks/scale.txt

One rank of each grid runs the whole program on shapes (oprack.parallel.simulated): layers, gradients, Adam. So the
layouts, collectives and bytes are those that oprack chooses. Times are a model (oprack.parallel.costs and links).
Nobody has measured oprack on several GPUs.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import oprack
from oprack import nn, optimizer, parallel
from oprack.autograd import recompute
from oprack.nn import functional as F
from oprack.parallel.costs import ACCELERATORS
from oprack.parallel.links import Link, Links
from oprack.parallel.simulated import FakeCommunicator, FakeWorld, Report

COLUMNS, ROWS = ["broadcast", "split(1)"], ["broadcast", "split(0)"]
LAYOUTS = {
    "*.[qkv].weight": COLUMNS,
    "*.[qkv].bias": ROWS,
    "*.wide.weight": COLUMNS,
    "*.wide.bias": ROWS,
    "*.out.weight": ROWS,
    "*.narrow.weight": ROWS,
}


class Block(nn.Module):
    """A layer of a transformer, with causal attention left out: its mask changes no shape."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        """Attention and two products, each added to what came."""
        return self._wider(x + self.out(self._attention(self.first(x))))

    def _attention(self, x: Any) -> Any:
        rows, length, width = x.shape
        cut = [rows, length, self.heads, width // self.heads]
        q, k, v = (oprack.transpose(oprack.reshape(m(x), cut), [0, 2, 1, 3]) for m in (self.q, self.k, self.v))
        scores = F.softmax(oprack.matmul(q, k, transpose_y=True) * (width // self.heads) ** -0.5)
        return oprack.reshape(oprack.transpose(oprack.matmul(scores, v), [0, 2, 1, 3]), [rows, length, width])

    def _wider(self, x: Any) -> Any:
        return x + self.narrow(F.gelu(self.wide(self.second(x))))


@dataclass(frozen=True)
class Model:
    """A net, and how much of a batch each rank of the data axis has."""

    name: str
    layers: int
    width: int
    heads: int
    rows: int
    length: int = 2048
    half: bool = True


MODELS = (Model("1.3B", 24, 2048, 16, 4), Model("6.4B", 32, 4096, 32, 8), Model("12.6B", 40, 5120, 40, 8))
GRIDS = ((8, 1), (1, 8), (8, 8), (16, 8), (128, 8), (256, 4), (512, 2), (1024, 1))
GPU, NODE, NETWORK = "H100", Link(4e-6, 300e9), Link(8e-6, 45e9)
"""What a rank computes with, and links inside a machine of eight and between machines."""
PEAK = {"V100": 15.7e12, "A100": 312e12, "H100": 989e12}
"""Operations a second by the data sheets: of a V100 in single, of the others in half precision."""
ADAM = 30
"""Bytes that Adam reads and writes for a parameter in half precision whose state is in single precision."""


def step(model: Model, world: FakeCommunicator) -> None:
    """Train a second step of the layers; embeddings and the loss over the vocabulary are left out.

    The first step ends by making Adam's moments, so what is held is that of the second.
    """
    grid = parallel.placement()
    blocks = [parallel.to_global(Block(model.width, model.heads), grid, _patterns()) for _ in range(model.layers)]
    adam = optimizer.Adam(1e-4, parameter_list=[p for b in blocks for p in b.parameters()])
    for _ in range(2):
        world.restart()
        x = oprack.full([model.rows, model.length, model.width], 1.0).to_global(grid, ["split(0)", "broadcast"])
        with oprack.amp.autocast(dtype="float16", enable=model.half):
            for block in blocks:
                x = block(x)
        x.mean().backward()
        del x
        adam.step()
        adam.clear_grad()


def _patterns() -> dict[str, Any]:
    return {pattern.removeprefix("*."): sbp for pattern, sbp in LAYOUTS.items()}


def simulated(
    model: Model, data: int, tensor: int, node: Link = NODE, network: Link = NETWORK, gpu: str = GPU
) -> Report:
    """What rank 0 of a grid does in a step."""
    # Ranks of the tensor axis lie in one machine of eight, and so do those of the data axis where all fit.
    axes = {"tensor": node, "data": node if data * tensor <= 8 else network}
    world = FakeWorld(data * tensor, {"data": data, "tensor": tensor}, Links(axes, network), ACCELERATORS[gpu])
    return world.run(functools.partial(step, model))


def lines() -> Iterator[str]:
    """The table."""
    yield "Training steps of transformers by simulation: what oprack would compute, send and hold. Nobody measured it."
    inside, between = (f"{x.latency * 1e6:g} us and {x.bandwidth / 1e9:g} GB/s" for x in (NODE, NETWORK))
    yield f"{GPU}, autocast to float16; messages inside a machine of eight take {inside},"
    yield f"between machines {between}. An op takes its start, its products and what it reads"
    yield "and writes, one after the other (oprack.parallel.costs). Memory is that of parameters and Adam in float32,"
    yield "and of activations, without recomputation. The last columns are products over the step, of the peak in"
    yield "half precision: if all messages on the data axis hide behind ops, and if none do; those on the tensor axis"
    yield "never do."
    yield ""
    heads = f"{'model':<8}{'data x tensor':>14}{'GPUs':>6}{'ops':>10}{'tensor':>9}{'data':>9}"
    yield f"{heads}{'all':>7}{'none':>7}{'GiB':>7}"
    yield f"{'':<8}{'':>14}{'':>6}{'ms':>10}{'ms':>9}{'ms':>9}{'%':>7}{'%':>7}"
    for model in MODELS:
        for data, tensor in GRIDS:
            report = simulated(model, data, tensor)
            work, products = report.compute_seconds, report.flops / PEAK[GPU]
            by_axis = {axis: sum(n.seconds for n in report.lines if n.axis == axis) for axis in ("tensor", "data")}
            inner, outer = by_axis["tensor"], by_axis["data"]
            most, least = products / (inner + max(work, outer)), products / (work + inner + outer)
            yield (
                f"{model.name:<8}{f'{data} x {tensor}':>14}{data * tensor:>6}{work * 1e3:>10.1f}{inner * 1e3:>9.1f}"
                f"{outer * 1e3:>9.1f}{100 * most:>7.1f}{100 * least:>7.1f}{report.peak / 2**30:>7.1f}"
            )
    yield ""
    yield from records()


# Beside what others measured ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Record:
    """A row of Megatron-LM's table (arXiv 2104.04473, table 1): GPT of sequences of 2,048 on A100.

    Attributes:
        reached: Percent of the peak that was measured.
    """

    name: str
    heads: int
    width: int
    layers: int
    tensor: int
    stages: int
    gpus: int
    batch: int
    reached: int


RECORDS = (
    Record("1.7B", 24, 2304, 24, 1, 1, 32, 512, 44),
    Record("3.6B", 32, 3072, 30, 2, 1, 64, 512, 44),
    Record("7.5B", 32, 4096, 36, 4, 1, 128, 512, 46),
    Record("18.4B", 48, 6144, 40, 8, 1, 256, 1024, 43),
    Record("39.1B", 64, 8192, 48, 8, 2, 512, 1536, 44),
    Record("76.1B", 80, 10240, 60, 8, 4, 1024, 1792, 45),
    Record("145.6B", 96, 12288, 80, 8, 8, 1536, 2304, 47),
    Record("310.1B", 128, 16384, 96, 8, 16, 1920, 2160, 50),
    Record("529.6B", 128, 20480, 105, 8, 35, 2520, 2520, 52),
    Record("1008B", 160, 25600, 128, 8, 64, 3072, 3072, 52),
)
LENGTH, WORDS = 2048, 51200


def recomputed_layer(width: int, heads: int, tensor: int, rows: int) -> Report:
    """A layer in float16 whose activations are computed again on the way back."""

    def run(world: FakeCommunicator) -> None:
        grid = parallel.placement()
        block = Block(width, heads)
        block.to(dtype="float16")
        block = parallel.to_global(block, grid, _patterns())
        x, gradient = (
            oprack.full([rows, LENGTH, width], 1.0, dtype="float16").to_global(grid, ["broadcast", "broadcast"])
            for _ in range(2)
        )
        x.stop_gradient = False
        world.restart()
        recompute(block, x).backward(gradient)

    links = Links({"tensor": Link(4e-6, 240e9)})
    return FakeWorld(tensor, {"data": 1, "tensor": tensor}, links, ACCELERATORS["A100"]).run(run)


def reached(record: Record, rows: int) -> float:
    """Percent of the peak that a record's net would reach with micro-batches of so many rows.

    A stage takes its layers and, as each rank of the last one, the scores of all words; the pipeline is filled and
    emptied once; gradients are summed up in float16 and parameters updated behind it.
    """
    gpu, width, tensor = ACCELERATORS["A100"], record.width, record.tensor
    data = record.gpus // (tensor * record.stages)
    layer = recomputed_layer(width, record.heads, tensor, rows)
    scores = rows * LENGTH * WORDS // tensor
    head = gpu.seconds([(2 * scores * width, scores)] * 3, 6 * 4 * scores, "float16")
    stage = record.layers / record.stages * (layer.compute_seconds + layer.seconds) + head
    parameters = 12 * record.layers * width**2 / (tensor * record.stages) + WORDS * width / tensor
    behind = Link(8e-6, 25e9).seconds("all_reduce", 2 * parameters, data) + ADAM * parameters / gpu.bandwidth
    seconds = stage * (record.batch // (data * rows) + record.stages - 1) + behind
    layers = record.layers * width
    # the paper's formula of operations, in which layers are computed twice forward
    flops = 96 * record.batch * LENGTH * layers * width * (1 + LENGTH / (6 * width) + WORDS / (16 * layers))
    return 100 * flops / record.gpus / PEAK["A100"] / seconds


def records() -> Iterator[str]:
    """The model beside what others have measured with other software."""
    yield "Beside public records of other software, with the numbers of their machines, none of which was fitted:"
    # 256 V100 of DDP: BERT-like, 110 million parameters, 15.7 TFLOP/s float32, machines of eight with 100 Gb/s
    bert = Model("BERT", 12, 768, 12, 16, 512, half=False)
    report = simulated(bert, 256, 1, network=Link(10e-6, 12.5e9 / 8), gpu="V100")
    work, talk = report.compute_seconds, report.seconds
    yield (
        "- DDP, 256 V100 (arXiv 2006.15704: near-linear): BERT base, 16 rows of 512, float32: "
        f"ops {work * 1e3:.0f} ms, messages {talk * 1e3:.0f} ms; efficiency {work / max(work, talk):.2f} if all hide, "
        f"{work / (work + talk):.2f} if none do."
    )
    yield "- Megatron-LM, A100 (arXiv 2104.04473, table 1): percent of the peak in half precision, for the size of"
    yield "  micro-batches, of 1, 2, 4 and 8, that is the best:"
    yield f"  {'model':<8}{'tensor':>8}{'stages':>8}{'GPUs':>7}{'measured':>10}{'simulated':>11}{'off':>7}"
    worst = 0.0
    for r in RECORDS:
        share = r.batch * r.tensor * r.stages // r.gpus
        found = max(reached(r, rows) for rows in (1, 2, 4, 8) if share % rows == 0)
        worst = max(worst, abs(found - r.reached))
        yield (
            f"  {r.name:<8}{r.tensor:>8}{r.stages:>8}{r.gpus:>7}{r.reached:>10}{found:>11.1f}{found - r.reached:>+7.1f}"
        )
    yield f"  At most {worst:.1f} points off. Simulated ops are oprack's, each by itself; Megatron-LM fuses some, and"
    yield "  has dropout. Stages of a pipeline also wait for what they send one another, which is not counted."


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file for the table (default: printed)")
    args = parser.parse_args()
    start = time.perf_counter()
    text = "\n".join(lines()) + "\n"
    print(text, f"{time.perf_counter() - start:.0f} s", sep="")
    if args.out:
        args.out.write_text(text)


if __name__ == "__main__":
    np.seterr(all="ignore")
    oprack.seed(0)
    main()
