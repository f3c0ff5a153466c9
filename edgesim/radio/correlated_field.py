"""Fields of normal numbers on the squares of a plane, whose correlation falls exponentially with distance.

The construction is circulant embedding (Dietrich and Newsam, SIAM J. Sci. Comput. 1997): on a torus the covariance is a
circulant, which the Fourier transform makes diagonal. The correlation is Gudmundson's (Electronics Letters 1991).
"""

import math

import numpy as np

from edgesim.base.arrays import Floats
from edgesim.radio.squares import Squares
from edgesim.streams import Streams

_DECAYS = 8.0
"""Correlation distances between a map and itself around the torus: correlations are right to exp(-8)."""
_AT_ONCE = 1 << 18


def correlated_field(name: str, streams: Streams, squares: Squares, deviations: Floats) -> Floats:
    """Standard normal numbers on squares, [rows, columns], of the correlation that ``deviations`` were made for.

    Draws: stream ``name``, the row of the torus as device, its column as round, two for each square. Numbers are
    rounded to 1e-9, so that the last bits of a Fourier transform do not show.
    """
    size = len(deviations)
    noise = np.empty((size, size), dtype=np.complex128)
    step = max(_AT_ONCE // size, 1)
    for begin in range(0, size, step):
        rows = np.arange(begin, min(begin + step, size))
        draws = streams.normal(name, rows[:, None], np.arange(size), 2)
        noise[rows] = draws[..., 0] + 1j * draws[..., 1]
    noise *= deviations
    row = (squares.first_row + np.arange(squares.rows)) % size
    column = (squares.first_column + np.arange(squares.columns)) % size
    return np.round(np.fft.fft2(noise).real[np.ix_(row, column)], 9)


def torus_size(squares: Squares, decorrelation_m: float) -> int:
    """Squares along each side of the torus of a map, a power of two."""
    longest = max(squares.rows, squares.columns)
    return 1 << math.ceil(math.log2(longest + _DECAYS * decorrelation_m / squares.side_m))


def field_deviations(squares: Squares, decorrelation_m: float) -> Floats:
    """Deviations of the Fourier coefficients of a field of correlation exp(-distance / ``decorrelation_m``).

    They are the roots of the covariance's eigenvalues, over their number, [size, size]. A torus with a negative
    eigenvalue, for which there is no such field, is made twice as large.
    """
    size = torus_size(squares, decorrelation_m)
    while True:
        away_m = np.minimum(np.arange(size), size - np.arange(size)) * squares.side_m
        eigenvalues = np.fft.fft2(np.exp(-np.hypot(away_m[:, None], away_m) / decorrelation_m)).real
        if eigenvalues.min() >= -1e-9 * eigenvalues.max():
            return np.asarray(np.sqrt(np.maximum(eigenvalues, 0.0)) / size)
        size *= 2
