"""Draw examples/ocr_demo.png: Chinese and English lines of several sizes, one slanted and one upside down.

    python examples/render_demo_picture.py [--font FILE] [--out FILE]

Needs Pillow and a font with Chinese glyphs, by default Debian's fonts-noto-cjk.
The committed picture was made by this script.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

FONT = Path("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc")
SIMPLIFIED_CHINESE = 2  # index of the SC face in the collection
SIZE = (672, 480)
PAPER, INK, BLUE, RED = (250, 248, 240), (30, 30, 36), (24, 70, 140), (160, 40, 40)

# Each line: text, left, top, font size, colour, angle in degrees (counter-clockwise).
LINES = (
    ("oprack 算子机架", 32, 16, 44, BLUE, 0),
    ("每个算子都来自一个可以安装的包", 32, 92, 32, INK, 0),
    ("Every operator comes from a package.", 32, 144, 28, INK, 0),
    ("识别文字 Reading text 2026", 32, 196, 36, RED, 0),
    ("北京 上海 广州 深圳", 32, 264, 24, INK, 0),
    ("small print, 小字也要看得清楚", 32, 310, 18, INK, 0),
    ("slanted line 斜着写的一行", 330, 236, 28, BLUE, 9),
    ("这一行上下颠倒", 340, 370, 34, INK, 180),
    ("No compiler, no ABI.", 32, 400, 30, BLUE, 0),
)


def draw_line(
    picture: Image.Image,
    text: str,
    left: int,
    top: int,
    font: ImageFont.FreeTypeFont,
    colour: tuple[int, int, int],
    angle: int,
) -> None:
    """Draw one line with its (rotated) box's upper left corner at (left, top)."""
    x0, y0, x1, y1 = font.getbbox(text)
    mask = Image.new("L", (int(x1 - x0) + 8, int(y1 - y0) + 8))
    ImageDraw.Draw(mask).text((4 - x0, 4 - y0), text, font=font, fill=255)
    if angle:
        mask = mask.rotate(angle, expand=True, resample=Image.Resampling.BICUBIC)
    picture.paste(colour, (left, top), mask)


def render(font_file: Path) -> Image.Image:
    """The whole picture, RGB, 672 x 480."""
    picture = Image.new("RGB", SIZE, PAPER)
    for text, left, top, size, colour, angle in LINES:
        font = ImageFont.truetype(str(font_file), size, index=SIMPLIFIED_CHINESE)
        draw_line(picture, text, left, top, font, colour, angle)
    return picture


def main() -> None:
    """Command line: write the picture."""
    parser = argparse.ArgumentParser(description="Draw the picture that the OCR demo reads.")
    parser.add_argument("--font", type=Path, default=FONT)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("ocr_demo.png"))
    options = parser.parse_args()
    render(options.font).quantize(64, dither=Image.Dither.NONE).save(options.out, optimize=True)


if __name__ == "__main__":
    main()
