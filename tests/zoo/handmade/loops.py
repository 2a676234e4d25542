"""Nets with a loop in their graph: generation, beam search; and others for text and signals."""

from __future__ import annotations

from typing import Any

import paddle
import paddle.nn.functional as F
from paddle import nn


class Block(nn.Layer):
    """A decoder's layer with a cache of keys and values."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.wide, self.narrow = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.heads, self.width = heads, size // heads

    def forward(self, x: Any, keys: Any, values: Any, mask: Any) -> Any:
        y = self.qkv(self.norm(x)).reshape([0, 0, 3, self.heads, self.width]).transpose([2, 0, 3, 1, 4])
        keys, values = paddle.concat([keys, y[1]], axis=2), paddle.concat([values, y[2]], axis=2)
        scores = paddle.matmul(y[0] * self.width**-0.5, keys, transpose_y=True) + mask
        y = paddle.matmul(F.softmax(scores), values).transpose([0, 2, 1, 3]).flatten(2)
        x = x + self.out(y)
        return x + self.narrow(F.gelu(self.wide(self.norm2(x)))), keys, values


class GptGenerate(nn.Layer):
    """Reads a prompt, then says the likeliest word in each round."""

    def __init__(self, words: int = 60, size: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, size), nn.Embedding(32, size)
        self.first, self.second = Block(size, heads), Block(size, heads)
        self.norm, self.heads, self.width = nn.LayerNorm(size), heads, size // heads

    def step(self, ids: Any, start: Any, a: Any, b: Any, c: Any, d: Any, mask: Any) -> Any:
        """Scores of the next word, and the caches."""
        x = self.words(ids) + self.places(paddle.arange(ids.shape[1], dtype="int64") + start)
        x, a, b = self.first(x, a, b, mask)
        x, c, d = self.second(x, c, d, mask)
        return paddle.matmul(self.norm(x[:, -1]), self.words.weight, transpose_y=True), a, b, c, d

    def forward(self, ids: Any, steps: Any) -> Any:
        empty = paddle.zeros([paddle.shape(ids)[0], self.heads, 0, self.width])
        mask = paddle.triu(paddle.full([paddle.shape(ids)[1], paddle.shape(ids)[1]], -1e4), 1)
        start = paddle.zeros([1], "int64")
        scores, a, b, c, d = self.step(ids, start, empty, empty, empty, empty, mask)
        word = scores.argmax(-1, keepdim=True)
        said = paddle.concat([ids, word], axis=1)
        i = paddle.ones([1], "int64")
        nothing = paddle.zeros([1, 1])
        while i < steps:
            start = paddle.shape(said)[1:2].astype("int64") - 1
            scores, a, b, c, d = self.step(word, start, a, b, c, d, nothing)
            word = scores.argmax(-1, keepdim=True)
            said = paddle.concat([said, word], axis=1)
            i = i + 1
        return said, scores


class T5Generate(nn.Layer):
    """Greedy generation with paddlenlp's T5, its encoder run once."""

    def __init__(self) -> None:
        super().__init__()
        from paddlenlp.transformers import T5Config, T5ForConditionalGeneration

        config = T5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0)
        self.net = T5ForConditionalGeneration(config)

    def forward(self, ids: Any, steps: Any) -> Any:
        seen = self.net.t5.encoder(input_ids=ids)
        seen = seen[0] if isinstance(seen, tuple) else seen
        said = paddle.zeros([paddle.shape(ids)[0], 1], "int64")
        i = paddle.zeros([1], "int64")
        while i < steps:
            scores = self.net(encoder_output=(seen,), decoder_input_ids=said, use_cache=False)
            scores = scores[0] if isinstance(scores, tuple) else scores
            said = paddle.concat([said, scores[:, -1].argmax(-1, keepdim=True)], axis=1)
            i = i + 1
        return said


class TranslateBeam(nn.Layer):
    """A GRU reads the sentence, and another writes a translation by beam search with attention."""

    def __init__(self, words: int = 60, size: int = 24, beams: int = 3) -> None:
        super().__init__()
        self.words, self.said = nn.Embedding(words, size), nn.Embedding(words, size)
        self.encoder, self.cell = nn.GRU(size, size), nn.GRUCell(2 * size, size)
        self.out, self.count, self.beams = nn.Linear(size, words), words, beams

    def forward(self, ids: Any, steps: Any) -> Any:
        seen, last = self.encoder(self.words(ids))
        batch = paddle.shape(ids)[0]
        seen = seen.unsqueeze(1).expand([-1, self.beams, -1, -1]).flatten(0, 1)
        state = last[0].unsqueeze(1).expand([-1, self.beams, -1]).flatten(0, 1)
        total = paddle.to_tensor([[0.0] + [-1e9] * (self.beams - 1)]).expand([batch, self.beams])
        word = paddle.ones([batch * self.beams], "int64")
        first = (paddle.arange(batch, dtype="int64") * self.beams).unsqueeze(1)
        i = paddle.zeros([1], "int64")
        words = paddle.tensor.create_array("int64")
        parents = paddle.tensor.create_array("int64")
        while i < steps:
            weight = F.softmax(paddle.matmul(seen, state.unsqueeze(-1)), axis=1)
            state, _ = self.cell(paddle.concat([self.said(word), (weight * seen).sum(1)], -1), state)
            scores = F.log_softmax(self.out(state)).reshape([-1, self.beams, self.count]) + total.unsqueeze(-1)
            total, chosen = paddle.topk(scores.flatten(1), self.beams)
            parent, word = chosen // self.count, (chosen % self.count).flatten()
            state = paddle.gather(state, (parent + first).flatten())
            paddle.tensor.array_write(word.reshape([-1, self.beams]), i, words)
            paddle.tensor.array_write(parent, i, parents)
            i = i + 1
        words, _ = paddle.tensor.manipulation.tensor_array_to_tensor(words, axis=0, use_stack=True)
        parents, _ = paddle.tensor.manipulation.tensor_array_to_tensor(parents, axis=0, use_stack=True)
        return F.gather_tree(words, parents), total


class Tagger(nn.Layer):
    """Words to tags: a bidirectional GRU and the best path of a CRF."""

    def __init__(self, words: int = 60, size: int = 16, tags: int = 7) -> None:
        super().__init__()
        self.words, self.gru = nn.Embedding(words, size), nn.GRU(size, size, direction="bidirect")
        self.out = nn.Linear(2 * size, tags)
        self.moves = self.create_parameter([tags, tags])
        self.decoder = paddle.text.ViterbiDecoder(self.moves, include_bos_eos_tag=False)

    def forward(self, ids: Any, lengths: Any) -> Any:
        y, _ = self.gru(self.words(ids), sequence_length=lengths)
        return self.decoder(self.out(y), lengths)


class Spectral(nn.Layer):
    """A long convolution, as a product of spectra."""

    def __init__(self, size: int = 12) -> None:
        super().__init__()
        self.mix, self.filter = nn.Linear(size, size), self.create_parameter([1, 9, size])

    def forward(self, x: Any) -> Any:
        n = x.shape[1]
        spectrum = paddle.fft.rfft(x, axis=1)
        shape = paddle.fft.rfft(paddle.concat([self.filter, paddle.zeros([1, 7, 12])], axis=1), axis=1)
        energy = paddle.abs(spectrum)
        y = paddle.fft.irfft(spectrum, axis=1) + self.mix(paddle.real(paddle.fft.fft(x, axis=1)))
        return y, energy, paddle.abs(shape).sum() + n * 0.0
