"""Pictures with text, drawn by Pillow with its own font: what is written where is known, and no file is needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WORDS = (
    "operator kernel program tensor shape graph pass scope place layer model weight sequence batch channel stride "
    "Paris Tokyo Nairobi Lima Oslo Quito invoice receipt total number street garden window river mountain station "
    "ticket platform coffee bread market price open closed Monday Friday August 2024 1987 42 365 7,50 18:30 No. Ltd."
).split()


@dataclass(frozen=True)
class Picture:
    """A picture and its text.

    Attributes:
        image: uint8 [H, W, 3].
        lines: The text of each line, from top to bottom.
        boxes: [lines, 4] float: left, top, right and bottom of each line.
    """

    image: np.ndarray
    lines: list[str]
    boxes: np.ndarray


def pictures(count: int, seed: int = 0) -> list[Picture]:
    """Pictures of several sizes, colours and backgrounds; the same for the same seed."""
    return [_picture(np.random.default_rng((seed, i))) for i in range(count)]


def _picture(rng: np.random.Generator) -> Picture:
    from PIL import Image, ImageDraw, ImageFont

    height, width = (int(32 * n) for n in rng.integers(10, 21, 2))
    image = Image.fromarray(_background(rng, height, width))
    draw, ink = ImageDraw.Draw(image), tuple(int(v) for v in rng.integers(0, 90, 3))
    lines, boxes, top = [], [], int(rng.integers(8, 32))
    while True:
        font = ImageFont.load_default(int(rng.integers(14, 42)))
        text = " ".join(rng.choice(WORDS, int(rng.integers(1, 6))))
        left = int(rng.integers(8, 60))
        x0, y0, x1, y1 = draw.textbbox((left, top), text, font=font)
        if y1 + 8 > height:
            break
        if x1 + 8 <= width:
            draw.text((left, top), text, font=font, fill=ink)
            lines.append(text)
            boxes.append((x0, y0, x1, y1))
        top = int(y1 + rng.integers(8, 30))
    return Picture(np.asarray(image), lines, np.array(boxes, np.float64).reshape(-1, 4))


def _background(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Light paper: plain, darker to one side, or with grain."""
    paper = np.broadcast_to(rng.uniform(205, 255, 3), (height, width, 3)).copy()
    kind = int(rng.integers(3))
    if kind == 1:
        paper -= np.linspace(0, rng.uniform(20, 70), width)[None, :, None]
    elif kind == 2:
        paper += rng.normal(0, rng.uniform(2, 10), paper.shape)
    return np.clip(paper, 0, 255).astype(np.uint8)
