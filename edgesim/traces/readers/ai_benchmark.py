"""AI-Benchmark scores as seconds per sample (Ignatov et al., ICCV Workshops 2019).

The site gives scores but no times. A phone with twice the score is assumed to be twice as fast, and the phone with the
median score to need ``median_s`` per sample: seconds per sample = median_s x median score / score. Only the relative
speeds come from the data.

Recorded phones get their scores by their models, as in FLASH (Yang et al., WWW 2021): a map translates Android's model
code to the name in the list. FLASH draws a random speed for a phone whose model has no score; here such a phone gets
the median score of the recorded phones that have one.
"""

from pathlib import Path

import numpy as np

from edgesim.base.errors import EdgesimError
from edgesim.base.table_file import read_columns, refuse_rows, texts_of
from edgesim.devices.profile import Profile
from edgesim.traces.device_rows import above_zero
from edgesim.traces.intervals import Intervals

SCORE, NAME = "ai_score", "model"
CODE, LISTED = "android_model", "benchmark_model"


def read_ai_benchmark(
    path: Path, median_s: float = 0.05, phones: Intervals | Profile | None = None, model_map: Path | None = None
) -> Profile:
    """Read a profile of one device per row, in the file's order, from the columns ai_score and, if present, model.

    ``median_s`` is the median time per sample over the list. With ``phones``, whose models are known, the profile has
    one device for each of them instead; ``model_map`` is a file with the columns android_model and benchmark_model, the
    latter empty for a phone that is not listed. Raises `EdgesimError` that names the file, the line and what was
    expected.
    """
    if not 0 < median_s < np.inf:
        raise EdgesimError(f"median_s: expected finite seconds per sample above 0 (got {median_s:g})")
    if (phones is None) != (model_map is None):
        raise EdgesimError("phones, model_map: expected both or neither")
    needed, optional = ((SCORE,), (NAME,)) if phones is None else ((SCORE, NAME), ())
    frame = read_columns(path, needed, optional, text=(NAME,))
    score = above_zero(frame, path, SCORE)
    names = texts_of(frame[NAME]) if NAME in frame else None
    scale = median_s * np.median(score)
    if phones is None or model_map is None:
        return Profile(scale / score, None, models=names)
    assert names is not None
    assert phones.models is not None
    # A name may be listed several times, with different chips: the last one counts, as in FLASH's table of scores.
    listed, score_of = _listed_names(model_map), dict(zip(names, score.tolist(), strict=True))
    of_phones = np.array([score_of.get(listed.get(model, ""), np.nan) for model in phones.models])
    unknown = np.isnan(of_phones)
    if unknown.all():
        raise EdgesimError(f"{model_map}: expected at least one of the phones' models with a score in {path}")
    of_phones[unknown] = np.median(of_phones[~unknown])
    return Profile(scale / of_phones, None, None, phones.keys, phones.models, int(np.count_nonzero(unknown)))


def _listed_names(path: Path) -> dict[str, str]:
    """Name in the list of scores by Android model code; codes without a name are left out."""
    frame = read_columns(path, (CODE, LISTED), text=(CODE, LISTED), or_empty=True)
    refuse_rows(path, frame, CODE, frame[CODE].duplicated().to_numpy(), "each model once")
    pairs = zip(texts_of(frame[CODE]), texts_of(frame[LISTED]), strict=True)
    return {code.strip(): name.strip() for code, name in pairs if code.strip() and name.strip()}
