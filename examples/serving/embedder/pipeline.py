"""What stands around the encoder: texts become numbers of their tokens, and means of rows become vectors of length 1.

A text is a sequence of its own length, so none is padded, neither here nor where the server joins requests.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from oprack import LoDTensor
from oprack.errors import InvalidArgumentError
from tokenizers import Tokenizer

MAX_CHARACTERS = 100_000
TOKENIZER = Tokenizer.from_file(str(Path(__file__).with_name("tokenizer.json")))


def tokens(text):
    """Texts of BYTES -> numbers of their tokens, each text a sequence; what is too long for the encoder is cut off."""
    try:
        texts = [t.decode() for t in text]
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"the text is not in UTF-8: {error}") from None
    if sum(map(len, texts)) > MAX_CHARACTERS:
        raise InvalidArgumentError(f"the texts have more than {MAX_CHARACTERS} characters together")
    found = [encoding.ids for encoding in TOKENIZER.encode_batch(texts)]
    offsets = np.cumsum([0, *map(len, found)]).tolist()
    return LoDTensor(np.array([n for ids in found for n in ids], np.int64), [offsets])


def normal(means):
    """Means of rows [texts, width] -> the same directions with length 1; a text without tokens stays 0."""
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    return means / np.maximum(lengths, 1e-12)
