"""What a training step of GPT-like nets would take on 8 to 1,024 GPUs, by simulation; writes docs/benchmarks/scale.txt.

    python tests/benchmarks/scale_table.py --out docs/benchmarks/scale.txt

One rank of each grid runs the whole program on shapes (oprack.parallel.simulated): layers, gradients, Adam. So the
layouts, collectives and bytes are those that oprack chooses. Times are a model: products at a rate, messages by a
latency and a bandwidth. Nobody has measured oprack on several GPUs.
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
from oprack.nn import functional as F
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


MODELS = (Model("1.3B", 24, 2048, 16, 4), Model("6.4B", 32, 4096, 32, 8), Model("12.6B", 40, 5120, 40, 8))
GRIDS = ((8, 1), (1, 8), (8, 8), (16, 8), (128, 8), (256, 4), (512, 2), (1024, 1))
RATE, NODE, NETWORK = 400e12, Link(4e-6, 300e9), Link(8e-6, 45e9)
"""As of an H100 in half precision: operations a second, links inside a machine of eight, links between machines."""


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
        for block in blocks:
            x = block(x)
        x.mean().backward()
        del x
        adam.step()
        adam.clear_grad()


def _patterns() -> dict[str, Any]:
    return {pattern.removeprefix("*."): sbp for pattern, sbp in LAYOUTS.items()}


def half(link: Link) -> Link:
    """A link for float32 in place of half precision, which has half of the bytes."""
    return Link(link.latency, 2 * link.bandwidth)


def simulated(model: Model, data: int, tensor: int, node: Link = NODE, network: Link = NETWORK) -> Report:
    """What rank 0 of a grid does in a step."""
    # Ranks of the tensor axis lie in one machine of eight, and so do those of the data axis where all fit.
    axes = {"tensor": node, "data": node if data * tensor <= 8 else network}
    world = FakeWorld(data * tensor, {"data": data, "tensor": tensor}, Links(axes, network))
    return world.run(functools.partial(step, model))


def lines() -> Iterator[str]:
    """The table."""
    yield "Training steps of transformers by simulation: what oprack would compute, send and hold. Nobody measured it."
    inside, between = (f"{x.latency * 1e6:g} us and {x.bandwidth / 1e9:g} GB/s" for x in (NODE, NETWORK))
    yield f"Products at {RATE / 1e12:g} TFLOP/s of half precision. Messages inside a machine of eight take"
    yield f"{inside}, between machines {between}, with half of the bytes"
    yield "that are simulated in float32. Memory is that of float32 with Adam and without recomputation. Efficiency is"
    yield "products over the step: if all messages on the data axis hide behind products, and if none do; those on the"
    yield "tensor axis never do. oprack sends gradients after backward, so that none hide: `none` is what it gives."
    yield ""
    heads = f"{'model':<8}{'data x tensor':>14}{'GPUs':>6}{'products':>10}{'tensor':>9}{'data':>9}"
    yield f"{heads}{'all':>7}{'none':>7}{'GiB':>7}"
    yield f"{'':<8}{'':>14}{'':>6}{'ms':>10}{'ms':>9}{'ms':>9}"
    for model in MODELS:
        for data, tensor in GRIDS:
            report = simulated(model, data, tensor, half(NODE), half(NETWORK))
            work = report.flops / RATE
            by_axis = {axis: sum(n.seconds for n in report.lines if n.axis == axis) for axis in ("tensor", "data")}
            inner, outer = by_axis["tensor"], by_axis["data"]
            most, least = work / (inner + max(work, outer)), work / (work + inner + outer)
            yield (
                f"{model.name:<8}{f'{data} x {tensor}':>14}{data * tensor:>6}{work * 1e3:>10.1f}{inner * 1e3:>9.1f}"
                f"{outer * 1e3:>9.1f}{most:>7.2f}{least:>7.2f}{report.peak / 2**30:>7.1f}"
            )
    yield ""
    yield from records()


def records() -> Iterator[str]:
    """The model beside what others have measured with other software."""
    yield "Beside public records, which are of other software; the same model, with the rates of their machines:"
    # 256 V100 of DDP: BERT-like, 110 million parameters, 15.7 TFLOP/s float32, machines of eight with 100 Gb/s
    bert = Model("BERT", 12, 768, 12, 16, 512)
    report = simulated(bert, 256, 1, network=Link(10e-6, 12.5e9 / 8))
    work, talk = report.flops / 12e12, report.seconds
    yield (
        f"- DDP, 256 V100 (arXiv 2006.15704: near-linear): BERT base, 16 rows of 512, float32 at 12 TFLOP/s: products "
        f"{work * 1e3:.0f} ms, messages {talk * 1e3:.0f} ms; efficiency {work / max(work, talk):.2f} if all hide, "
        f"{work / (work + talk):.2f} if none do."
    )
    # 3,072 A100: 8 x 64 x 6, 3,072 sequences of 2,048, one at a time, layers computed again in backward
    link = half(Link(4e-6, 240e9))
    one, two = (simulated(Model("1T", layers, 25600, 160, 1), 1, 8, link) for layers in (1, 2))
    forward = (two.flops - one.flops) / 3
    inner = two.seconds - one.seconds
    pieces, stages, whole = 3072 // 6, 64, 312e12
    for share in (1.0, 0.62):
        work = 4 * forward / (share * whole)
        busy = pieces / (pieces + stages - 1)
        yield (
            f"- Megatron, 3,072 A100 (arXiv 2104.04473: 502 PFLOP/s, 52 % of peak): products at {share:.0%} of peak "
            f"give {share * work / (work + 1.5 * inner) * busy:.0%} of peak (a layer: products {work * 1e3:.0f} ms, "
            f"messages {1.5 * inner * 1e3:.1f} ms; pipeline busy {busy:.0%})."
        )
    yield "The second record is met if products alone run at 60 to 65 % of peak, which the record does not say."


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
