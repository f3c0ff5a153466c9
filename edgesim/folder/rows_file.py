"""Parquet files of a run folder beside its tables, which only some runs have."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from edgesim.base.errors import EdgesimError
from edgesim.folder.digests import check_file


def read_rows(path: Path, schema: pa.Schema) -> pd.DataFrame | None:
    """Read the columns of a schema, with a value in every row; None where there is no such file.

    Raises `EdgesimError` for a file that is damaged.
    """
    if not path.is_file():
        return None
    check_file(path)
    try:
        rows = pq.read_table(path).select(schema.names).cast(schema)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise EdgesimError(f"{path}: cannot be read: {str(error).strip().splitlines()[0]}") from None
    if any(column.null_count for column in rows.columns):
        raise EdgesimError(f"{path}: expected a value in every row")
    frame: pd.DataFrame = rows.to_pandas()
    return frame
