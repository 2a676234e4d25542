"""Training steps written with oprack's modules: the twins of make_training.py's programs, with weights of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
from oprack import functional as F
from oprack import nn, optimizer
from workloads import ROOT

Feeds = dict[str, np.ndarray]
Step = Callable[[], oprack.Tensor]


def _classifier(net: nn.Module, x: np.ndarray, y: np.ndarray, trained: Callable[..., Any], jit: bool) -> Step:
    inputs, labels, trainer = oprack.to_tensor(x), oprack.to_tensor(y), trained(net.parameters())

    def loss_of(inputs: oprack.Tensor, labels: oprack.Tensor) -> oprack.Tensor:
        return F.softmax_with_cross_entropy(net(inputs), labels).loss.mean()

    loss = oprack.jit(loss_of) if jit else loss_of

    def step() -> oprack.Tensor:
        value = loss(inputs, labels)
        value.backward()
        trainer.step()
        trainer.clear_grad()
        return value

    return step


def _momentum(parameters: Any) -> Any:
    return optimizer.Momentum(0.01, 0.9, parameters=parameters)


def _adam(parameters: Any) -> Any:
    return optimizer.Adam(1e-3, parameters=parameters)


def lenet(feeds: Feeds, jit: bool) -> Step:
    """LeNet with batch norm, Momentum."""
    layers: list[nn.Module] = []
    for inputs, outputs, padding in ((1, 6, 2), (6, 16, 0)):
        convolution = nn.Conv2D(inputs, outputs, 5, padding=padding, bias_attr=False)
        layers += [convolution, nn.BatchNorm2D(outputs), nn.ReLU(), nn.MaxPool2D(2, 2)]
    layers += [nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]
    return _classifier(nn.Sequential(*layers), feeds["x"], feeds["y"], _momentum, jit)


def resnet18(feeds: Feeds, jit: bool) -> Step:
    """ResNet-18 on images of 32x32, Momentum."""
    sys.path.insert(0, str(ROOT / "examples"))
    from train_on_ranks import resnet18 as net

    return _classifier(net(), feeds["x"], feeds["y"], _momentum, jit)


class SmallBert(nn.Module):
    """4 encoder layers, 256 wide, and a classifier on the first token."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(8000, 256)
        layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 4)
        self.out = nn.Linear(256, 2)

    def forward(self, ids: oprack.Tensor) -> oprack.Tensor:
        return self.out(self.encoder(self.words(ids))[:, 0])


def bert_small(feeds: Feeds, jit: bool) -> Step:
    """SmallBert, Adam."""
    return _classifier(SmallBert(), feeds["ids"], feeds["y"], _adam, jit)


class Recurrent(nn.Module):
    """An LSTM over words, and a classifier on its last step."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.lstm, self.out = nn.Embedding(5000, 128), nn.LSTM(128, 128), nn.Linear(128, 2)

    def forward(self, ids: oprack.Tensor) -> oprack.Tensor:
        return self.out(self.lstm(self.words(ids))[0][:, -1])


def lstm(feeds: Feeds, jit: bool) -> Step:
    """Recurrent, Adam."""
    return _classifier(Recurrent(), feeds["ids"], feeds["y"], _adam, jit)


STEPS: dict[str, Callable[[Feeds, bool], Step]] = {f.__name__: f for f in (lenet, resnet18, bert_small, lstm)}
