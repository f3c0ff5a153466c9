"""A second of sound as a 32x32 picture: log-mel energies on SciPy."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.signal import resample_poly, stft

from edgesim.base.arrays import Floats

RATE_HZ = 16_000
"""Samples per second to which recordings are brought first; their first second counts."""
BANDS = FRAMES = 32
_WINDOW = 2048
_HOP = 512
_FLOOR = 1e-10
"""Least energy, to which lower ones are raised: -100 dB."""


def log_mel(samples: Floats, rate_hz: int) -> NDArray[np.float32]:
    """Energies in dB of 32 mel bands (rows, low to high) in 32 frames of one second, [32, 32] float32.

    ``samples`` [n] lie in [-1, 1]; what is shorter is filled up with silence, what is longer is cut off. Windows of
    128 ms (Hann), one each 32 ms, as in FedScale's speech benchmark (Lai et al., ICML 2022).
    """
    if rate_hz != RATE_HZ:
        common = math.gcd(rate_hz, RATE_HZ)
        samples = resample_poly(samples, RATE_HZ // common, rate_hz // common)
    second = np.zeros(RATE_HZ)
    second[: min(len(samples), RATE_HZ)] = samples[:RATE_HZ]
    _, _, spectrum = stft(second, RATE_HZ, nperseg=_WINDOW, noverlap=_WINDOW - _HOP, padded=False)
    energy = _FILTERS @ np.abs(spectrum[:, :FRAMES]) ** 2
    return np.asarray(10.0 * np.log10(np.maximum(energy, _FLOOR)), dtype=np.float32)


def mel(frequency_hz: Floats) -> Floats:
    """Pitch in mel: 2595 log10(1 + f / 700) (O'Shaughnessy, "Speech Communication", 1987)."""
    return np.asarray(2595.0 * np.log10(1.0 + frequency_hz / 700.0))


def filters() -> Floats:
    """Triangles of equal width in mel up to half the rate, each of height 1, [32, frequencies]."""
    at = mel(np.linspace(0.0, RATE_HZ / 2, _WINDOW // 2 + 1, dtype=np.float64))
    width = at[-1] / (BANDS + 1)
    centre = width * np.arange(1, BANDS + 1)
    return np.asarray(np.maximum(0.0, 1.0 - np.abs(at - centre[:, None]) / width))


_FILTERS = filters()
