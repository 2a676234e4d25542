"""Kernels of deformable_conv and its gradient: shifted taps are gathered into columns, then multiplied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

BOTH = ("cpu", "cuda")


class _Taps:
    """Where the taps of some images fall. Arrays are [n, deformable groups, taps * OH * OW]."""

    def __init__(
        self,
        maps: Array,
        offset: Array,
        kernel_size: tuple[int, int],
        out_size: tuple[int, int],
        strides: Sequence[int],
        paddings: Sequence[int],
        dilations: Sequence[int],
        deformable: int,
        xp: ArrayModule,
    ) -> None:
        self._xp = xp
        n, c, self.height, self.width = maps.shape
        self.n, self.groups, self.channels = n, deformable, c // deformable
        self.taps, self.cells = kernel_size[0] * kernel_size[1], out_size[0] * out_size[1]
        grid = [
            xp.arange(k)[:, None] * d + xp.arange(o)[None, :] * s - p
            for k, o, s, p, d in zip(kernel_size, out_size, strides, paddings, dilations, strict=True)
        ]
        shift = offset.reshape(n, deformable, *kernel_size, 2, *out_size)
        self.y = self._flat(shift[:, :, :, :, 0] + grid[0][:, None, :, None].astype(offset.dtype))
        self.x = self._flat(shift[:, :, :, :, 1] + grid[1][None, :, None, :].astype(offset.dtype))
        self.inside = (self.y > -1) & (self.y < self.height) & (self.x > -1) & (self.x < self.width)
        self.pixels = maps.reshape(n, deformable, self.channels, -1).transpose(0, 1, 3, 2)  # [n, dg, H * W, c]
        self.which = xp.arange(n)[:, None, None], xp.arange(deformable)[None, :, None]

    def _flat(self, a: Array) -> Array:
        return a.reshape(self.n, self.groups, -1)

    def corners(self) -> Iterator[tuple[Array, ...]]:
        """(pixel index, weight along y, weight along x, slope along y, slope along x) of the four pixels around.

        Weights and slopes are 0 for a pixel outside the map.
        """
        xp = self._xp
        row, column = xp.floor(self.y).astype(xp.int64), xp.floor(self.x).astype(xp.int64)
        upper, right = self.y - row, self.x - column
        for dy in (0, 1):
            for dx in (0, 1):
                i, j = row + dy, column + dx
                there = self.inside & (i >= 0) & (i < self.height) & (j >= 0) & (j < self.width)
                index = xp.where(there, i * self.width + j, 0)
                yield (
                    index,
                    (upper if dy else 1 - upper) * there,
                    (right if dx else 1 - right) * there,
                    there * self.y.dtype.type(2 * dy - 1),
                    there * self.x.dtype.type(2 * dx - 1),
                )

    def values(self) -> Array:
        """Bilinear samples [n, dg, taps * cells, c]."""
        total = self._xp.zeros((*self.y.shape, self.channels), self.pixels.dtype)
        for index, wy, wx, _, _ in self.corners():
            total += self.pixels[(*self.which, index)] * (wy * wx)[..., None]
        return total

    def columns(self, values: Array, groups: int) -> Array:
        """Samples [n, dg, taps * cells, c] as [n, groups, channels of a group * taps, cells]."""
        split = values.reshape(self.n, self.groups, self.taps, self.cells, self.channels)
        return split.transpose(0, 1, 4, 2, 3).reshape(self.n, groups, -1, self.cells)

    def samples(self, columns: Array) -> Array:
        """Back from `columns`."""
        split = columns.reshape(self.n, self.groups, self.channels, self.taps, self.cells)
        return split.transpose(0, 1, 3, 4, 2).reshape(self.n, self.groups, -1, self.channels)


def _blocks(n: int, step: int) -> list[slice]:
    return [slice(i, i + step) for i in range(0, n, step)]


@kernel("deformable_conv", place=BOTH, dtypes=FLOATS)
def deformable_conv(
    Input: Array,
    Offset: Array,
    Filter: Array,
    Mask: Array | None,
    *,
    strides: list[int],
    paddings: list[int],
    dilations: list[int],
    deformable_groups: int,
    groups: int,
    im2col_step: int,
    xp: ArrayModule,
) -> Array:
    m, out_size = Filter.shape[0], Offset.shape[2:]
    weight = Filter.reshape(groups, m // groups, -1)
    out = xp.empty((len(Input), m, *out_size), Input.dtype)
    for part in _blocks(len(Input), im2col_step):
        geometry = Filter.shape[2:], out_size, strides, paddings, dilations, deformable_groups, xp
        taps = _Taps(Input[part], Offset[part], *geometry)
        values = taps.values()
        if Mask is not None:
            values *= Mask[part].reshape(taps.y.shape)[..., None]
        out[part] = xp.matmul(weight, taps.columns(values, groups)).reshape(-1, m, *out_size)
    return out


@kernel("deformable_conv_grad", place=BOTH, dtypes=FLOATS, deterministic={"cpu"})
def deformable_conv_grad(
    Input: Array,
    Offset: Array,
    Filter: Array,
    Mask: Array | None,
    Output_grad: Array,
    *,
    strides: list[int],
    paddings: list[int],
    dilations: list[int],
    deformable_groups: int,
    groups: int,
    im2col_step: int,
    xp: ArrayModule,
) -> dict[str, Array | None]:
    m, out_size = Filter.shape[0], Offset.shape[2:]
    weight = Filter.reshape(groups, m // groups, -1)
    dx, doffset = xp.zeros_like(Input), xp.empty_like(Offset)
    dmask: Any
    dmask, dweight = (None if Mask is None else xp.empty_like(Mask)), xp.zeros_like(weight)
    for part in _blocks(len(Input), im2col_step):
        geometry = Filter.shape[2:], out_size, strides, paddings, dilations, deformable_groups, xp
        taps = _Taps(Input[part], Offset[part], *geometry)
        grad = Output_grad[part].reshape(taps.n, groups, m // groups, taps.cells)
        dvalues = taps.samples(xp.matmul(weight.transpose(0, 2, 1), grad))
        values = taps.values()
        if Mask is not None:
            mask = Mask[part].reshape(taps.y.shape)[..., None]
            dmask[part] = (dvalues * values).sum(axis=-1).reshape(dmask[part].shape)
            values *= mask
            dvalues = dvalues * mask
        dweight += xp.matmul(grad, taps.columns(values, groups).transpose(0, 1, 3, 2)).sum(axis=0)
        dpixels, dshift = _scatter(taps, dvalues, xp)
        dx[part] = dpixels.transpose(0, 1, 3, 2).reshape(dx[part].shape)
        dshift = dshift.reshape(2, taps.n, deformable_groups, taps.taps, *out_size)
        doffset[part] = dshift.transpose(1, 2, 3, 0, 4, 5).reshape(doffset[part].shape)
    return {
        "Input@GRAD": dx,
        "Offset@GRAD": doffset,
        "Filter@GRAD": dweight.reshape(Filter.shape),
        "Mask@GRAD": dmask,
    }


def _scatter(taps: _Taps, dvalues: Array, xp: ArrayModule) -> tuple[Array, Array]:
    """Gradients of the pixels [n, dg, H * W, c] and of the tap positions (y, x) [2, n, dg, taps * cells]."""
    dpixels = xp.zeros(taps.pixels.shape, dvalues.dtype)
    dshift = xp.zeros((2, *taps.y.shape), dvalues.dtype)
    for index, wy, wx, sy, sx in taps.corners():
        place = (*taps.which, index)
        xp.add.at(dpixels, place, dvalues * (wy * wx)[..., None])
        read = (dvalues * taps.pixels[place]).sum(axis=-1)
        dshift[0] += read * sy * wx
        dshift[1] += read * wy * sx
    return dpixels, dshift
