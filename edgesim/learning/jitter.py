"""FedStg's augmentation of images: mirrored, rotated by up to 15 degrees, brighter or darker, cropped and enlarged.

What its public code (client.py) asks of torchvision: RandomHorizontalFlip, RandomRotation(15), ColorJitter(0.2, 0.2)
and RandomResizedCrop(scale=(0.8, 1)), one after another, here for many images at once. Pixels are not rounded in
between.
"""

import numpy as np
import torch
from torch import Tensor

from edgesim.base.arrays import Floats, Singles

UNCHANGED = (0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0)
"""Row of `change` that leaves an image as it is."""

_DEGREES = 15.0
_COLOUR = 0.2
_AREA = 0.8, 1.0
_RATIO = 3 / 4, 4 / 3
_TRIES = 10
DRAWS = 7 + 2 * _TRIES
"""Uniforms for each image."""
_GREY = 0.2989, 0.587, 0.114


def change(uniforms: Floats, size: tuple[int, int]) -> Singles:
    """Changes of images of a height and width, [n, 10], from uniforms [n, `DRAWS`].

    Columns: whether it is turned over, cosine and sine of the rotation, factors of brightness and contrast, whether
    contrast comes first, and first row, first column, height and width of the crop as shares of the image.
    """
    flip, angle, bright, contrast, first, top, left = uniforms[:, :7].T
    radians = np.deg2rad(_DEGREES * (2 * angle - 1))
    factors = 1 + _COLOUR * (2 * np.stack([bright, contrast]) - 1)
    height, width = _crop_size(uniforms[:, 7:].reshape(-1, _TRIES, 2), size)
    # The middle, where no try has fitted.
    tried = (height <= size[0]) & (width <= size[1])
    height, width = np.where(tried, height, _whole(size)[0]), np.where(tried, width, _whole(size)[1])
    room = size[0] - height, size[1] - width
    begin = [np.where(tried, np.floor(u * (of + 1)), of // 2) for u, of in zip((top, left), room, strict=True)]
    crop = [begin[0] / size[0], begin[1] / size[1], height / size[0], width / size[1]]
    columns = [flip < 0.5, np.cos(radians), np.sin(radians), *factors, first < 0.5, *crop]
    return np.stack([np.asarray(column, dtype=np.float32) for column in columns], axis=1)


def _crop_size(uniforms: Floats, size: tuple[int, int]) -> tuple[Floats, Floats]:
    """Height and width of the first of the tries that fits, [n] each, of uniforms [n, tries, 2]; else of the first."""
    area = np.prod(size) * (_AREA[0] + (_AREA[1] - _AREA[0]) * uniforms[..., 0])
    low, high = np.log(_RATIO)
    ratio = np.exp(low + (high - low) * uniforms[..., 1])
    height, width = np.rint(np.sqrt(area / ratio)), np.rint(np.sqrt(area * ratio))
    fits = (height > 0) & (height <= size[0]) & (width > 0) & (width <= size[1])
    place = np.arange(len(area)), fits.argmax(axis=1)
    return height[place], width[place]


def _whole(size: tuple[int, int]) -> tuple[float, float]:
    """Height and width of the largest crop of an image whose sides have an allowed ratio."""
    height, width = size
    ratio = width / height
    if ratio < _RATIO[0]:
        return np.rint(width / _RATIO[0]), width
    return (height, np.rint(height * _RATIO[1])) if ratio > _RATIO[1] else (height, width)


def apply(images: Tensor, changes: Tensor, brightest: float) -> Tensor:
    """Images [n, C, H, W] of values from 0 to ``brightest``, each changed as its row of `change` says, as floats."""
    turned = _turned(images if images.is_floating_point() else images.float(), changes)
    coloured = _coloured(turned, changes, brightest)
    top, left, height, width = changes[:, 6:].unbind(1)
    tall, wide = images.shape[2:]
    rows = _enlarged(coloured, top * tall, height * tall)
    return _enlarged(rows.transpose(1, 2), left * wide, width * wide).transpose(1, 2).permute(0, 3, 1, 2)


def _turned(images: Tensor, changes: Tensor) -> Tensor:
    """Images mirrored and rotated about the middle to the nearest pixel, zeros from outside, [n, H, W, C]."""
    height, width = images.shape[2:]
    flip, cosine, sine = (column[:, None, None] for column in changes[:, :3].unbind(1))
    y = torch.arange(height, device=images.device)[:, None] - (height - 1) / 2
    x = torch.arange(width, device=images.device)[None, :] - (width - 1) / 2
    column = torch.round(cosine * x - sine * y + (width - 1) / 2).long()
    row = torch.round(sine * x + cosine * y + (height - 1) / 2).long()
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    row, column = row.clamp(0, height - 1), column.clamp(0, width - 1)
    column = torch.where(flip == 1, width - 1 - column, column)
    sample = torch.arange(len(images), device=images.device)[:, None, None]
    return images.permute(0, 2, 3, 1)[sample, row, column] * inside[..., None]


def _coloured(images: Tensor, changes: Tensor, brightest: float) -> Tensor:
    """Brightness and contrast of images [n, H, W, C] changed, in either order, and cut off at black and white."""
    bright, contrast, first = (column[:, None, None, None] for column in changes[:, 3:6].unbind(1))
    for is_contrast in (first, 1 - first):
        # Brightness is contrast to black.
        factor = torch.where(is_contrast == 1, contrast, bright)
        images = (factor * images + (1 - factor) * (is_contrast * _grey(images))).clamp(0, brightest)
    return images


def _grey(images: Tensor) -> Tensor:
    """Mean brightness of each image [n, H, W, C], [n, 1, 1, 1]."""
    if images.shape[3] == len(_GREY):
        red, green, blue = images.unbind(3)
        images = (_GREY[0] * red + _GREY[1] * green + _GREY[2] * blue)[..., None]
    return images.mean(dim=(1, 2, 3), keepdim=True)


def _enlarged(images: Tensor, begin: Tensor, length: Tensor) -> Tensor:
    """Rows [begin, begin + length) of images [n, H, ...], bilinearly enlarged to all H rows."""
    size, last = images.shape[1], (length.round() - 1)[:, None]
    places = (torch.arange(size, device=images.device) + 0.5) * (length.round() / size)[:, None] - 0.5
    places = torch.minimum(places.clamp(min=0), last)
    low = places.floor()
    share = (places - low)[:, :, None, None].to(images.dtype)
    origin = begin.round()[:, None]
    sample = torch.arange(len(images), device=images.device)[:, None]
    lower = images[sample, (origin + low).long()]
    upper = images[sample, (origin + torch.minimum(low + 1, last)).long()]
    return lower * (1 - share) + upper * share
