"""What stands around LAC's model: sentences become numbers of words and characters, and marks become words with a tag.

LAC reads words that it has a number for, and other words by their characters. Its small dictionary says how a sentence
falls apart: into as few words as possible.
"""

from __future__ import annotations

from itertools import pairwise
from math import log
from pathlib import Path

import numpy as np
from oprack import LoDTensor
from oprack.errors import InvalidArgumentError

MAX_CHARACTERS = 10_000


def rows(name, separator="\t"):
    """Pairs of a file of LAC's."""
    lines = Path(__file__).with_name(name).read_text("utf-8").splitlines()
    return [tuple(line.split(separator, 1)) for line in lines if separator in line]


NUMBERS = {word: int(number) for number, word in rows("word.dic")}
MARKS = {int(number): mark for number, mark in rows("tag.dic")}
NORMAL = dict(rows("q2b.dic"))  # full-width letters and traditional characters, and what the vocabulary has for them
COUNTS = {word: int(count) for word, count in rows("small_seg.dic", " ")}
PREFIXES = {word[:end] for word in COUNTS for end in range(1, len(word) + 1)}
COST = log(sum(COUNTS.values()))  # of a word


def decoded(text):
    """The sentences of BYTES."""
    try:
        sentences = [sentence.decode() for sentence in text]
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"the text is not in UTF-8: {error}") from None
    if sum(map(len, sentences)) > MAX_CHARACTERS:
        raise InvalidArgumentError(f"the sentences have more than {MAX_CHARACTERS} characters together")
    return sentences


def words_of(sentence):
    """The sentence in as few words of the dictionary as possible; letters and digits that are none stay together."""
    best = [(0.0, 0)] * (len(sentence) + 1)  # of what begins at a character: its worth, and where its first word ends
    for start in reversed(range(len(sentence))):
        ends, end = {start + 1}, start + 1
        while end <= len(sentence) and sentence[start:end] in PREFIXES:
            if sentence[start:end] in COUNTS:
                ends.add(end)
            end += 1
        known = {end: sentence[start:end] in COUNTS for end in ends}
        best[start] = max((log(e - start if known[e] else 1) - COST + best[e][0], e) for e in ends)
    words, start, together = [], 0, False
    while start < len(sentence):
        word = sentence[start : best[start][1]]
        letter = len(word) == 1 and word.isascii() and word.isalnum()
        if letter and together:
            words[-1] += word
        else:
            words.append(word)
        start, together = start + len(word), letter
    return words


def number(text):
    """Sentences -> numbers of their words and characters, each sentence a sequence, and how long these are."""
    numbers, lengths, offsets = [], [], [0]
    for sentence in decoded(text):
        for word in words_of(sentence):
            units = [word] if word in NUMBERS else list(word)
            numbers += [NUMBERS.get(NORMAL.get(unit, unit), NUMBERS["OOV"]) for unit in units]
            lengths += map(len, units)
        offsets.append(len(numbers))
    return LoDTensor(np.array(numbers, np.int64).reshape(-1, 1), [offsets]), np.array(lengths, np.int64)


def join(text, marks, lengths):
    """Sentences, marks and lengths of their units -> words and their tags, each sentence a sequence."""
    words, tags, offsets = [], [], [0]
    for sentence, (start, end) in zip(decoded(text), pairwise(marks.lod[0]), strict=True):
        at = 0
        for mark, length in zip(marks.array[start:end].reshape(-1).tolist(), lengths[start:end].tolist(), strict=True):
            tag, _, place = MARKS[mark].rpartition("-")
            unit, at = sentence[at : at + length], at + length
            if place in ("B", "S") or len(words) == offsets[-1]:
                words.append(unit)
                tags.append(tag)
            else:
                words[-1] += unit
                tags[-1] = tag
        offsets.append(len(words))
    return LoDTensor(np.array(words, object), [offsets]), LoDTensor(np.array(tags, object), [offsets])
