"""paddle.vision.transforms: changes of pictures as objects, most of them by chance."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import oprack

from oprack_paddle.pictures import images as f


class Compose:
    """One change after the other."""

    def __init__(self, transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, data: Any) -> Any:
        """All changes of a picture."""
        for transform in self.transforms:
            data = transform(data)
        return data


class BaseTransform:
    """A change of pictures; `_apply_image` is what classes that derive from it write.

    Args:
        keys: What the parts of a sample are: "image", or something else that is left alone.
    """

    def __init__(self, keys: Any = None) -> None:
        self.keys = ("image",) if keys is None else tuple(keys)
        self.params: Any = None

    def _get_params(self, inputs: Any) -> Any:
        return None

    def _apply_image(self, image: Any) -> Any:
        raise NotImplementedError

    def __call__(self, inputs: Any) -> Any:
        """The changed picture, or the sample with it."""
        parts = inputs if isinstance(inputs, tuple) else (inputs,)
        self.params = self._get_params(parts)
        found = [getattr(self, f"_apply_{k}", lambda part: part)(p) for k, p in zip(self.keys, parts, strict=False)]
        found += list(parts[len(self.keys) :])
        return tuple(found) if isinstance(inputs, tuple) else found[0]


def _fixed(name: str, function: Any, parameters: str, doc: str) -> type:
    """A class whose settings are the function's arguments: "size, interpolation='bilinear'"."""
    names = [p.partition("=")[0].strip() for p in parameters.split(", ") if p]
    source = f"def __init__(self, {parameters + ', ' if parameters else ''}keys=None):\n    _start(self, keys)\n"
    source += "".join(f"    self.{n} = {n}\n" for n in names)
    known: dict[str, Any] = {"_start": BaseTransform.__init__}
    exec(source, known)  # texts of the lines below

    def _apply_image(self: Any, image: Any) -> Any:
        return function(image, *[getattr(self, n) for n in names])

    members = {"__init__": known["__init__"], "_apply_image": _apply_image, "__doc__": doc, "__module__": __name__}
    return type(name, (BaseTransform,), members)


ToTensor = _fixed("ToTensor", f.to_tensor, "data_format='CHW'", "A picture as a tensor, bytes as numbers from 0 to 1.")
Resize = _fixed("Resize", f.resize, "size, interpolation='bilinear'", "Another size.")
CenterCrop = _fixed("CenterCrop", f.center_crop, "size", "The middle of a picture.")
Pad = _fixed("Pad", f.pad, "padding, fill=0, padding_mode='constant'", "A border.")
Grayscale = _fixed("Grayscale", f.to_grayscale, "num_output_channels=1", "Without colours.")


class Normalize(BaseTransform):
    """Each channel less its mean, over its deviation."""

    def __init__(
        self, mean: Any = 0.0, std: Any = 1.0, data_format: str = "CHW", to_rgb: bool = False, keys: Any = None
    ) -> None:
        super().__init__(keys)
        self.mean, self.std = ([v] * 3 if isinstance(v, int | float) else v for v in (mean, std))
        self.data_format, self.to_rgb = data_format, to_rgb

    def _apply_image(self, image: Any) -> Any:
        return f.normalize(image, self.mean, self.std, self.data_format, self.to_rgb)


class Transpose(BaseTransform):
    """The dims of an array in another order."""

    def __init__(self, order: Any = (2, 0, 1), keys: Any = None) -> None:
        super().__init__(keys)
        self.order = order

    def _apply_image(self, image: Any) -> Any:
        if isinstance(image, oprack.Tensor):
            return image.transpose(list(self.order))
        array = np.asarray(image)
        return (array[..., None] if array.ndim == 2 else array).transpose(self.order)


class _ByChance(BaseTransform):
    """A change that happens with a probability."""

    def __init__(self, prob: float = 0.5, keys: Any = None) -> None:
        super().__init__(keys)
        self.prob = prob

    def _change(self, image: Any) -> Any:
        raise NotImplementedError

    def _apply_image(self, image: Any) -> Any:
        return self._change(image) if random.random() < self.prob else image


class RandomHorizontalFlip(_ByChance):
    """Left and right exchanged, by chance."""

    def _change(self, image: Any) -> Any:
        return f.hflip(image)


class RandomVerticalFlip(_ByChance):
    """Top and bottom exchanged, by chance."""

    def _change(self, image: Any) -> Any:
        return f.vflip(image)


class RandomPerspective(_ByChance):
    """Seen from elsewhere, by chance."""

    def __init__(
        self,
        prob: float = 0.5,
        distortion_scale: float = 0.5,
        interpolation: str = "nearest",
        fill: Any = 0,
        keys: Any = None,
    ) -> None:
        super().__init__(prob, keys)
        self.distortion_scale, self.interpolation, self.fill = distortion_scale, interpolation, fill

    def _change(self, image: Any) -> Any:
        h, w = f.size_of(image)
        dx, dy = int(self.distortion_scale * w / 2), int(self.distortion_scale * h / 2)
        moved = [(random.randint(0, dx), random.randint(0, dy)) for _ in range(4)]
        (a, b), (c, d), (e, g), (i, j) = moved
        ends = [(a, b), (w - 1 - c, d), (w - 1 - e, h - 1 - g), (i, h - 1 - j)]
        return f.perspective(
            image, [(0, 0), (w - 1, 0), (w - 1, h - 1), (0, h - 1)], ends, self.interpolation, self.fill
        )


class RandomErasing(_ByChance):
    """A rectangle that is filled, by chance."""

    def __init__(
        self,
        prob: float = 0.5,
        scale: Any = (0.02, 0.33),
        ratio: Any = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
        keys: Any = None,
    ) -> None:
        super().__init__(prob, keys)
        self.scale, self.ratio, self.value, self.inplace = scale, ratio, value, inplace

    def _change(self, image: Any) -> Any:
        h, w = image.shape[-2:] if isinstance(image, oprack.Tensor) else f.size_of(image)
        for _ in range(10):
            area, aspect = random.uniform(*self.scale) * h * w, math.exp(random.uniform(*map(math.log, self.ratio)))
            eh, ew = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if eh < h and ew < w:
                top, left = random.randint(0, h - eh), random.randint(0, w - ew)
                value = np.random.normal() if self.value == "random" else self.value
                return f.erase(image, top, left, eh, ew, value, self.inplace)
        return image


class RandomCrop(BaseTransform):
    """A part of a picture, at a random place."""

    def __init__(
        self,
        size: Any,
        padding: Any = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
        keys: Any = None,
    ) -> None:
        super().__init__(keys)
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        self.padding, self.pad_if_needed, self.fill, self.padding_mode = padding, pad_if_needed, fill, padding_mode

    def _apply_image(self, image: Any) -> Any:
        if self.padding is not None:
            image = f.pad(image, self.padding, self.fill, self.padding_mode)
        (h, w), (th, tw) = f.size_of(image), self.size
        if self.pad_if_needed and (w < tw or h < th):
            image = f.pad(image, (max(tw - w, 0), max(th - h, 0)), self.fill, self.padding_mode)
            h, w = f.size_of(image)
        return f.crop(image, random.randint(0, max(h - th, 0)), random.randint(0, max(w - tw, 0)), th, tw)


class RandomResizedCrop(BaseTransform):
    """A part of random size and shape, in another size."""

    def __init__(
        self,
        size: Any,
        scale: Any = (0.08, 1.0),
        ratio: Any = (3.0 / 4, 4.0 / 3),
        interpolation: str = "bilinear",
        keys: Any = None,
    ) -> None:
        super().__init__(keys)
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        self.scale, self.ratio, self.interpolation = scale, ratio, interpolation

    def _apply_image(self, image: Any) -> Any:
        h, w = f.size_of(image)
        for _ in range(10):
            area, aspect = random.uniform(*self.scale) * h * w, math.exp(random.uniform(*map(math.log, self.ratio)))
            cw, ch = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < cw <= w and 0 < ch <= h:
                part = f.crop(image, random.randint(0, h - ch), random.randint(0, w - cw), ch, cw)
                return f.resize(part, self.size, self.interpolation)
        return f.resize(f.center_crop(image, min(h, w)), self.size, self.interpolation)


def _range(value: Any, centre: float = 1.0) -> tuple[float, float]:
    """The numbers from which a factor is drawn."""
    if isinstance(value, int | float):
        return (max(centre - value, 0.0) if centre else -value, centre + value)
    return tuple(value)


class _Colour(BaseTransform):
    """A change of colours by a random factor."""

    _function: Any = None
    _middle = 1.0

    def __init__(self, value: Any, keys: Any = None) -> None:
        super().__init__(keys)
        self.value = _range(value, self._middle)

    def _apply_image(self, image: Any) -> Any:
        return type(self)._function(image, random.uniform(*self.value))


class BrightnessTransform(_Colour):
    """Brighter or darker."""

    _function = staticmethod(f.adjust_brightness)


class ContrastTransform(_Colour):
    """More contrast or less."""

    _function = staticmethod(f.adjust_contrast)


class SaturationTransform(_Colour):
    """Stronger colours or weaker ones."""

    _function = staticmethod(f.adjust_saturation)


class HueTransform(_Colour):
    """Turned colours."""

    _function = staticmethod(f.adjust_hue)
    _middle = 0.0


class ColorJitter(BaseTransform):
    """All changes of colours, in a random order."""

    def __init__(
        self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0, keys: Any = None
    ) -> None:
        super().__init__(keys)
        self._changes = [
            BrightnessTransform(brightness), ContrastTransform(contrast), SaturationTransform(saturation),
            HueTransform(hue)
        ]  # fmt: skip

    def _apply_image(self, image: Any) -> Any:
        return Compose(random.sample(self._changes, 4))(image)


class RandomRotation(BaseTransform):
    """Turned by a random angle."""

    def __init__(
        self,
        degrees: Any,
        interpolation: str = "nearest",
        expand: bool = False,
        center: Any = None,
        fill: Any = 0,
        keys: Any = None,
    ) -> None:
        super().__init__(keys)
        self.degrees = _range(degrees, 0.0)
        self.settings = (interpolation, expand, center, fill)

    def _apply_image(self, image: Any) -> Any:
        return f.rotate(image, random.uniform(*self.degrees), *self.settings)


class RandomAffine(BaseTransform):
    """Turned, moved, scaled and sheared by chance."""

    def __init__(
        self, degrees: Any, translate: Any = None, scale: Any = None, shear: Any = None,
        interpolation: str = "nearest", fill: Any = 0,
        center: Any = None, keys: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(keys)
        self.degrees, self.translate, self.scale = _range(degrees, 0.0), translate, scale
        self.shear = None if shear is None else _range(shear, 0.0)
        self.settings = (interpolation, fill, center)

    def _apply_image(self, image: Any) -> Any:
        h, w = f.size_of(image)
        dx, dy = self.translate or (0, 0)
        moved = (round(random.uniform(-dx, dx) * w), round(random.uniform(-dy, dy) * h))
        sheared = (0.0, 0.0)
        if self.shear is not None:
            sheared = (
                random.uniform(*self.shear[:2]),
                random.uniform(*self.shear[2:]) if len(self.shear) == 4 else 0.0,
            )
        factor = 1.0 if self.scale is None else random.uniform(*self.scale)
        return f.affine(image, random.uniform(*self.degrees), moved, factor, sheared, *self.settings)
