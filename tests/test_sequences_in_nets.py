"""Sequences go through eager nets: what keeps rows keeps their LoD, and an error about missing LoD says who lost it."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import layers, nn, to_tensor
from oprack.errors import InvalidArgumentError, InvalidLoDError
from oprack.tensor import LoDTensor

R = np.random.default_rng(0)
A = R.normal(size=(6, 4)).astype("float32")
LOD = [[0, 2, 2, 6]]


class Classifier(nn.Module):
    """As one writes it down first."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.middle, self.gru = nn.Embedding(10, 8), nn.Linear(8, 12), nn.GRU(12, 5)
        self.head = nn.Linear(5, 2)

    def forward(self, words: Any) -> Any:
        rows, _ = self.gru(self.middle(self.table(words)).relu())
        return F.sequence_pool(self.head(rows), pooltype="AVERAGE")


def test_an_obvious_classifier_runs_trains_and_is_saved(tmp_path: Any) -> None:
    oprack.seed(4)
    net = Classifier()
    words, labels = to_tensor([1, 2, 3, 4, 5, 6], lod=[[0, 2, 6]]), to_tensor([0, 1])
    adam = oprack.optimizer.Adam(0.05, parameters=net.parameters())
    losses = []
    for _ in range(30):
        loss = nn.functional.cross_entropy(net(words), labels)
        loss.backward()
        adam.step()
        adam.clear_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.1 < losses[0]
    oprack.jit.save(net, tmp_path / "net", input_spec=[oprack.InputSpec([None], "int64", lod_level=1)])
    scope = oprack.Scope()
    model = oprack.io.load_inference_model(tmp_path / "net", scope)
    fed = {model.feed_names[0]: LoDTensor(words.numpy(), words.lod)}
    ran = oprack.Executor().run(model.program, fed, model.fetch_names, scope)[0]
    np.testing.assert_allclose(ran, net(words).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bias", [None, False])
def test_linear_keeps_the_sequences(bias: Any) -> None:
    x, layer = to_tensor(A, lod=LOD), nn.Linear(4, 3, bias_attr=bias)
    weight, zero = layer.weight.numpy(), np.zeros(3, "float32")
    found = layer(x)
    assert found.lod == LOD and layer(to_tensor(A)).lod == []
    np.testing.assert_allclose(found.numpy(), A @ weight + (zero if bias is False else layer.bias.numpy()), rtol=1e-5)
    assert nn.functional.linear(x, layer.weight).lod == LOD
    wide = to_tensor(R.normal(size=(6, 2, 4)).astype("float32"), lod=LOD)
    assert layer(wide).lod == LOD
    np.testing.assert_allclose(layer(wide).numpy()[:, 1], layer(to_tensor(wide.numpy()[:, 1])).numpy(), rtol=1e-5)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _gru(net: Any, rows: np.ndarray, suffix: str) -> np.ndarray:
    """cuDNN's GRU, step by step."""
    w, u, b, c = (getattr(net, f"{n}_{suffix}").numpy() for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    h, found = np.zeros(u.shape[1]), []
    for x in rows:
        (r, z, n), (rh, zh, nh) = np.split(w @ x + b, 3), np.split(u @ h + c, 3)
        r, z = _sigmoid(r + rh), _sigmoid(z + zh)
        h = (1 - z) * np.tanh(n + r * nh) + z * h
        found.append(h)
    return np.array(found).reshape(-1, u.shape[1])


def test_linear_takes_arrays_and_refuses_lists_as_ops_do() -> None:
    layer, x = nn.Linear(3, 2), np.ones((2, 3), np.float32)
    want = x @ layer.weight.numpy() + layer.bias.numpy()
    for given in (x, oprack.to_tensor(x)):
        np.testing.assert_allclose(layer(given).numpy(), want, rtol=1e-6)
    with pytest.raises(InvalidArgumentError, match="expected a tensor or an array"):
        layer(x.tolist())


@pytest.mark.parametrize("time_major", [False, True])
def test_a_gru_runs_over_sequences(time_major: bool) -> None:
    net = nn.GRU(4, 3, direction="bidirect", time_major=time_major)
    out, last = net(to_tensor(A, lod=LOD))
    assert out.lod == LOD and last.shape == (2, 3, 3)
    for i, (start, end) in enumerate(zip(LOD[0], LOD[0][1:], strict=False)):
        ahead, back = _gru(net, A[start:end], "l0"), _gru(net, A[start:end][::-1], "l0_reverse")[::-1]
        np.testing.assert_allclose(out.numpy()[start:end], np.concatenate([ahead, back], 1), rtol=1e-4, atol=1e-6)
        if end > start:
            np.testing.assert_allclose(last.numpy()[:, i], [ahead[-1], back[0]], rtol=1e-4, atol=1e-6)
    two = [[0, 1, 3], *LOD]
    assert net(to_tensor(A, lod=two))[0].lod == two


def test_sequences_and_lengths_contradict_each_other() -> None:
    net = nn.LSTM(4, 3)
    with pytest.raises(InvalidArgumentError, match=r"LSTM: x has LoD and shape \[6, 4\], and there are lengths"):
        net(to_tensor(A, lod=LOD), None, to_tensor([2, 0, 4]))


def test_an_error_names_the_op_that_lost_the_lod() -> None:
    x, w = to_tensor(A, lod=LOD), oprack.Parameter(A.T.copy())
    expected = r"lod=\[\[0, ...\]\]\), or give .*\. Op matmul_v2 lost it: its input had LoD"
    with pytest.raises(InvalidLoDError, match=expected):
        F.sequence_pool((x @ w).relu() * 2)
    with pytest.raises(InvalidLoDError) as caught:
        F.sequence_pool(to_tensor(A))
    assert "lost it" not in str(caught.value)


def test_an_error_of_a_program_names_the_op_that_lost_the_lod() -> None:
    with oprack.program_guard(oprack.Program(), oprack.Program()):
        x = layers.data("x", [None, 4], lod_level=1)
        y = layers.relu(F.matmul_v2(x, layers.create_parameter([4, 3], "float32")))
        with pytest.raises(InvalidLoDError, match=r"declare it with lod_level=1.*\. Op matmul_v2 lost it: 'x' had LoD"):
            layers.sequence_pool(y, "sum")
