"""The same network trained as a program and eagerly, from the same parameters: the same losses, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import Executor, Program, Scope, layers, nn, optimizer, program_guard, to_tensor, unique_name
from oprack import functional as F

STEPS = 6


class LeNet(nn.Module):
    """The network of examples/train_digits.py, without dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2D(1, 6, 5, bias_attr=False),
            nn.BatchNorm(6),
            nn.ReLU(),
            nn.MaxPool2D(2),
            nn.Conv2D(6, 8, 5, bias_attr=False),
            nn.BatchNorm(8),
            nn.ReLU(),
            nn.MaxPool2D(2),
            nn.Flatten(),
            nn.Linear(128, 32),
            nn.ReLU(),
            nn.Linear(32, 10),
        )

    def forward(self, image: Any, label: Any) -> Any:
        return F.mean(F.cross_entropy(F.softmax(self.body(image)), label))


def _static_lenet() -> tuple[Any, Callable[[Any], Any]]:
    image, label = layers.data("image", [None, 1, 28, 28]), layers.data("label", [None, 1], "int64")
    x = image
    for filters in (6, 8):
        x = layers.conv2d(x, filters, filter_size=5, bias_attr=False)
        x = layers.pool2d(layers.batch_norm(x, act="relu"), 2, "max", 2)
    x = layers.fc(layers.fc(x, 32, act="relu"), 10, act="softmax")
    return layers.mean(layers.cross_entropy(x, label))


class Words(nn.Module):
    """Sparse embeddings of sequences without padding, pooled."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 8, sparse=True)
        self.out = nn.Linear(8, 3)

    def forward(self, words: Any, label: Any) -> Any:
        x = F.sequence_pool(F.lookup_table(self.table.weight, words, is_sparse=True), pooltype="SUM")
        return F.mean(F.cross_entropy(F.softmax(self.out(x)), label))


def _static_words() -> Any:
    words, label = layers.data("words", [None, 1], "int64", lod_level=1), layers.data("label", [None, 1], "int64")
    x = layers.sequence_pool(layers.embedding(words, [50, 8], is_sparse=True), "sum")
    return layers.mean(layers.cross_entropy(layers.fc(x, 3, act="softmax"), label))


def _images(generator: np.random.Generator) -> dict[str, Any]:
    return {
        "image": generator.standard_normal((8, 1, 28, 28)).astype(np.float32),
        "label": generator.integers(0, 10, (8, 1)),
    }


def _sentences(generator: np.random.Generator) -> dict[str, Any]:
    from oprack import LoDTensor

    lengths = generator.integers(1, 6, 8)
    words = generator.integers(0, 50, (int(lengths.sum()), 1))
    return {
        "words": LoDTensor(words, [[0, *np.cumsum(lengths).tolist()]]),
        "label": generator.integers(0, 3, (8, 1)),
    }


def _adam(**options: Any) -> Any:
    rate = optimizer.lr.CosineAnnealingDecay(2e-2, T_max=STEPS)
    return optimizer.Adam(rate, grad_clip=optimizer.ClipGradByGlobalNorm(0.5), **options)


def _momentum(**options: Any) -> Any:
    return optimizer.Momentum(0.05, 0.9, regularization=optimizer.L2Decay(1e-2), **options)


def _sgd(**options: Any) -> Any:
    return optimizer.SGD(0.1, **options)


@pytest.mark.parametrize("make", [_adam, _momentum, _sgd])
@pytest.mark.parametrize(
    ("module", "build", "batch"),
    [(LeNet, _static_lenet, _images), (Words, _static_words, _sentences)],
    ids=["lenet", "words"],
)
def test_losses_are_those_of_the_program(module: Any, build: Any, batch: Any, make: Any) -> None:
    main, startup = Program(), Program()
    with unique_name.guard(), program_guard(main, startup):
        loss = build()
        static = make()
        static.minimize(loss)
    executor, scope = Executor(seed=5), Scope()
    executor.run(startup, scope=scope)
    net = module()
    names = [v.name for v in main.all_parameters() if not v.stop_gradient]  # running statistics are not trained
    for p, name in zip(net.parameters(), names, strict=True):
        p.set_value(scope.get_var(name).get().array)
    eager = make(parameter_list=net.parameters())
    generator = np.random.default_rng(0)
    for _ in range(STEPS):
        feed = batch(generator)
        (wanted,) = executor.run(main, feed, [loss], scope)
        found = net(*(to_tensor(v) for v in feed.values()))
        found.backward()
        eager.step()
        eager.clear_grad()
        for optimizer_ in (static, eager):
            if optimizer_.schedule is not None:
                optimizer_.schedule.step()
        np.testing.assert_allclose(float(found), float(wanted), rtol=2e-5)
    for p, name in zip(net.parameters(), names, strict=True):
        np.testing.assert_allclose(p.numpy(), scope.get_var(name).get().array, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("through", ["eager", "jit"])
def test_a_step_writes_to_memory_that_nobody_else_has(through: str) -> None:
    net = nn.Sequential(nn.Linear(300, 200), nn.Linear(200, 1))
    call = oprack.jit(net) if through == "jit" else net
    trainer = optimizer.Momentum(0.1, 0.9, parameters=net.parameters())
    x, weight = to_tensor(np.ones((2, 300), "float32")), net[0].weight

    def step() -> None:
        call(x).sum().backward()
        trainer.step()
        trainer.clear_grad()

    for _ in range(3):  # from the third one on, plans run
        step()
    place = weight._value.ctypes.data
    step()
    assert weight._value.ctypes.data == place
    for other in (lambda: weight._value, lambda: weight._value[1:], lambda: np.from_dlpack(weight.detach())):
        seen = other()
        before = seen.copy()
        step()
        np.testing.assert_array_equal(seen, before)
        del seen
    twin = weight.detach()
    before = twin.numpy().copy()
    step()
    np.testing.assert_array_equal(twin.numpy(), before)
