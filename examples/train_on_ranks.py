"""Training on several ranks: a tagger, sentiment, LeNet or ResNet-18, with the losses of one rank.

    oprack launch -n 2 examples/train_on_ranks.py tagger          # each rank takes whole sequences of a batch
    python examples/train_on_ranks.py tagger                      # one rank, the same losses
    oprack launch -n 2 examples/train_on_ranks.py resnet18 --zero # optimizer's state and gradients in parts

A batch is dealt to the ranks item by item: images, or sentences of any length, which stay whole. The loss of a rank
counts by its share of the batch, so that gradients are those of the mean over the whole batch, also where the ranks
have different numbers of items. Batch norm (lenet, resnet18) takes its statistics over the items that it sees, which
are those of a rank; `--parts 2` on one rank takes the batch in two parts, and has the statistics and losses of two
ranks.

The printed losses are means over the whole batch. Images of resnet18 are generated, the others have the data of the
example of that name.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy reads it once; see common.py

import numpy as np
import oprack
from oprack import functional as F
from oprack import initializer, nn, optimizer, parallel, to_tensor


class Residual(nn.Module):
    """relu(x + two convolutions of x), where x is projected when its shape changes."""

    def __init__(self, channels: int, filters: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(conv_norm(channels, filters, 3, stride), nn.ReLU(), conv_norm(filters, filters, 3))
        changes = channels != filters or stride > 1
        self.shortcut = conv_norm(channels, filters, 1, stride) if changes else nn.Identity()

    def forward(self, x: oprack.Tensor) -> oprack.Tensor:
        return F.relu(self.shortcut(x) + self.inner(x))


def conv_norm(channels: int, filters: int, size: int, stride: int = 1) -> nn.Module:
    """Convolution without bias, and batch norm."""
    return nn.Sequential(
        nn.Conv2D(channels, filters, size, stride=stride, padding=size // 2, bias_attr=False), nn.BatchNorm2D(filters)
    )


def resnet18(width: int = 64, classes: int = 10) -> nn.Module:
    """ResNet-18 (He et al. 2016): logits [batch, classes] of images [batch, 3, height, width]."""
    blocks: list[nn.Module] = [conv_norm(3, width, 7, 2), nn.ReLU(), nn.MaxPool2D(3, 2, 1)]
    channels = width
    for stage in range(4):
        for i in range(2):
            blocks.append(Residual(channels, width << stage, 2 if stage and not i else 1))
            channels = width << stage
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(channels, classes))


class Tables(nn.Module):
    """Rows of several tables side by side, [rows, sum of widths], with sparse gradients."""

    def __init__(self, sizes: Sequence[tuple[int, int]]) -> None:
        super().__init__()
        normal = initializer.Normal(0.0, 0.1)
        self.tables = nn.ParameterList([self.create_parameter(list(s), default_initializer=normal) for s in sizes])

    def forward(self, ids: Sequence[oprack.Tensor]) -> oprack.Tensor:
        rows = [F.lookup_table(w, i, is_sparse=True) for i, w in zip(ids, self.tables, strict=True)]
        return F.concat(rows, axis=1)


class Tagger(nn.Module):
    """Mean negative log-likelihood of tags by embeddings, two bidirectional GRUs and a CRF, over sequences (LoD)."""

    def __init__(self, words: int, chars: int, tags: int, hidden: int) -> None:
        super().__init__()
        self.tables = Tables([(words, 64), (chars, 32), (chars, 32), (chars, 32)])
        sizes = [(160, hidden)] * 2 + [(2 * hidden, hidden)] * 2
        self.inputs = nn.ModuleList([nn.Linear(n, 3 * h) for n, h in sizes])
        self.states = nn.ParameterList([self.create_parameter([h, 3 * h]) for _, h in sizes])
        self.out = nn.Linear(2 * hidden, tags)
        self.crf = self.create_parameter([tags + 2, tags])

    def forward(self, features: Sequence[oprack.Tensor], tags: oprack.Tensor) -> oprack.Tensor:
        x = self.tables(features)
        for k in (0, 2):
            directions = [F.gru(self.inputs[k + r](x), self.states[k + r], is_reverse=bool(r)) for r in (0, 1)]
            x = F.concat(directions, axis=1)
        return F.linear_chain_crf(self.out(x), self.crf, tags).mean()


class Sentiment(nn.Module):
    """Mean cross entropy of two classes by embeddings, convolutions over each sequence and what is pooled of them."""

    def __init__(self, chars: int, pairs: int, filters: int) -> None:
        super().__init__()
        self.tables = Tables([(chars, 48), (pairs, 48)])
        self.filters = nn.ParameterList([self.create_parameter([width * 96, filters]) for width in (1, 2, 3)])
        self.out = nn.Linear(6 * filters, 2)

    def forward(self, features: Sequence[oprack.Tensor], labels: oprack.Tensor) -> oprack.Tensor:
        x = self.tables(features)
        pooled = []
        for width, weight in enumerate(self.filters, 1):
            h = F.relu(F.sequence_conv(x, weight, contextLength=width, contextStart=-(width // 2)))
            pooled += [F.sequence_pool(h, pooltype=kind) for kind in ("MAX", "AVERAGE")]
        return F.softmax_with_cross_entropy(self.out(F.concat(pooled, axis=1)), labels).loss.mean()


Task = tuple[nn.Module, list[list[Any]], Callable[[nn.Module, list[Any]], oprack.Tensor], Callable[[Any], Any]]
"""The net, batches of items, the mean loss of some items, and the optimizer of parameters."""


def image_task(net: nn.Module, images: np.ndarray, labels: np.ndarray, batch: int, rate: float) -> Task:
    items = list(zip(images, labels, strict=True))
    batches = [items[i : i + batch] for i in range(0, len(items) - batch + 1, batch)]

    def loss_of(net: nn.Module, items: list[Any]) -> oprack.Tensor:
        x, y = (to_tensor(np.stack(column)) for column in zip(*items, strict=True))
        return F.softmax_with_cross_entropy(net(x), y).loss.mean()

    return net, batches, loss_of, lambda parameters: optimizer.Momentum(rate, 0.9, parameters=parameters)


def resnet_task(options: argparse.Namespace) -> Task:
    random = np.random.default_rng(options.seed)
    count = options.batch or (32 if options.quick else 64)
    images = random.standard_normal((4 * count, 3, 32, 32)).astype("float32")
    labels = random.integers(0, 10, (4 * count, 1))
    return image_task(resnet18(8 if options.quick else 64), images, labels, count, 0.002)


def lenet_task(options: argparse.Namespace) -> Task:
    import datasets
    from train_digits_eager import LeNet

    images, labels = datasets.digits()
    order = np.random.default_rng(options.seed).permutation(len(images))
    images, labels = images[order], labels[order]
    net = LeNet()
    net.dropout.p = 0.0  # ranks draw other numbers than one rank does
    count = options.batch or 64
    return image_task(net, images, labels, count, 0.01)


def sequence_task(net: nn.Module, items: list[Any], rows: int, tagged: bool) -> Task:
    """Items are (numbers [length, features], tags [length], or a label [1] unless tagged)."""
    from common import by_length, sequences

    batches = [b for b in by_length(items, [len(f) for f, _ in items], rows) if len(b) >= 8]

    def loss_of(net: nn.Module, items: list[Any]) -> oprack.Tensor:
        columns = range(items[0][0].shape[1])
        features = [to_tensor(sequences([f[:, i : i + 1] for f, _ in items])) for i in columns]
        labels = sequences([y[:, None] for _, y in items]) if tagged else np.stack([y for _, y in items])
        return net(features, to_tensor(labels))

    return net, batches, loss_of, lambda parameters: optimizer.Adam(5e-3, parameters=parameters)


def tagger_task(options: argparse.Namespace) -> Task:
    import datasets
    from train_tagger import Vocabulary

    sentences = [s for p in datasets.people_daily(60 if options.quick else 2000) for s in p if len(s) > 1]
    vocabulary = Vocabulary(sentences, sorted({tag for s in sentences for _, tag in s}))
    items = [(vocabulary.features([w for w, _ in s]), vocabulary.labels(s)) for s in sentences]
    sizes = len(vocabulary.words) + 1, len(vocabulary.chars) + 1, len(vocabulary.tags)
    net = Tagger(*sizes, 16 if options.quick else 64)
    return sequence_task(net, items, options.batch or (200 if options.quick else 2000), tagged=True)


def sentiment_task(options: argparse.Namespace) -> Task:
    import datasets
    from train_sentiment import Vocabulary

    reviews = datasets.reviews()[: 100 if options.quick else 4000]
    vocabulary = Vocabulary([text for text, _ in reviews])
    items = [(vocabulary.features(text), np.array([label])) for text, label in reviews if len(text) > 1]
    sizes = len(vocabulary.chars) + 1, len(vocabulary.pairs) + 1
    net = Sentiment(*sizes, 8 if options.quick else 96)
    return sequence_task(net, items, options.batch or (1000 if options.quick else 3000), tagged=False)


TASKS = {"tagger": tagger_task, "sentiment": sentiment_task, "lenet": lenet_task, "resnet18": resnet_task}


def train(task: Task, steps: int, parts: int, zero: bool) -> list[float]:
    """Train on the ranks that there are; returns the losses of the whole batches."""
    world = parallel.world()
    net, batches, loss_of, make = task
    ranked = None if zero else parallel.DataParallel(net)
    steps_of = make(net.parameters())
    if zero:
        steps_of = parallel.Zero(steps_of, stage=2)
    mine = range(world.rank, parts, world.size)
    losses = []
    for step in range(steps):
        batch = batches[step % len(batches)]
        total = 0.0
        for k in mine:
            items = batch[k::parts]
            share = len(items) / len(batch)
            keep = contextlib.nullcontext() if ranked is None or k == mine[-1] else ranked.no_sync()
            with keep:
                loss = loss_of(net, items) * (share * world.size)
                loss.backward()
            total += loss.item() / world.size
        steps_of.step()
        steps_of.clear_grad()
        losses.append(float(world.all_reduce(np.array([total]))[0]))
    return losses


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", choices=TASKS)
    parser.add_argument("--steps", type=int, default=20, help="of training (%(default)s)")
    parser.add_argument("--batch", type=int, help="images of a batch, or words or characters of all its sequences")
    parser.add_argument("--parts", type=int, help="parts of a batch, a multiple of the ranks (default: the ranks)")
    parser.add_argument("--zero", action="store_true", help="parallel.Zero, stage 2, in place of DataParallel")
    parser.add_argument("--seed", type=int, default=1, help="of parameters and generated images (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="a small net and a little data")
    parser.add_argument("--out", type=Path, help="a file for the losses, as JSON")
    options = parser.parse_args(argv)
    world = parallel.init()
    parts = options.parts or world.size
    if parts % world.size:
        parser.error(f"--parts {parts} with {world.size} ranks; expected a multiple of the ranks")
    oprack.seed(options.seed)
    losses = train(TASKS[options.model](options), options.steps, parts, options.zero)
    if world.rank == 0:
        shown = " ".join(f"{loss:.6f}" for loss in losses)
        print(f"{options.model} on {world.size} ranks, {parts} parts: {shown}")
        if options.out:
            options.out.write_text(json.dumps(losses))
    return 0


if __name__ == "__main__":
    sys.exit(main())
