"""Every module whose result has a row for each row of its input keeps the sequences that the rows belong to."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import nn, to_tensor
from oprack.tensor import LoDTensor

LOD = [[0, 2, 2, 6]]
ROWS, LINES, IMAGES, VOLUMES = (6, 4), (6, 4, 6), (6, 4, 4, 4), (6, 4, 4, 4, 4)
STEPS = (6, 3, 4)  # of a transformer: batch, length, width

# How to make a module and the shapes of what it is called with; those not named here are made without arguments and
# called with ROWS.
MADE: dict[str, tuple[Callable[[Any], Any], list[tuple[int, ...]]]] = {
    "Bilinear": (lambda c: c(4, 4, 3), [ROWS, ROWS]),
    "ChannelShuffle": (lambda c: c(2), [IMAGES]),
    "CosineEmbeddingLoss": (lambda c: c(reduction="none"), [ROWS, ROWS, (6,)]),
    "CosineSimilarity": (lambda c: c(), [ROWS, ROWS]),
    "Dropout2D": (lambda c: c(), [IMAGES]),
    "Dropout3D": (lambda c: c(), [VOLUMES]),
    "Flatten": (lambda c: c(), [IMAGES]),
    "Fold": (lambda c: c(4, 2), [(6, 4, 9)]),
    "GroupNorm": (lambda c: c(2, 4), [IMAGES]),
    "LayerNorm": (lambda c: c(4), [ROWS]),
    "Linear": (lambda c: c(4, 3), [ROWS]),
    "LocalResponseNorm": (lambda c: c(3), [IMAGES]),
    "MarginRankingLoss": (lambda c: c(reduction="none"), [ROWS, ROWS, ROWS]),
    "Maxout": (lambda c: c(2), [IMAGES]),
    "MultiHeadAttention": (lambda c: c(4, 2), [STEPS]),
    "PReLU": (lambda c: c(4), [ROWS]),
    "PixelShuffle": (lambda c: c(2), [IMAGES]),
    "PixelUnshuffle": (lambda c: c(2), [IMAGES]),
    "Sequential": (lambda c: c(nn.ReLU()), [ROWS]),
    "Transformer": (lambda c: c(4, 2, 1, 1, 8), [STEPS, STEPS]),
    "TransformerDecoder": (lambda c: c(nn.TransformerDecoderLayer(4, 2, 8), 1), [STEPS, STEPS]),
    "TransformerDecoderLayer": (lambda c: c(4, 2, 8), [STEPS, STEPS]),
    "TransformerEncoder": (lambda c: c(nn.TransformerEncoderLayer(4, 2, 8), 1), [STEPS]),
    "TransformerEncoderLayer": (lambda c: c(4, 2, 8), [STEPS]),
    "TripletMarginLoss": (lambda c: c(reduction="none"), [ROWS, ROWS, ROWS]),
    "Unfold": (lambda c: c(2), [IMAGES]),
    "Upsample": (lambda c: c(scale_factor=2), [IMAGES]),
    "UpsamplingBilinear2D": (lambda c: c(scale_factor=2), [IMAGES]),
    "UpsamplingNearest2D": (lambda c: c(scale_factor=2), [IMAGES]),
    "ZeroPad2D": (lambda c: c(1), [IMAGES]),
}
MADE |= {name: (lambda c: c(4, 3), [ROWS]) for name in ("GRU", "LSTM", "SimpleRNN", "GRUCell", "LSTMCell")}
MADE |= {
    "SimpleRNNCell": MADE["GRUCell"],
    "BatchNorm": (lambda c: c(4), [ROWS]),
    "InstanceNorm": (lambda c: c(4), [IMAGES]),
}
for rank, shape in enumerate((LINES, IMAGES, VOLUMES), 1):
    pools = [f"{kind}Pool{rank}D" for kind in ("AdaptiveAvg", "AdaptiveMax", "Avg", "Max")]
    MADE |= {name: (lambda c: c(2), [shape]) for name in pools}
    MADE |= {f"Conv{rank}D{of}": (lambda c: c(4, 3, 3), [shape]) for of in ("", "Transpose")}
    MADE |= {f"{norm}Norm{rank}D": (lambda c: c(4), [shape]) for norm in ("Batch", "Instance")}
    MADE |= {f"Pad{rank}D": (lambda c: c(1), [shape])}
LABELS = to_tensor([0, 1, 2, 3, 0, 1], lod=LOD)

WITHOUT = {
    "CTCLoss": "its input is [time, batch, classes], and the lengths are arguments",
    **dict.fromkeys(
        ("Layer", "Module", "LayerDict", "LayerList", "ModuleDict", "ModuleList", "ParameterList"), "it has no forward"
    ),
}


def _modules() -> list[str]:
    found = [n for n in dir(nn) if isinstance(getattr(nn, n), type) and issubclass(getattr(nn, n), nn.Module)]
    return [n for n in found if n not in WITHOUT]


def _inputs(name: str, shapes: list[tuple[int, ...]]) -> list[Any]:
    r = np.random.default_rng(0)
    return [to_tensor(r.uniform(0.1, 0.9, shape).astype("float32"), lod=LOD) for shape in shapes]


def _made(name: str) -> tuple[Any, list[Any]]:
    oprack.seed(1)
    if name == "Embedding":
        return nn.Embedding(9, 3), [LABELS]
    loss = name.endswith("Loss")
    make, shapes = MADE.get(name, (lambda c: c(reduction="none") if loss else c(), [ROWS, ROWS] if loss else [ROWS]))
    inputs = _inputs(name, shapes)
    if name in ("CrossEntropyLoss", "NLLLoss"):
        inputs[1] = LABELS
    return make(getattr(nn, name)), inputs


def _results(found: Any) -> list[Any]:
    if isinstance(found, list | tuple):
        return [t for part in found for t in _results(part)]
    return [found]


@pytest.mark.parametrize("name", _modules())
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_rows_that_stay_rows_keep_their_sequences(name: str, training: bool) -> None:
    module, inputs = _made(name)
    module.train(training)
    found = [t for t in _results(module(*inputs)) if t.ndim and t.shape[0] == 6]
    assert found
    for t in found:
        assert t.lod == LOD, f"{name} lost the LoD of its input: {list(t.shape)}"


@pytest.mark.parametrize("name", sorted(set(_modules()) - {"GRU", "LSTM", "SimpleRNN"}))
def test_their_numbers_are_those_of_a_batch_without_sequences(name: str) -> None:
    module, inputs = _made(name)
    module.eval()
    with_lod, without = _results(module(*inputs)), _results(module(*(to_tensor(t.numpy()) for t in inputs)))
    for a, b in zip(with_lod, without, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)
        assert b.lod == []


def test_places_of_maxima_belong_to_the_same_rows() -> None:
    x = _inputs("", [IMAGES])[0]
    assert [t.lod for t in nn.MaxPool2D(2, return_mask=True)(x)] == [LOD, LOD]


def test_vectors_without_rows_have_no_sequences_of_results() -> None:
    a, b = (to_tensor(v, lod=[[0, 1, 3]]) for v in (np.float32([3, 4, 0]), np.float32([4, 3, 0])))
    found = nn.functional.cosine_similarity(a, b, axis=0)
    assert found.lod == [] and math.isclose(found.item(), 24 / 25, rel_tol=1e-6)
    assert nn.functional.triplet_margin_loss(a, b, b, reduction="none").lod == []


class Reader(nn.Module):
    """Lines of pixels as sequences: an image for each row."""

    def __init__(self) -> None:
        super().__init__()
        self.look, self.most, self.say = nn.Conv2D(1, 3, 3), nn.AdaptiveMaxPool2D(1), nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return F.sequence_pool(self.say(self.most(self.look(x)).flatten(1)), pooltype="SUM")


def test_images_in_sequences_are_learned_from_and_saved(tmp_path: Any) -> None:
    oprack.seed(2)
    net = Reader()
    x = np.random.default_rng(3).normal(size=(6, 1, 5, 5)).astype("float32")
    found = net(to_tensor(x, lod=LOD))
    rows = net.say(net.most(net.look(to_tensor(x))).flatten(1)).numpy()
    np.testing.assert_allclose(found.numpy(), [rows[:2].sum(0), [0, 0], rows[2:].sum(0)], rtol=1e-5, atol=1e-6)
    found.sum().backward()
    assert all(p.grad is not None and np.abs(p.grad.numpy()).max() > 0 for p in net.parameters())
    np.testing.assert_allclose(oprack.jit(net)(to_tensor(x, lod=LOD)).numpy(), found.numpy(), rtol=1e-5, atol=1e-6)
    oprack.jit.save(net, tmp_path / "net", input_spec=[oprack.InputSpec([None, 1, 5, 5], lod_level=1)])
    scope = oprack.Scope()
    model = oprack.io.load_inference_model(tmp_path / "net", scope)
    feeds = {model.feed_names[0]: LoDTensor(x, LOD)}
    np.testing.assert_allclose(
        oprack.Executor().run(model.program, feeds, model.fetch_names, scope)[0], found.numpy(), rtol=1e-5, atol=1e-6
    )


# Modules that look beyond a row, at the other rows of its sequence alone: how to make them, and how the rows of one
# sequence [L, 4] are given to them where they are a batch of one
BEYOND_A_ROW: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "Conv1D": (lambda: nn.Conv1D(4, 3, 3, padding=1), lambda f: lambda x: f(x.t().unsqueeze(0)).squeeze(0).t()),
    "Conv1D, groups": (
        lambda: nn.Conv1D(4, 6, 2, padding=[1, 0], groups=2),
        lambda f: lambda x: f(x.t().unsqueeze(0)).squeeze(0).t(),
    ),
    "Conv1D, steps": (
        lambda: nn.Conv1D(4, 3, 3, 2, [2, 1], bias_attr=False),
        lambda f: lambda x: f(x.t().unsqueeze(0)).squeeze(0).t(),
    ),
    "InstanceNorm1D": (lambda: nn.InstanceNorm1D(4), lambda f: lambda x: f(x.t().unsqueeze(0)).squeeze(0).t()),
    "MultiHeadAttention": (lambda: nn.MultiHeadAttention(4, 2), lambda f: lambda x: f(x.unsqueeze(0)).squeeze(0)),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2),
        lambda f: lambda x: f(x.unsqueeze(0)).squeeze(0),
    ),
    "LSTM": (lambda: nn.LSTM(4, 3), lambda f: lambda x: f(x.unsqueeze(0))[0].squeeze(0)),
}


@pytest.mark.parametrize("name", BEYOND_A_ROW)
def test_rows_of_a_sequence_are_those_of_a_batch_of_it_alone(name: str) -> None:
    make, of_a_batch = BEYOND_A_ROW[name]
    oprack.seed(1)
    module = make()
    module.eval()
    for p in module.parameters():  # norms and biases begin as if they were not there
        p.set_value(np.random.default_rng(p.size).normal(size=p.shape).astype("float32"))
    x = np.random.default_rng(2).normal(size=ROWS).astype("float32")
    found = module(to_tensor(x, lod=LOD))
    found = found[0] if isinstance(found, tuple) else found
    parts = [of_a_batch(module)(to_tensor(x[a:b])).numpy() if b > a else x[:0] for a, b in ((0, 2), (2, 2), (2, 6))]
    assert found.lod == [np.cumsum([0, *map(len, parts)]).tolist()]
    np.testing.assert_allclose(found.numpy(), np.concatenate([p for p in parts if len(p)]), rtol=1e-4, atol=1e-5)


def test_a_batch_norm_of_rows_has_no_padding_in_its_statistics() -> None:
    x = np.random.default_rng(2).normal(size=ROWS).astype("float32")
    found = nn.BatchNorm1D(4)(to_tensor(x, lod=LOD)).numpy()
    np.testing.assert_allclose(found, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), rtol=1e-4, atol=1e-5)


def test_a_convolution_of_rows_with_steps_refuses_same() -> None:
    with pytest.raises(oprack.errors.InvalidArgumentError, match="padding is 'SAME' and stride 2 for sequences"):
        nn.Conv1D(4, 3, 3, 2, "SAME")(to_tensor(np.zeros(ROWS, "float32"), lod=LOD))
