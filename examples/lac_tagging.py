"""Tag Chinese text with Baidu's LAC models, saved by Paddle 1.x: words with part of speech, or words alone.

    python examples/lac_tagging.py [TEXT ...] [--model lac|seg] [--json]

Each sentence is a sequence of characters of its own length: the batch is one tensor with LoD offsets, which the
model's embedding, four GRUs and CRF carry through. The models come from the LAC 2.1.2 source archive on PyPI
(examples/fetch_lac.py); no code of that package runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import pairwise
from pathlib import Path

import fetch_lac
import numpy as np
from oprack import inference

SENTENCES = (
    "每个算子都来自一个可以安装的包",
    "今天下午我们去北京大学听一场关于机器学习的报告",
    "李先生和他的孩子在公园里放风筝",
)


def _table(path: Path) -> list[tuple[str, str]]:
    """Pairs of a tab-separated file; a lone line end is a key that the file spells so."""
    pairs = (line.rstrip("\n").split("\t", 1) for line in path.read_text(encoding="utf-8").splitlines())
    return [(p[0], p[1]) for p in pairs if len(p) == 2]


class Tagger:
    """A LAC model folder: `model` as saved by Paddle, and `conf` with its vocabularies."""

    def __init__(self, folder: Path) -> None:
        conf = folder / "conf"
        self._ids = {char: int(number) for number, char in _table(conf / "word.dic")}
        self._tags = {int(number): tag for number, tag in _table(conf / "tag.dic")}
        # traditional characters and full-width letters are read as what the vocabulary has instead
        self._normal = dict(_table(conf / "q2b.dic"))
        self._unknown = self._ids["OOV"]
        self._predictor = inference.create_predictor(inference.Config(str(folder / "model")))

    def ids(self, sentence: str) -> list[int]:
        """Numbers of the characters."""
        return [self._ids.get(self._normal.get(c, c), self._unknown) for c in sentence]

    def __call__(self, sentences: list[str]) -> list[list[tuple[str, str]]]:
        """(word, tag) pairs of each sentence; a tag ends in -B or -S where a word begins, else in -I or -E."""
        ids = [self.ids(s) for s in sentences]
        offsets = [0, *np.cumsum([len(x) for x in ids]).tolist()]
        words = self._predictor.get_input_handle(self._predictor.get_input_names()[0])
        words.copy_from_cpu(np.array([i for x in ids for i in x], np.int64).reshape(-1, 1))
        words.set_lod([offsets])
        self._predictor.run()
        tags = self._predictor.get_output_handle(self._predictor.get_output_names()[0]).copy_to_cpu().reshape(-1)
        return [
            self._words(sentence, [self._tags[int(t)] for t in tags[a:b]])
            for sentence, (a, b) in zip(sentences, pairwise(offsets), strict=True)
        ]

    @staticmethod
    def _words(sentence: str, tags: list[str]) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for char, tag in zip(sentence, tags, strict=True):
            kind = tag.rsplit("-", 1)[0]
            if tag.endswith(("-I", "-E")) and found:
                found[-1] = (found[-1][0] + char, found[-1][1])
            else:
                found.append((char, kind))
        return found


def main() -> int:
    """Command line: print each sentence with its tags."""
    parser = argparse.ArgumentParser(description="Tag Chinese text with models saved by Paddle 1.x.")
    parser.add_argument("text", nargs="*", default=list(SENTENCES))
    parser.add_argument("--model", choices=["lac", "seg"], default="lac", help="lac: parts of speech; seg: words alone")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    tagged = Tagger(fetch_lac.fetch() / f"{options.model}_model")(options.text)
    if options.json:
        print(json.dumps(tagged, ensure_ascii=False))
        return 0
    for words in tagged:
        print("  ".join(word if options.model == "seg" else f"{word}/{tag}" for word, tag in words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
