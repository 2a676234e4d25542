"""Attention and transformers on rows of sequences: as on each sequence padded, in generation, compiled and saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import nn, to_tensor
from oprack.errors import InvalidArgumentError
from oprack.inference import Config, create_predictor
from oprack.tensor import LoDTensor

WIDTH, HEADS = 8, 2
LENGTHS, PLACES = [0, 3, 5, 0, 1, 5], [2, 3, 0, 4, 3, 1]
rng = np.random.default_rng(1)


def rows_of(lengths: list[int]) -> tuple[np.ndarray, list[int]]:
    return rng.standard_normal((sum(lengths), WIDTH)).astype("float32"), np.cumsum([0, *lengths]).tolist()


X, OFFSETS = rows_of(LENGTHS)
MEMORY, MEMORY_OFFSETS = rows_of(PLACES)


def layer(kind: str, before: bool) -> Any:
    return getattr(nn, f"Transformer{kind}Layer")(WIDTH, HEADS, 16, 0.0, "gelu", normalize_before=before)


MODULES: dict[str, tuple[Callable[[], Any], dict[str, bool], bool]] = {
    "attention": (lambda: nn.MultiHeadAttention(WIDTH, HEADS), {}, False),
    "causal attention": (lambda: nn.MultiHeadAttention(WIDTH, HEADS), {"is_causal": True}, False),
    "cross attention": (lambda: nn.MultiHeadAttention(WIDTH, HEADS), {}, True),
    "encoder layer": (lambda: layer("Encoder", False), {}, False),
    "encoder": (lambda: nn.TransformerEncoder(layer("Encoder", True), 2, nn.LayerNorm(WIDTH)), {}, False),
    "causal encoder": (lambda: nn.TransformerEncoder(layer("Encoder", False), 2), {"is_causal": True}, False),
    "decoder layer": (lambda: layer("Decoder", False), {"tgt_is_causal": True}, True),
    "decoder": (lambda: nn.TransformerDecoder(layer("Decoder", True), 2), {}, True),
}


def each() -> Iterator[tuple[np.ndarray, np.ndarray, slice]]:
    """The rows of each sequence that has some, and of its memory; a sequence without memory is left out."""
    for (a, b), (c, d) in zip(pairwise(OFFSETS), pairwise(MEMORY_OFFSETS), strict=True):
        if b > a and d > c:
            yield X[a:b], MEMORY[c:d], slice(a, b)


def gradients(net: Any) -> dict[str, np.ndarray]:
    found = {name: p.grad.numpy().copy() for name, p in net.named_parameters() if p.grad is not None}
    net.clear_gradients()
    return found


@pytest.mark.parametrize("name", MODULES)
def test_rows_are_those_of_the_padded_module_on_each_sequence(name: str) -> None:
    make, settings, crossed = MODULES[name]
    oprack.seed(4)
    net = make()
    weights = rng.standard_normal(X.shape).astype("float32")
    counted = np.zeros_like(X)
    for _, _, places in each():
        counted[places] = weights[places]
    out = net(to_tensor(X, lod=[OFFSETS]), *[to_tensor(MEMORY, lod=[MEMORY_OFFSETS])] * crossed, **settings)
    assert out.lod == [OFFSETS] and np.isfinite(out.numpy()).all()
    (out * to_tensor(counted)).sum().backward()
    found = gradients(net)
    total = 0.0
    for x, memory, places in each():
        alone = net(to_tensor(x[None]), *[to_tensor(memory[None])] * crossed, **settings)
        np.testing.assert_allclose(out.numpy()[places], alone.numpy()[0], rtol=1e-4, atol=2e-6)
        total = (alone * to_tensor(weights[places])).sum() + total
    total.backward()
    wanted = gradients(net)
    assert wanted.keys() == found.keys() and wanted
    for parameter, value in wanted.items():
        np.testing.assert_allclose(found[parameter], value, rtol=2e-3, atol=2e-5, err_msg=parameter)


def test_a_whole_transformer_takes_rows() -> None:
    oprack.seed(4)
    net = nn.Transformer(WIDTH, HEADS, 1, 1, 16, 0.0)
    out = net(to_tensor(MEMORY, lod=[MEMORY_OFFSETS]), to_tensor(X, lod=[OFFSETS]), tgt_is_causal=True)
    assert out.lod == [OFFSETS]
    for x, memory, places in each():
        mask = net.generate_square_subsequent_mask(len(x))
        alone = net(to_tensor(memory[None]), to_tensor(x[None]), tgt_mask=mask)
        np.testing.assert_allclose(out.numpy()[places], alone.numpy()[0], rtol=1e-4, atol=2e-6)


def test_dropout_is_drawn_in_training_alone() -> None:
    net = nn.TransformerEncoderLayer(WIDTH, HEADS, 16, 0.5)
    x = to_tensor(X, lod=[OFFSETS])
    assert not np.array_equal(net(x).numpy(), net(x).numpy())
    net.eval()
    np.testing.assert_array_equal(net(x).numpy(), net(x).numpy())
    traced = oprack.to_program(net, [oprack.InputSpec([None, WIDTH], name="x", lod_level=1)])
    assert "dropout" not in [op.type for op in traced.program.desc.blocks[0].ops]


def test_a_mask_is_refused_with_what_to_say_instead() -> None:
    net = nn.MultiHeadAttention(WIDTH, HEADS)
    with pytest.raises(InvalidArgumentError, match=r"attn_mask has shape \[5, 5\].*leave it out, and say is_caus"):
        net(to_tensor(X, lod=[OFFSETS]), attn_mask=to_tensor(np.zeros((5, 5), "float32")))


def decoder() -> tuple[Any, Any]:
    oprack.seed(6)
    net = nn.TransformerDecoder(layer("Decoder", True), 2, nn.LayerNorm(WIDTH))
    net.eval()
    return net, to_tensor(MEMORY, lod=[MEMORY_OFFSETS])


def test_generation_appends_to_the_keys_of_each_sequence() -> None:
    """What comes in steps of some rows each is what comes at once."""
    net, memory = decoder()
    parts = [X[a:b] for a, b in pairwise(OFFSETS)]
    steps = [[0, 2, 1, 0, 1, 3], [0, 1, 0, 0, 0, 1], [0, 0, 4, 0, 0, 1]]
    assert np.sum(steps, axis=0).tolist() == LENGTHS
    cache, done, made = net.gen_cache(memory), [0] * len(parts), [[] for _ in parts]
    for counts in steps:
        rows = np.concatenate([p[at : at + n] for p, at, n in zip(parts, done, counts, strict=True)])
        offsets = np.cumsum([0, *counts]).tolist()
        out, cache = net(to_tensor(rows, lod=[offsets]), memory, cache=cache, tgt_is_causal=True)
        for sequence, (a, b) in enumerate(pairwise(offsets)):
            made[sequence].append(out.numpy()[a:b])
        done = [at + n for at, n in zip(done, counts, strict=True)]
    assert cache[0][0].k.lod == [OFFSETS]
    whole = net(to_tensor(X, lod=[OFFSETS]), memory, tgt_is_causal=True)
    np.testing.assert_allclose(
        np.concatenate([p for of_one in made for p in of_one]), whole.numpy(), rtol=1e-4, atol=2e-6
    )


def test_a_step_of_generation_is_compiled_with_keys_and_values_as_arguments() -> None:
    oprack.seed(6)
    net = nn.MultiHeadAttention(WIDTH, HEADS)

    @oprack.jit
    def step(x: Any, k: Any, v: Any) -> Any:
        out, cache = net(x, cache=nn.KeyValueCache(k, v), is_causal=True)
        return out, cache.k, cache.v

    rows = to_tensor(X, lod=[OFFSETS])
    whole = net(rows, is_causal=True).numpy()
    k = v = to_tensor(np.zeros((0, HEADS, WIDTH // HEADS), "float32"), lod=[[0] * len(OFFSETS)])
    for t in range(max(LENGTHS)):
        places = [a + t for a, b in pairwise(OFFSETS) if a + t < b]
        offsets = np.cumsum([0, *(a + t < b for a, b in pairwise(OFFSETS))])
        out, k, v = step(to_tensor(X[places], lod=[offsets]), k, v)
        np.testing.assert_allclose(out.numpy(), whole[places], rtol=1e-4, atol=2e-6)
    assert k.lod == [OFFSETS]


def test_padded_batches_generate_as_well() -> None:
    net, _ = decoder()
    x, memory = (to_tensor(rng.standard_normal((2, n, WIDTH)).astype("float32")) for n in (5, 3))
    cache, made = net.gen_cache(memory), []
    for start, stop in ((0, 2), (2, 3), (3, 5)):
        out, cache = net(x[:, start:stop], memory, cache=cache, tgt_is_causal=True)
        made.append(out.numpy())
    whole = net(x, memory, tgt_mask=nn.Transformer.generate_square_subsequent_mask(5))
    np.testing.assert_allclose(np.concatenate(made, 1), whole.numpy(), rtol=1e-4, atol=2e-6)


def test_finished_sequences_leave_and_beams_copy_what_was_seen() -> None:
    """A cache of chosen sequences goes on as if they had always been the batch."""
    net, memory = decoder()
    whole = net(to_tensor(X, lod=[OFFSETS]), memory, tgt_is_causal=True)
    first, chosen = [min(n, 2) for n in LENGTHS], [5, 2, 2]
    parts = [X[a:b] for a, b in pairwise(OFFSETS)]
    rows = np.concatenate([p[:n] for p, n in zip(parts, first, strict=True)])
    prompt = to_tensor(rows, lod=[np.cumsum([0, *first])])
    _, cache = net(prompt, memory, cache=net.gen_cache(memory), tgt_is_causal=True)
    index = to_tensor(chosen)
    cache = [tuple(kept.select(index) for kept in of_layer) for of_layer in cache]
    rest = [parts[i][2:] for i in chosen]
    offsets = np.cumsum([0, *map(len, rest)])
    out, _ = net(
        to_tensor(np.concatenate(rest), lod=[offsets]),
        F.sequence_select(memory, index),
        cache=cache,
        tgt_is_causal=True,
    )
    wanted = [whole.numpy()[OFFSETS[i] + 2 : OFFSETS[i + 1]] for i in chosen]
    np.testing.assert_allclose(out.numpy(), np.concatenate(wanted), rtol=1e-4, atol=2e-6)


class Reader(nn.Module):
    """Words to a vector for each text: embedding with learned positions, encoder, mean."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(20, WIDTH), nn.Embedding(9, WIDTH)
        self.encoder = nn.TransformerEncoder(layer("Encoder", False), 2)
        self.say = nn.Linear(WIDTH, 3)

    def forward(self, words: Any) -> Any:
        x = self.words(words) + self.places(F.sequence_positions(words))
        return self.say(F.sequence_pool(self.encoder(x), pooltype="AVERAGE"))


def test_an_encoder_is_trained_compiled_saved_and_run_without_its_code(tmp_path: Path) -> None:
    oprack.seed(2)
    net, words = Reader(), rng.integers(0, 20, sum(LENGTHS))
    x, labels = to_tensor(words, lod=[OFFSETS]), to_tensor([0, 1, 2, 0, 1, 2])
    adam = oprack.optimizer.Adam(0.02, parameters=net.parameters())
    step, losses = oprack.jit(net), []
    for _ in range(40):
        loss = nn.functional.cross_entropy(step(x), labels)
        loss.backward()
        adam.step()
        adam.clear_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.6 < losses[0]  # two texts have no words, and other labels
    net.eval()
    wanted = net(x).numpy()
    np.testing.assert_allclose(oprack.jit(net)(x).numpy(), wanted, rtol=1e-4, atol=1e-5)
    oprack.jit.save(net, tmp_path / "net", input_spec=[oprack.InputSpec([None], "int64", lod_level=1)])
    scope = oprack.Scope()
    model = oprack.io.load_inference_model(tmp_path / "net", scope)
    feeds = {model.feed_names[0]: LoDTensor(words, [OFFSETS])}
    predictor = create_predictor(Config(str(tmp_path / "net.pdmodel"), str(tmp_path / "net.pdiparams")))
    handle = predictor.get_input_handle(predictor.get_input_names()[0])
    handle.copy_from_cpu(words)
    handle.set_lod([OFFSETS])
    predictor.run()
    ran = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
    np.testing.assert_allclose(ran, wanted, rtol=1e-4, atol=1e-5)
    for prepared in (False, True):
        ran = oprack.Executor(prepared=prepared).run(model.program, feeds, model.fetch_names, scope)[0]
        np.testing.assert_allclose(ran, wanted, rtol=1e-4, atol=1e-5)


def test_rotary_positions_make_scores_of_distances_in_each_sequence() -> None:
    """Behind a prompt that is cached they go on."""
    q = to_tensor(rng.standard_normal((9, 2, 4)), lod=[[0, 4, 9]])
    first = to_tensor(q.numpy()[[0, 1, 4]], lod=[[0, 2, 3]])
    rest = to_tensor(q.numpy()[[2, 3, 5, 6, 7, 8]], lod=[[0, 2, 6]])
    turned = F.rotary_embedding(q, F.sequence_positions(q)).numpy()
    behind = F.rotary_embedding(rest, F.sequence_positions(rest, first)).numpy()
    np.testing.assert_allclose(behind, turned[[2, 3, 5, 6, 7, 8]], rtol=1e-12)
    alone = F.rotary_embedding(to_tensor(q.numpy()[4:]), to_tensor(np.arange(100, 105))).numpy()
    scores = np.einsum("ihd,jhd->hij", turned[4:], turned[4:])
    np.testing.assert_allclose(np.einsum("ihd,jhd->hij", alone, alone), scores, rtol=1e-9, atol=1e-12)
