"""paddle.vision.transforms: functions of pictures, which are PIL images, arrays or tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oprack


def _is_pil(img: Any) -> bool:
    return hasattr(img, "getbands")


def _array(img: Any) -> Any:
    """A picture as an array, channels last."""
    if isinstance(img, oprack.Tensor):
        return np.asarray(img).transpose(1, 2, 0)
    return np.asarray(img)


def _as(img: Any, array: Any) -> Any:
    """An array as a picture of the same kind as another one."""
    if isinstance(img, oprack.Tensor):
        return oprack.to_tensor(np.ascontiguousarray(array.transpose(2, 0, 1)).astype(img.dtype))
    if _is_pil(img):
        from PIL import Image

        return Image.fromarray(array)
    return array


def size_of(img: Any) -> tuple[int, int]:
    """Height and width of a picture."""
    return (img.size[1], img.size[0]) if _is_pil(img) else _array(img).shape[:2]


def _pil(img: Any) -> Any:
    from PIL import Image

    array = _array(img)
    return Image.fromarray(array[..., 0] if array.ndim == 3 and array.shape[-1] == 1 else array)


_FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}


def to_tensor(pic: Any, data_format: str = "CHW") -> Any:
    """A picture as a tensor, bytes as numbers from 0 to 1."""
    array = _array(pic)
    array = array[:, :, None] if array.ndim == 2 else array
    array = array.astype("float32") / 255.0 if array.dtype == np.uint8 else array
    return oprack.to_tensor(np.ascontiguousarray(array.transpose(2, 0, 1) if data_format == "CHW" else array))


def normalize(img: Any, mean: Any, std: Any, data_format: str = "CHW", to_rgb: bool = False) -> Any:
    """Each channel less its mean, over its deviation."""
    shape = (-1, 1, 1) if data_format == "CHW" else (1, 1, -1)
    mean, std = (np.asarray(v, "float32").reshape(shape) for v in (mean, std))
    if isinstance(img, oprack.Tensor):
        return (img - oprack.to_tensor(mean)) / oprack.to_tensor(std)
    array = np.asarray(img).astype("float32")
    if to_rgb:
        array = array[::-1] if data_format == "CHW" else array[..., ::-1]
    return (array - mean) / std


def resize(img: Any, size: Any, interpolation: str = "bilinear") -> Any:
    """Another size; a number is that of the shorter side."""
    h, w = size_of(img)
    if isinstance(size, int):
        if min(h, w) == size:
            return img
        new = (size, int(size * w / h)) if h < w else (int(size * h / w), size)
    else:
        new = (int(size[0]), int(size[1]))
    if isinstance(img, oprack.Tensor):
        return oprack.nn.functional.interpolate(img.unsqueeze(0), size=list(new), mode=interpolation).squeeze(0)
    found = _pil(img).resize((new[1], new[0]), _FILTERS[interpolation])
    if _is_pil(img):
        return found
    array = np.asarray(found)
    return array[..., None] if np.asarray(img).ndim == 3 and array.ndim == 2 else array


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """A part of a picture."""
    return _as(img, _array(img)[top : top + height, left : left + width])


def center_crop(img: Any, output_size: Any) -> Any:
    """The middle of a picture."""
    th, tw = (output_size, output_size) if isinstance(output_size, int) else output_size
    h, w = size_of(img)
    return crop(img, round((h - th) / 2.0), round((w - tw) / 2.0), th, tw)


def hflip(img: Any) -> Any:
    """Left and right exchanged."""
    return _as(img, np.ascontiguousarray(_array(img)[:, ::-1]))


def vflip(img: Any) -> Any:
    """Top and bottom exchanged."""
    return _as(img, np.ascontiguousarray(_array(img)[::-1]))


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """A border: left, top, right, bottom."""
    sides = [padding] * 4 if isinstance(padding, int) else list(padding) * (2 if len(padding) == 2 else 1)
    left, top, right, bottom = sides
    array = _array(img)
    widths: Any = [(top, bottom), (left, right), *[(0, 0)] * (array.ndim - 2)]
    mode: Any = {"constant": "constant", "edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}[padding_mode]
    if mode != "constant":
        return _as(img, np.pad(array, widths, mode))
    if isinstance(fill, int | float):
        return _as(img, np.pad(array, widths, mode, constant_values=fill))
    layers = [np.pad(array[..., i], widths[:2], mode, constant_values=f) for i, f in enumerate(fill)]
    return _as(img, np.stack(layers, -1))


def erase(img: Any, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Any:
    """A rectangle, filled with a value."""
    if isinstance(img, oprack.Tensor):
        array = np.array(img)
        array[..., i : i + h, j : j + w] = np.asarray(v)
        return oprack.to_tensor(array)
    array = np.array(_array(img))
    array[i : i + h, j : j + w] = np.asarray(v)
    return _as(img, array)


def to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Without colours."""
    array = _array(img)
    gray = array if array.ndim == 2 else (array[..., :3].astype("float32") @ np.array([0.299, 0.587, 0.114], "float32"))
    if _is_pil(img):
        gray = np.asarray(img.convert("L"))
    gray = gray.astype(array.dtype)
    if num_output_channels == 1:
        return _as(img, gray if _is_pil(img) or array.ndim == 2 else gray[..., None])
    return _as(img, np.stack([gray] * num_output_channels, -1))


def _blended(img: Any, other: Any, factor: float) -> Any:
    array = _array(img)
    mixed = array.astype("float32") * factor + other * (1 - factor)
    if array.dtype == np.uint8:
        return _as(img, np.clip(mixed, 0, 255).astype(np.uint8))
    return _as(img, np.clip(mixed, 0, 1).astype(array.dtype))


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Brighter, or darker."""
    return _blended(img, 0.0, brightness_factor)


def _gray(img: Any) -> Any:
    array = _array(img).astype("float32")
    return array if array.ndim == 2 else array[..., :3] @ np.array([0.299, 0.587, 0.114], "float32")


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """With more contrast, or less."""
    gray = _gray(img)
    mean = gray.mean() if _array(img).dtype != np.uint8 else float(int(gray.mean() + 0.5))
    return _blended(img, mean, contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """With stronger colours, or weaker ones."""
    return _blended(img, _gray(img)[..., None], saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """With colours that are turned, by up to half a circle."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"adjust_hue: hue_factor is {hue_factor}; expected a number from -0.5 to 0.5")
    array = _array(img)
    scaled = (array * 255).astype(np.uint8) if array.dtype != np.uint8 else array
    from PIL import Image

    h, s, v = Image.fromarray(scaled).convert("HSV").split()
    turned = Image.fromarray((np.asarray(h).astype(np.int16) + int(hue_factor * 255)).astype(np.uint8))
    found = np.asarray(Image.merge("HSV", (turned, s, v)).convert("RGB"))
    return _as(img, found if array.dtype == np.uint8 else (found / 255).astype(array.dtype))


def _mapped(img: Any, matrix: Any, size: tuple[int, int], interpolation: str, fill: Any) -> Any:
    """A picture whose points (x, y, 1) come from matrix @ (x, y, 1), in places of the old one."""
    array = _array(img)
    h, w = size
    x, y = np.meshgrid(np.arange(w) + 0.5, np.arange(h) + 0.5)
    points = np.stack([x, y, np.ones_like(x)], 0).reshape(3, -1)
    u, v, scale = np.asarray(matrix) @ points
    u, v = u / scale - 0.5, v / scale - 0.5
    wide = array[..., None] if array.ndim == 2 else array
    empty = np.broadcast_to(np.asarray(fill, "float64"), wide.shape[-1:])

    def taken(rows: Any, columns: Any) -> Any:
        inside = (rows >= 0) & (rows < wide.shape[0]) & (columns >= 0) & (columns < wide.shape[1])
        found = np.tile(empty, (rows.size, 1))
        found[inside] = wide[rows[inside], columns[inside]]
        return found

    if interpolation == "nearest":
        found = taken(np.round(v).astype(int), np.round(u).astype(int))
    else:
        r, c = np.floor(v).astype(int), np.floor(u).astype(int)
        a, b = (v - r)[:, None], (u - c)[:, None]
        found = (taken(r, c) * (1 - b) + taken(r, c + 1) * b) * (1 - a) + (
            taken(r + 1, c) * (1 - b) + taken(r + 1, c + 1) * b
        ) * a
    found = np.round(found) if array.dtype.kind in "iu" else found
    found = found.astype(array.dtype).reshape(h, w, -1)
    return _as(img, found[..., 0] if array.ndim == 2 else found)


def _centre(img: Any, center: Any) -> tuple[float, float]:
    h, w = size_of(img)
    return (w * 0.5, h * 0.5) if center is None else (float(center[0]), float(center[1]))


def affine(
    img: Any,
    angle: float,
    translate: Any,
    scale: float,
    shear: Any,
    interpolation: str = "nearest",
    fill: Any = 0,
    center: Any = None,
) -> Any:
    """Turned, moved, scaled and sheared."""
    cx, cy = _centre(img, center)
    shears = [math.radians(s) for s in (shear if isinstance(shear, list | tuple) else (shear, 0.0))]
    turn = math.radians(angle)
    sx, sy = shears
    a, b = math.cos(turn - sy) / math.cos(sy), -math.cos(turn - sy) * math.tan(sx) / math.cos(sy) - math.sin(turn)
    c, d = math.sin(turn - sy) / math.cos(sy), -math.sin(turn - sy) * math.tan(sx) / math.cos(sy) + math.cos(turn)
    forward = np.array([[scale * a, scale * b, 0], [scale * c, scale * d, 0], [0, 0, 1]])
    before = np.array([[1, 0, -cx], [0, 1, -cy], [0, 0, 1]])
    after = np.array([[1, 0, cx + translate[0]], [0, 1, cy + translate[1]], [0, 0, 1]])
    return _mapped(img, np.linalg.inv(after @ forward @ before), size_of(img), interpolation, fill)


def rotate(
    img: Any, angle: float, interpolation: str = "nearest", expand: bool = False, center: Any = None, fill: Any = 0
) -> Any:
    """Turned against the clock; with expand, in a picture that holds all of it."""
    cx, cy = _centre(img, center)
    h, w = size_of(img)
    turn = math.radians(angle)
    cos, sin = math.cos(turn), math.sin(turn)
    height, width = h, w
    if expand:
        width, height = math.ceil(abs(w * cos) + abs(h * sin) - 1e-9), math.ceil(abs(w * sin) + abs(h * cos) - 1e-9)
    to_old = np.array([[1, 0, cx], [0, 1, cy], [0, 0, 1.0]])
    new_x, new_y = (width * 0.5, height * 0.5) if expand else (cx, cy)
    from_new = np.array([[1, 0, -new_x], [0, 1, -new_y], [0, 0, 1.0]])
    return _mapped(
        img,
        to_old @ np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]]) @ from_new,
        (height, width),
        interpolation,
        fill,
    )


def perspective(img: Any, startpoints: Any, endpoints: Any, interpolation: str = "nearest", fill: Any = 0) -> Any:
    """Seen from elsewhere: four points come to four others."""
    rows, right = [], []
    for (x, y), (u, v) in zip(endpoints, startpoints, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        right += [u, v]
    solved = np.linalg.lstsq(np.asarray(rows, "float64"), np.asarray(right, "float64"), rcond=None)[0]
    return _mapped(img, np.append(solved, 1.0).reshape(3, 3), size_of(img), interpolation, fill)
