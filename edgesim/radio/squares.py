"""Squares of the plane, on each of which a map has one value."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from edgesim.base.arrays import Floats, Integers


@dataclass(frozen=True)
class Squares:
    """The squares that cover a rectangle, with lines at the multiples of their side; square i begins at i times it."""

    side_m: float
    first_row: int
    """Row of the squares that lie lowest, floor(y / side)."""
    first_column: int
    rows: int
    columns: int

    @classmethod
    def covering(cls, side_m: float, least_x_m: float, most_x_m: float, least_y_m: float, most_y_m: float) -> Self:
        """The squares of a rectangle and one more on each side, since positions on its edges are rounded."""
        first_row, first_column = math.floor(least_y_m / side_m) - 1, math.floor(least_x_m / side_m) - 1
        last_row, last_column = math.floor(most_y_m / side_m) + 1, math.floor(most_x_m / side_m) + 1
        return cls(side_m, first_row, first_column, last_row - first_row + 1, last_column - first_column + 1)

    def of_side(self, side_m: float) -> Self:
        """Squares of another side that cover these."""
        left_m, low_m = self.first_column * self.side_m, self.first_row * self.side_m
        width_m, height_m = self.columns * self.side_m, self.rows * self.side_m
        return self.covering(side_m, left_m, left_m + width_m, low_m, low_m + height_m)

    def __len__(self) -> int:
        return self.rows * self.columns

    def row_and_column(self, x_m: ArrayLike, y_m: ArrayLike) -> tuple[Integers, Integers]:
        """Rows and columns of the squares of places within the rectangle, counted from the first ones."""
        row, column = np.floor(np.divide(y_m, self.side_m)), np.floor(np.divide(x_m, self.side_m))
        return row.astype(np.int64) - self.first_row, column.astype(np.int64) - self.first_column

    def nearest_inside(self, x_m: Floats, y_m: Floats) -> tuple[Floats, Floats]:
        """The places themselves within the rectangle, and the nearest ones on its outermost squares elsewhere."""
        half_m = 0.5 * self.side_m
        left_m, low_m = self.first_column * self.side_m + half_m, self.first_row * self.side_m + half_m
        right_m, high_m = left_m + (self.columns - 1) * self.side_m, low_m + (self.rows - 1) * self.side_m
        return np.clip(x_m, left_m, right_m), np.clip(y_m, low_m, high_m)

    def middles_m(self) -> tuple[Floats, Floats]:
        """Coordinates x of the squares' middles, [1, columns], and y, [rows, 1]."""
        x_m: Floats = (self.first_column + np.arange(self.columns, dtype=np.float64) + 0.5) * self.side_m
        y_m: Floats = (self.first_row + np.arange(self.rows, dtype=np.float64) + 0.5) * self.side_m
        return x_m[None, :], y_m[:, None]
