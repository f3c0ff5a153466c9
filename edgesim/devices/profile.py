"""Profiles of recorded devices: seconds per training sample and, if recorded, link rate and processor clock."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from edgesim.base.arrays import Floats, Integers
from edgesim.base.device_keys import Texts
from edgesim.base.errors import EdgesimError
from edgesim.base.table_facts import PREFIX, read_facts
from edgesim.base.table_file import numbers_of, read_columns, refuse_rows, texts_of, whole_numbers, write_parquet

COLUMNS = ("device", "s_per_sample")
LINK = "link_bps"
CLOCK = "clock_hz"
KEY = "key"
MODEL = "model"


@dataclass(frozen=True)
class Profile:
    """One row per recorded device, [n]."""

    s_per_sample: Floats
    """Time to train on one sample."""
    link_bps: Floats | None
    clock_hz: Floats | None = None
    """Clock of the processor while it trains."""
    keys: Texts | None = None
    """Key of each device in the recording, all different; None if it has no keys."""
    models: Texts | None = None
    """Model of each device, empty if not known; None if the recording has no models."""
    guessed: int = 0
    """Number of devices of unknown speed, which get the median speed of the others."""

    def of(self, rows: Integers) -> "Profile":
        """The profile of the devices ``rows`` [k], in this order."""
        columns = {name: values[rows] for name, values in vars(self).items() if isinstance(values, np.ndarray)}
        return replace(self, guessed=0, **columns)


def read_profile(path: Path) -> Profile:
    """Read a CSV or Parquet file with the columns device, s_per_sample and perhaps link_bps, clock_hz, key and model.

    The devices are 0, 1, ... in any order, each once. Raises `EdgesimError` that names the file, the line or row,
    the column and what was expected.
    """
    frame = read_columns(path, COLUMNS, optional=(LINK, CLOCK, KEY, MODEL), text=(KEY, MODEL))
    names = {name: texts_of(frame[name]) for name in (KEY, MODEL) if name in frame}
    columns = {str(name): numbers_of(frame[name]) for name in frame.columns if name not in ("device", *names)}
    last = len(frame) - 1
    device = whole_numbers(path, frame, "device", last, f"a whole number from 0 to {last}, one for each row")
    if KEY in names:
        refuse_rows(path, frame, KEY, names[KEY] == "", "the device's key")
    for name, values in {"device": device, **names}.items():
        if name != MODEL:
            refuse_rows(path, frame, name, pd.Series(values).duplicated().to_numpy(), f"each {name} once")
    for name, values in columns.items():
        refuse_rows(path, frame, name, ~(np.isfinite(values) & (values > 0)), "a finite number above 0")
    order = np.argsort(device)
    link_bps, clock_hz = (columns[name][order] if name in columns else None for name in (LINK, CLOCK))
    keys, models = (names[name][order] if name in names else None for name in (KEY, MODEL))
    guessed = read_facts(path).guessed or 0
    if guessed > len(device):
        raise EdgesimError(
            f"{path}: metadata {PREFIX}guessed: expected at most {len(device)}, the devices of the file (got {guessed})"
        )
    return Profile(columns["s_per_sample"][order], link_bps, clock_hz, keys, models, guessed)


def write_profile(path: Path, profile: Profile) -> None:
    """Write a Parquet file from which `read_profile` reads the same profile."""
    columns: dict[str, object] = {
        "device": np.arange(len(profile.s_per_sample), dtype=np.int32),
        "s_per_sample": profile.s_per_sample,
    }
    optional = {LINK: profile.link_bps, CLOCK: profile.clock_hz, KEY: profile.keys, MODEL: profile.models}
    columns |= {name: values for name, values in optional.items() if values is not None}
    write_parquet(path, pa.table(columns), {"guessed": str(profile.guessed)} if profile.guessed else {})
