"""AI-Benchmark scores as seconds per sample (Ignatov et al., ICCV Workshops 2019).

The site gives scores, no times. A phone of twice the score is taken to be twice as fast, and the median phone of the
list to need a stated time: seconds per sample = median_s x median score / score. Relative speeds are the information.
"""

from pathlib import Path

import numpy as np

from edgesim.devices.profile import Profile
from edgesim.errors import EdgesimError
from edgesim.table_file import numbers_of, read_columns, row_word

SCORE, NAME = "ai_score", "model"


def read_ai_benchmark(path: Path, median_s: float = 0.05) -> Profile:
    """A profile with a device per row, in the file's order, from its columns ai_score and, if there, model.

    ``median_s`` is the median phone's time per sample. Raises `EdgesimError` that names the file, the line and what
    was expected.
    """
    if not 0 < median_s < np.inf:
        raise EdgesimError(f"--median-s: expected finite seconds per sample above 0 (got {median_s:g})")
    frame = read_columns(path, (SCORE,), optional=(NAME,), text=(NAME,))
    score = numbers_of(frame[SCORE])
    bad = ~(np.isfinite(score) & (score > 0))
    if not len(score) or bad.any():
        row = int(np.argmax(bad)) if len(score) else None
        got = "no rows" if row is None else f"{row_word(path)} {frame.index[row]}: got {frame[SCORE].iloc[row]}"
        raise EdgesimError(f"{path}: {SCORE}: expected scores above 0 ({got})")
    names = frame[NAME].astype(str).tolist() if NAME in frame else None
    return Profile(median_s * np.median(score) / score, None, names)
