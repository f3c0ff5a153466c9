"""Augmentation of training images: mirrored left to right, and cropped at random after padding.

He et al., "Deep residual learning for image recognition", CVPR 2016, section 4.2: 4 pixels of zeros are padded on each
side, and a crop of the original size is taken from the image or its mirror image. One number per sample decides, drawn
from the job's stream, so an image is the same in every back end. ``fedstg`` changes more (`edgesim.learning.jitter`).
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike
from torch import Tensor

from edgesim.base.arrays import Numbers
from edgesim.learning import jitter
from edgesim.streams import Streams

Augmentation = Literal["none", "flip", "crop-flip", "fedstg"]

_PADDING = 4
_OFFSETS = 2 * _PADDING + 1
_COLUMNS = 3
_UNCHANGED = (0, _PADDING, _PADDING)


def draw_changes(
    kind: Augmentation,
    streams: Streams,
    name: str,
    devices: ArrayLike,
    round: ArrayLike,
    counts: Sequence[int],
    size: tuple[int, int],
) -> list[Numbers | None]:
    """Random changes of the images of each device's job; None for ``none``.

    ``counts`` are the samples per device, ``size`` height and width of the images. An entry is [count, 3]: 0 or 1, and
    the first row and column of the crop in the padded image, 0 to 8. With one seed, ``flip`` turns over the same
    samples as ``crop-flip``. Of ``fedstg`` it is [count, 10]: `edgesim.learning.jitter.change`.
    """
    if kind == "none":
        return [None] * len(counts)
    if kind == "fedstg":
        # One device after another, since each image needs many numbers.
        ids, rounds = np.broadcast_arrays(devices, round)
        rows = zip(ids.tolist(), rounds.tolist(), counts, strict=True)
        draws = (streams.uniform(name, [device], own, count * jitter.DRAWS) for device, own, count in rows)
        return [jitter.change(of_device.reshape(-1, jitter.DRAWS), size) for of_device in draws]
    uniforms = streams.uniform(name, devices, round, max(counts, default=0))
    choice = np.floor(uniforms * (2 * _OFFSETS * _OFFSETS)).astype(np.int64)
    flip, place = choice % 2, choice // 2
    if kind == "flip":
        place = np.full_like(place, _PADDING * _OFFSETS + _PADDING)
    changes = np.stack([flip, place // _OFFSETS, place % _OFFSETS], axis=-1)
    return [rows[:count] for rows, count in zip(changes, counts, strict=True)]


def unchanged(columns: int) -> tuple[float, ...]:
    """Row of a change with this number of columns that leaves an image as it is."""
    return _UNCHANGED if columns == _COLUMNS else jitter.UNCHANGED


def apply(images: Tensor, draws: Tensor, brightest: float = 1.0) -> Tensor:
    """Images [n, C, H, W] of any type, each changed as its row of `draws` says; both on one device.

    ``brightest`` is the largest value of a pixel, by which ``fedstg`` goes, whose images are floats.
    """
    if draws.shape[1] != _COLUMNS:
        return jitter.apply(images, draws, brightest)
    height, width = images.shape[2:]
    flip, top, left = draws.unbind(1)
    rows = torch.arange(height, device=images.device) + top[:, None]
    columns = torch.arange(width, device=images.device)
    columns = torch.where(flip[:, None] == 1, columns.flip(0), columns) + left[:, None]
    padded = F.pad(images, (_PADDING,) * 4)
    # One copy, channels last: the pixel's channels move together.
    sample = torch.arange(len(images), device=images.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[sample, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
