"""Pictures out of files, bounded before anything is decoded."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from oprack.errors import InvalidArgumentError, MemoryLimitError

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("JPEG", "PNG", "WEBP", "BMP")
MAX_PIXELS = 16 << 20


def decode_picture(data: bytes, max_pixels: int = MAX_PIXELS, formats: Sequence[str] = FORMATS) -> Image:
    """The picture in a file's bytes; needs Pillow (`pip install oprack-serve[pictures]`).

    A small file may hold a picture of any size. The size is read from its head and compared before memory is taken.

    Args:
        data: The file.
        max_pixels: Width times height, at most; a pixel takes 1 to 4 bytes.
        formats: Pillow's names of the formats that are read; of an animation, the first picture is.

    Returns:
        The decoded picture, in the mode of the file.

    Raises:
        InvalidArgumentError: It is no such file, or a damaged one; the server answers with 400.
        MemoryLimitError: It has more pixels; the server answers with 413.
    """
    from PIL import Image

    expected = f"a file in one of the formats {', '.join(formats)}"
    try:
        with warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning):
            picture = Image.open(io.BytesIO(data), formats=tuple(formats))
    except Image.DecompressionBombError as error:
        raise MemoryLimitError(f"the picture is too large: {error}; at most {max_pixels} pixels are taken") from None
    except (OSError, ValueError, SyntaxError) as error:
        raise InvalidArgumentError(f"{len(data)} bytes are no picture ({error}); expected {expected}") from None
    width, height = picture.size
    if width * height > max_pixels:
        raise MemoryLimitError(f"the picture has {width} x {height} pixels; at most {max_pixels} are taken")
    try:
        picture.load()
    except (OSError, ValueError, SyntaxError) as error:
        raise InvalidArgumentError(f"the picture is damaged: {error}; expected {expected}") from None
    return picture
