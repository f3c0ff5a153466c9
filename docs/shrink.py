"""Puts figures that edgesim drew into the gallery: ``python docs/shrink.py FIGURE.png ...``, at 150 dpi.

Colours are those of the figures' palette and its tints; pictures with scales of colour keep 160 colours of their own.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from edgesim.plots.palette import PALETTE

FIGURES = Path(__file__).parents[1] / "plots"
_TINTS = (1.0, 0.75, 0.5, 0.3, 0.16)
_MOST_ERROR = 2.0
"""Mean distance of a pixel's channels from the palette, of 255, from which on a picture has colours of its own."""
_BLOCK, _MOST_IN_BLOCK = 8, 25.0
"""The same in any block of so many pixels each way: a scale of colours, small in a picture, keeps its order."""


def palette() -> Image.Image:
    """The house's colours with their tints over white, and greys."""
    colours = [tuple(bytes.fromhex(colour[1:])) for colour in PALETTE.values()]
    shades = [tuple(round(255 + tint * (part - 255)) for part in colour) for colour in colours for tint in _TINTS]
    greys = [(grey,) * 3 for grey in np.linspace(0, 255, 18).astype(int).tolist()]
    flat = [part for colour in dict.fromkeys([*shades, *greys]) for part in colour]
    made = Image.new("P", (1, 1))
    made.putpalette(flat + [255] * (768 - len(flat)))
    return made


def shrink(path: Path, out: Path) -> None:
    """Write a figure of 300 dpi with half as many pixels each way and few colours."""
    whole = Image.open(path).convert("RGB")
    small = whole.resize((round(whole.width / 2), round(whole.height / 2)), Image.Resampling.LANCZOS)
    few = small.quantize(palette=palette(), dither=Image.Dither.NONE)
    error = np.abs(np.asarray(few.convert("RGB")).astype(int) - np.asarray(small)).mean(axis=2)
    high, wide = (length // _BLOCK for length in error.shape)
    blocks = error[: high * _BLOCK, : wide * _BLOCK].reshape(high, _BLOCK, wide, _BLOCK).mean(axis=(1, 3))
    if error.mean() >= _MOST_ERROR or blocks.max() >= _MOST_IN_BLOCK:
        few = small.quantize(160, method=Image.Quantize.MEDIANCUT, kmeans=2, dither=Image.Dither.NONE)
    few.save(out, optimize=True, dpi=(150, 150))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        shrink(Path(name), FIGURES / Path(name).name)
