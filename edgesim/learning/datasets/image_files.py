"""Image files as arrays (see `edgesim.learning.datasets.decoded`)."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from typing_extensions import override

from edgesim.base.errors import EdgesimError
from edgesim.learning.cache import code_digest
from edgesim.learning.datasets.decoded import DecodedFiles

MOST_PIXELS = 2**26
"""Largest image: more than most cameras take, and 200 MB when decoded."""

# Pillow warns of images above its own bound, which is not much higher.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)


@dataclass(frozen=True)
class ImageFiles(DecodedFiles):
    """Images, brought to one size where that is given; always red, green, blue."""

    kind: ClassVar[str] = "images"
    image_size: int | None
    """Height and width of all decoded images; images must have one size when absent."""

    @cached_property
    @override
    def shape(self) -> tuple[int, int, int]:
        """3, height and width; read from the first image when no size is given."""
        if self.image_size is not None:
            return 3, self.image_size, self.image_size
        path = self.root / self.train[0]
        with _readable(path), Image.open(path) as image:
            return 3, image.height, image.width

    @property
    @override
    def _how(self) -> str:
        return f"Pillow {PIL.__version__}, shape {self.shape}, code {code_digest(ImageFiles)}"

    @override
    def _pixels(self, file: str) -> NDArray[np.uint8]:
        """Pixels of an image, [3, H, W]."""
        path, (_, height, width) = self.root / file, self.shape
        with _readable(path), Image.open(path) as image:
            if image.width * image.height > MOST_PIXELS:
                raise EdgesimError(f"{path}: is {image.height}x{image.width}; expected at most {MOST_PIXELS:,} pixels")
            if image.mode.startswith(("I", "F")):
                raise EdgesimError(f"{path}: has pixels of more than 8 bits; save it with 8 bits per channel")
            if self.image_size is None and image.size != (width, height):
                raise EdgesimError(
                    f"{path}: is {image.height}x{image.width}, but {self.train[0]} is {height}x{width}; set "
                    "data.image_size to bring all images to one size",
                    "data.image_size",
                )
            picture = image.convert("RGB")
            if picture.size != (width, height):
                picture = picture.resize((width, height), Image.Resampling.BILINEAR)
            return np.asarray(picture).transpose(2, 0, 1)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn Pillow's errors about a broken file into an `EdgesimError` that names the file."""
    try:
        yield
    except UnidentifiedImageError:
        raise EdgesimError(f"{path}: not a readable image: no format that Pillow knows") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise EdgesimError(f"{path}: not a readable image: {error}") from None
