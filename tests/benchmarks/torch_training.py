"""Training steps written for PyTorch: the twins of make_training.py's programs, with random weights of their own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch_models import resnet

Feeds = dict[str, np.ndarray]
Lods = dict[int, list[list[int]]]
Step = Callable[[], torch.Tensor]


def _step(loss: Step, optimizer: torch.optim.Optimizer) -> Step:
    def run() -> torch.Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value

    return run


def _classifier(model: nn.Module, x: np.ndarray, y: np.ndarray, optimizer: Callable[..., Any]) -> Step:
    inputs, labels = torch.from_numpy(x), torch.from_numpy(y).reshape(-1)
    return _step(lambda: nn.functional.cross_entropy(model(inputs), labels), optimizer(model.parameters()))


def _momentum(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, 0.01, momentum=0.9)


def _adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, 1e-3)


def lenet(feeds: Feeds, _: Lods) -> Step:
    """LeNet with batch norm, Momentum."""
    layers: list[nn.Module] = []
    for inputs, outputs, padding in ((1, 6, 2), (6, 16, 0)):
        layers += [nn.Conv2d(inputs, outputs, 5, padding=padding, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
    layers += [nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]
    return _classifier(nn.Sequential(*layers), feeds["x"], feeds["y"], _momentum)


def resnet18(feeds: Feeds, _: Lods) -> Step:
    """ResNet-18 on images of 32x32, Momentum."""
    return _classifier(resnet((2, 2, 2, 2), False, 10), feeds["x"], feeds["y"], _momentum)


class SmallBert(nn.Module):
    """4 encoder layers, 256 wide, and a classifier on the first token."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(8000, 256)
        layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.out = nn.Linear(256, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.encoder(self.words(ids))[:, 0])


def bert_small(feeds: Feeds, _: Lods) -> Step:
    """SmallBert, Adam."""
    return _classifier(SmallBert(), feeds["ids"], feeds["y"], _adam)


class Recurrent(nn.Module):
    """An LSTM over words, and a classifier on its last step."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.lstm = nn.Embedding(5000, 128), nn.LSTM(128, 128, batch_first=True)
        self.out = nn.Linear(128, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.lstm(self.words(ids))[0][:, -1])


def lstm(feeds: Feeds, _: Lods) -> Step:
    """Recurrent, Adam."""
    return _classifier(Recurrent(), feeds["ids"], feeds["y"], _adam)


class Tagger(nn.Module):
    """Embedding, two bidirectional GRUs and a CRF; sequences are padded for it, as PyTorch has no LoD."""

    def __init__(self, words: int, width: int, tags: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.gru = nn.GRU(width, width, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * width, tags)
        self.begin, self.end = nn.Parameter(torch.randn(tags) * 0.1), nn.Parameter(torch.randn(tags) * 0.1)
        self.move = nn.Parameter(torch.randn(tags, tags) * 0.1)

    def forward(self, words: torch.Tensor, tags: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Mean negative log-likelihood of [sequences, steps] tags."""
        packed = pack_padded_sequence(self.words(words), lengths, batch_first=True, enforce_sorted=False)
        emission = self.out(pad_packed_sequence(self.gru(packed)[0], batch_first=True)[0])
        mask = torch.arange(words.shape[1])[None, :] < lengths[:, None]
        last = tags.gather(1, lengths[:, None] - 1)[:, 0]
        score = (emission.gather(2, tags[..., None])[..., 0] * mask).sum(1) + self.begin[tags[:, 0]] + self.end[last]
        score = score + (self.move[tags[:, :-1], tags[:, 1:]] * mask[:, 1:]).sum(1)
        alpha = self.begin + emission[:, 0]
        for t in range(1, words.shape[1]):
            moved = torch.logsumexp(alpha[:, :, None] + self.move, 1) + emission[:, t]
            alpha = torch.where(mask[:, t, None], moved, alpha)
        return (torch.logsumexp(alpha + self.end, 1) - score).mean()


def tagger(feeds: Feeds, lods: Lods) -> Step:
    """Tagger, Adam."""
    offsets = lods[0][0]
    lengths = np.diff(offsets)

    def padded(values: np.ndarray) -> torch.Tensor:
        out = np.zeros((len(lengths), lengths.max()), np.int64)
        for i, (begin, end) in enumerate(pairwise(offsets)):
            out[i, : end - begin] = values[begin:end, 0]
        return torch.from_numpy(out)

    model = Tagger(5000, 64, 40)
    given = padded(feeds["words"]), padded(feeds["tags"]), torch.from_numpy(lengths)
    return _step(lambda: model(*given), _adam(model.parameters()))


def sparse_embedding(feeds: Feeds, _: Lods) -> Step:
    """Sum of rows of a large table with sparse gradients, SGD."""
    table, out = nn.EmbeddingBag(200_000, 32, mode="sum", sparse=True), nn.Linear(32, 1)
    ids, y = torch.from_numpy(feeds["ids"]), torch.from_numpy(feeds["y"])
    optimizer = torch.optim.SGD([*table.parameters(), *out.parameters()], 0.1)
    return _step(lambda: (out(table(ids)) - y).square().mean(), optimizer)


STEPS: dict[str, Callable[[Feeds, Lods], Step]] = {
    f.__name__: f for f in (lenet, resnet18, bert_small, lstm, tagger, sparse_embedding)
}
