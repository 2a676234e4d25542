"""Global tensors with LoD on ranks that are threads: whole sequences go to each; numbers and LoD of one rank."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import nn, optimizer, parallel
from oprack.errors import CollectiveError
from oprack.testing.worlds import ThreadWorld

RNG = np.random.default_rng(0)
OFFSETS = [0, 3, 4, 4, 9, 11]  # five sequences, one of them empty
LOD = [OFFSETS]
X = RNG.standard_normal((11, 4)).astype("float32")
TAGS = RNG.integers(0, 3, (11, 1))


def tensor(array: np.ndarray, lod: Any = None, grad: bool = False) -> oprack.Tensor:
    return oprack.to_tensor(array, lod=lod, requires_grad=grad)


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.projection = self.create_parameter([4, 9])
        self.state = self.create_parameter([3, 9])
        self.crf = self.create_parameter([5, 3])

    def forward(self, x: oprack.Tensor, tags: oprack.Tensor) -> oprack.Tensor:
        h = F.gru(F.mul(x, self.projection), self.state)
        return F.linear_chain_crf(h, self.crf, tags).mean()


class Encoder(nn.Module):
    """Transformers on rows without padding."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0), 2)

    def forward(self, x: oprack.Tensor, tags: oprack.Tensor) -> oprack.Tensor:
        return nn.functional.cross_entropy(self.encoder(x), tags)


def losses(net: nn.Module, x: oprack.Tensor, tags: oprack.Tensor) -> list[float]:
    adam, found = optimizer.Adam(0.05, parameters=net.parameters()), []
    for _ in range(4):
        loss = net(x, tags)
        loss.backward()
        found.append(loss.item())
        adam.step()
        adam.clear_grad()
    return found


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("make", [Tagger, Encoder])
def test_a_net_trains_as_on_one_rank(make, ranks):
    oprack.seed(5)
    start = {name: value.numpy() for name, value in make().state_dict().items()}

    def rank(world: parallel.Communicator) -> list[float]:
        grid, net = parallel.placement(), make()
        net.set_state_dict(start)
        parallel.to_global(net, grid)
        parts = (tensor(v, LOD).to_global(grid, "S(0)", from_whole=True) for v in (X, TAGS))
        return losses(net, *parts)

    net = make()
    net.set_state_dict(start)
    alone = losses(net, tensor(X, LOD), tensor(TAGS, LOD))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no op gathers its inputs
        for found in ThreadWorld(ranks).run(rank):
            np.testing.assert_allclose(found, alone, atol=1e-5)


def test_ranks_bring_sequences_of_their_own_and_get_them_back():
    """Two levels: documents of sentences; a rank has whole documents."""
    lod = [[0, 2, 3, 3], [0, 1, 4, 6]]
    whole = np.arange(12, dtype="float32").reshape(6, 2)

    def rank(world: parallel.Communicator) -> Any:
        grid = parallel.placement()
        mine = ([[0, 2, 3], [0, 1, 4, 6]], whole) if world.rank == 0 else ([[0, 0], [0]], whole[:0])
        x = tensor(mine[1], mine[0]).to_global(grid, "S(0)")
        again = x.to_global(sbp="B").to_global(sbp="S(0)")
        assert again.to_local().lod == x.to_local().lod
        y = (x * 2).to_local()
        return x.shape, x.lod, x.numpy(), y.shape, y.lod, x.value.lod

    first, second = ThreadWorld(2).run(rank)
    for shape, offsets, array, _, _, value in (first, second):
        assert (shape, offsets, value) == ((6, 2), lod, lod)
        np.testing.assert_array_equal(array, whole)
    assert first[3:5] == ((6, 2), [[0, 2, 3], [0, 1, 4, 6]])
    assert second[3:5] == ((0, 2), [[0, 0], [0]])


def test_uneven_numbers_of_sequences_are_refused():
    def rank(world: parallel.Communicator) -> None:
        lod = [[0, 1, 2, 3]] if world.rank else [[0, 3]]
        tensor(X[:3], lod).to_global(parallel.placement(), "S(0)")

    with pytest.raises(CollectiveError, match=r"ranks bring \[1, 3\] sequences; expected \[2, 2\]"):
        ThreadWorld(2).run(rank)


CALLS = {
    "a row for each sequence meets its rows": lambda x: F.sequence_expand_as(F.sequence_pool(x, pooltype="SUM"), x) + x,
    "columns and rows": lambda x: F.reduce_sum(F.softmax(F.concat([x, x * 2], axis=1), axis=-1) * x[:, :1], dim=[1]),
    "the mean over all rows": lambda x: x.mean() + (x * x).sum(),
    "the kernel makes the LoD": lambda x: F.sequence_concat([x, x * 3]),
    "repeated sequences, other numbers on each rank": lambda x: F.sequence_expand(x, x, ref_level=0),
    "padding and back": lambda x: F.sequence_unpad(*F.sequence_pad(x * x, np.zeros(1, "float32"))) * x,
    "rows move": lambda x: F.transpose2(x, axis=[1, 0]),
    "lod_reset has no rule": lambda x: F.lod_reset(x * 2, target_lod=[0, 5, 11]),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("sbp", ["S(0)", "S(1)", "B"])
def test_values_gradients_and_lod_are_those_of_one_rank(name, sbp):
    call, weights = CALLS[name], {}

    def gradient(x: oprack.Tensor, leaf: oprack.Tensor) -> Any:
        y = call(x)
        shape = y.shape
        array = weights.setdefault(shape, np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape).astype("float32"))
        start = oprack.to_tensor(array)
        y.backward(start if y.layout is None else start.to_global(y.layout.placement, "B", from_whole=True))
        return y.numpy(), leaf.grad.numpy(), y.lod

    def rank(world: parallel.Communicator) -> Any:
        leaf = tensor(X, LOD, grad=True)
        return gradient(leaf.to_global(parallel.placement(), sbp, from_whole=True), leaf)

    leaf = tensor(X, LOD, grad=True)
    value, grad, lod = gradient(leaf, leaf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ops without a rule
        for found in ThreadWorld(2).run(rank):
            np.testing.assert_allclose(found[0], value, atol=1e-5)
            np.testing.assert_allclose(found[1], grad, atol=1e-5)
            assert found[2] == lod


def test_the_mean_of_sequences_of_which_a_rank_has_no_rows() -> None:
    rows = np.arange(6.0).reshape(3, 2)

    def rank(world: Any) -> Any:
        x = oprack.to_tensor(rows, lod=[[0, 3, 3]], requires_grad=True)
        y = F.mean(x.to_global(parallel.placement(), "S(0)", from_whole=True))
        y.backward()
        return y.numpy(), x.grad.numpy()

    for mean, gradient in ThreadWorld(2).run(rank):
        assert mean == 2.5
        np.testing.assert_allclose(gradient, np.full((3, 2), 1 / 6))


@pytest.mark.parametrize("ranks", [2, 3])
def test_rows_of_a_padded_batch_go_on_where_their_text_is(ranks: int) -> None:
    """A part's places are those of the whole batch; nothing is gathered."""
    kept = np.array([[1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 1, 0], [0, 0, 0]], bool)
    x, weight = RNG.standard_normal((5, 3, 4)), RNG.standard_normal((4, 4))

    def gradient(leaf: oprack.Tensor, padded: oprack.Tensor, mask: oprack.Tensor, weight: oprack.Tensor) -> Any:
        rows, index = F.unpad_by_mask(padded, mask)
        again = F.pad_by_index(F.tanh(F.mul(rows, weight)), index, mask)
        assert padded.layout is None or [t.layout.sbps[0].kind for t in (rows, index, again)] == ["S"] * 3
        (again * again).sum().backward()
        return again.numpy(), leaf.grad.numpy(), index.numpy(), index.lod

    def rank(world: parallel.Communicator) -> Any:
        leaf, grid = oprack.to_tensor(x, requires_grad=True), parallel.placement()
        parts = (t.to_global(grid, "S(0)", from_whole=True) for t in (leaf, oprack.to_tensor(kept)))
        return gradient(leaf, *parts, oprack.to_tensor(weight).to_global(grid, "B", from_whole=True))

    leaf = oprack.to_tensor(x, requires_grad=True)
    again, grad, *places = gradient(leaf, leaf, oprack.to_tensor(kept), oprack.to_tensor(weight))
    np.testing.assert_allclose(again, np.tanh(x @ weight) * kept[..., None])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for found in ThreadWorld(ranks).run(rank):
            np.testing.assert_allclose(found[0], again)
            np.testing.assert_allclose(found[1], grad)
            assert (found[2].tolist(), found[3]) == (places[0].tolist(), places[1])
