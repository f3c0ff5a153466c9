"""FedScale's phones as a table: the fields of ``client_device_capacity`` with the id and model of each phone.

FLOAT (Khan et al., EuroSys 2024) publishes the 100 most available phones in this form. The units are FedScale's.
"""

from pathlib import Path

import numpy as np

from edgesim.base.device_keys import models_of, texts
from edgesim.base.table_file import read_columns, texts_of
from edgesim.devices.profile import Profile
from edgesim.traces.device_rows import above_zero, ids_of
from edgesim.traces.readers.fedscale import TRAINING_PER_INFERENCE

COLUMNS = ("device_id", "compute_ms_per_sample", "bandwidth_kbps")
MODEL = "model"


def read_fedscale_devices(path: Path) -> Profile:
    """Read a profile: columns device_id, compute_ms_per_sample (of inference), bandwidth_kbps and perhaps model.

    Devices come in ascending order of their ids, which are their keys. Raises `EdgesimError` that names the file, the
    line or row, the column and what was expected.
    """
    frame = read_columns(path, COLUMNS, optional=(MODEL,), text=(MODEL,))
    ids = ids_of(frame, path, COLUMNS[0])
    order = np.argsort(ids)
    inference_ms, link_kbps = (above_zero(frame, path, name)[order] for name in COLUMNS[1:])
    models = models_of(texts_of(frame[MODEL])[order]) if MODEL in frame else None
    keys = texts(map(str, ids[order].tolist()))
    return Profile(TRAINING_PER_INFERENCE * inference_ms / 1e3, 1e3 * link_kbps, keys=keys, models=models)
