"""The tables of a run folder: their columns, and the check of a file against them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from edgesim.activities import ACTIVITIES
from edgesim.base.arrays import Booleans
from edgesim.base.errors import EdgesimError

_I32, _F64, _TEXT, _BOOL = pa.int32(), pa.float64(), pa.string(), pa.bool_()

SCHEMAS: dict[str, pa.Schema] = {
    "rounds": pa.schema(
        [(name, _I32) for name in ("round", "frame")]
        + [(name, _F64) for name in ("t_start_s", "t_end_s")]
        + [(name, _I32) for name in ("candidates", "selected", "arrived", "late", "dropped", "jobs_trained")]
        + [(name, _F64) for name in ("bits_up", "bits_down", "bandwidth_hz", "energy_j")]
        + [(name, _F64) for name in ("train_loss", "test_loss", "test_accuracy", "macro_f1")]
        + [("model_held", _BOOL)]
    ),
    "activities": pa.schema(
        [("round", _I32), ("device", _I32), ("task", _I32), ("activity", _TEXT)]
        + [("t_start_s", _F64), ("t_end_s", _F64), ("outcome", _TEXT)]
        + [(name, _F64) for name in ("bits", "bandwidth_hz", "energy_j", "away_s")]
    ),
    "updates": pa.schema(
        [("round", _I32), ("device", _I32), ("task", _I32), ("weight", _F64), ("staleness", _I32)]
        + [("loss", _F64), ("accuracy", _F64), ("update_norm", _F64)]
    ),
    "devices": pa.schema(
        [("device", _I32), ("frame", _I32), ("x_m", _F64), ("y_m", _F64), ("station", _I32)]
        + [("a_s", _F64), ("mu_per_s", _F64), ("samples", _I32), ("class_counts", pa.list_(_I32))]
    ),
    "stations": pa.schema(
        [("station", _I32), ("name", _TEXT), ("x_m", _F64), ("y_m", _F64), ("bandwidth_hz", _F64), ("server", _TEXT)]
    ),
    "handovers": pa.schema(
        [("device", _I32), ("t_s", _F64), ("round", _I32), ("task", _I32)]
        + [("from_station", _I32), ("to_station", _I32), ("phase", _TEXT)]
        + [(name, _F64) for name in ("gain_from_db", "gain_to_db", "bandwidth_hz", "bits_left", "interrupted_s")]
    ),
    "metrics": pa.schema([("round", _I32), ("name", _TEXT), ("key", _TEXT), ("value", _F64)]),
    "timing": pa.schema([("round", _I32), ("part", _TEXT), ("wall_s", _F64)]),
}


_NEVER_NULL = {
    "rounds": {"round", "frame", "t_start_s", "t_end_s", "candidates", "selected", "arrived"},
    "activities": {"round", "device", "task", "activity", "t_start_s", "t_end_s", "outcome"},
    "updates": {"round", "device", "task", "weight", "staleness"},
    "devices": {"device", "frame"},
    "stations": {"station", "name", "x_m", "y_m", "bandwidth_hz"},
    "handovers": {*SCHEMAS["handovers"].names} - {"bandwidth_hz", "bits_left", "interrupted_s"},
    "metrics": {"round", "name", "key", "value"},
    "timing": {"round", "part", "wall_s"},
}
"""Columns with a value in every row, by table; in the others null means that the run did not measure the value."""

_FINITE = {"t_start_s", "t_end_s", "x_m", "y_m", "gain_from_db", "gain_to_db"}
"""Instants, positions and gains: finite unless null."""

_FAR = 1e300
"""Above any real value of a table, and low enough that the sum of two does not overflow."""

_NOT_NEGATIVE = {"bits", "bits_up", "bits_down", "bandwidth_hz", "energy_j", "away_s", "wall_s", "a_s", "t_s"}
_NOT_NEGATIVE |= {"bits_left", "interrupted_s"}
_SHARES = {"test_accuracy", "macro_f1", "accuracy"}
_BOUNDED = _FINITE | _NOT_NEGATIVE | _SHARES
_OUTCOMES = ("done", "late", "dropped", "cancelled", "unscheduled", "paused", "skipped", "kept")

MUCH_BYTES = 2**20
"""Size of a table, in bytes, from which on reading it takes longer than starting threads."""

_TWICE = " is in an earlier row; expected it once"

_ONCE = {"rounds": ["round"], "devices": ["device", "frame"], "stations": ["station"]}
"""Columns that identify a row: no two rows of the table may agree in all of them."""


def checked(rows: pa.Table, table: str, path: Path) -> pd.DataFrame:
    """Check the rows of a file against one of `SCHEMAS`; returns its columns, in its order.

    Raises `EdgesimError` that names the file and the column if one is missing, given twice, of another type, without a
    value in a row that must have one, or holds a negative count or an instant or position that is not finite.
    """
    names = rows.column_names
    columns = {field.name: _column(rows, names, field, table, path) for field in SCHEMAS[table]}
    whole = pa.table(columns, schema=SCHEMAS[table])
    frame: pd.DataFrame = whole.to_pandas(use_threads=whole.nbytes > MUCH_BYTES)
    if table == "metrics" and pc.any(pc.equal(columns["name"], "idle_j")).as_py():
        _check_idle(frame, path)
    if table == "activities":
        for name, values in (("activity", tuple(ACTIVITIES)), ("outcome", _OUTCOMES)):
            if not {*pc.unique(columns[name]).to_pylist()} <= {*values}:
                _refuse_value(path, frame[name], ~frame[name].isin(values), ", ".join(values))
        _check_spans(frame, path, 0.0)
    if table == "updates":
        staleness, number = (frame[name].to_numpy() for name in ("staleness", "round"))
        _refuse_value(path, frame["staleness"], staleness > number, "at most the number of the round")
    if table == "handovers":
        same = frame["to_station"] == frame["from_station"]
        _refuse_value(path, frame["to_station"], same, "another station than from_station")
    if table == "devices":
        _refuse_value(path, frame["device"], frame["device"] >= len(frame), "devices counted from 0")
    if table == "rounds":
        _check_spans(frame, path, np.nextafter(0.0, 1.0))
    if table in _ONCE and not (len(_ONCE[table]) == 1 and frame[_ONCE[table][0]].is_unique):
        keys = frame[_ONCE[table]]
        _refuse(path, keys.duplicated(), lambda row: ", ".join(f"{key} {keys[key][row]}" for key in keys) + _TWICE)
    return frame


def _column(
    rows: pa.Table, names: Sequence[str], field: pa.Field, table: str, path: Path
) -> pa.ChunkedArray | pa.Array:
    """One column of the schema, cast to its type; ``names`` are those of the rows. Raises `EdgesimError`."""
    name, kind = field.name, field.type
    where = f"{path}: column {name!r}"
    places = names.count(name)
    if places != 1:
        raise EdgesimError(f"{where} is {'given twice' if places else 'missing'}; expected {_named(kind)}")
    column = rows.column(names.index(name))
    if column.type != kind:
        column = _cast(column, kind, where)
    nulls = column.null_count
    if nulls and name in _NEVER_NULL[table]:
        row = pc.index(pc.is_null(column), True).as_py() + 1
        raise EdgesimError(f"{where}: row {row} has no value; expected {_named(kind)}")
    whole = kind == _I32
    if nulls < len(column) and (whole or name in _BOUNDED):
        values = (column.drop_null() if nulls else column).to_numpy()
        # Both are nan where any value is.
        least, most = values.min().item(), values.max().item()
        low, high, wanted = -_FAR, _FAR, f"finite numbers, at most {_FAR:g} from 0"
        if whole or name in _NOT_NEGATIVE:
            low, wanted = 0.0, "0 or more" if whole else "finite numbers, 0 or more"
        elif name in _SHARES:
            low, high, wanted = 0.0, 1.0, "numbers from 0 to 1"
        if not low <= least <= most <= high:
            raise EdgesimError(f"{where}: expected {wanted} (got {most if least >= low else least})")
    if pa.types.is_list(kind) and len(set(pc.unique(pc.list_value_length(column)).to_pylist())) > 1:
        raise EdgesimError(f"{where}: expected the same number of classes in every row")
    return column


def _cast(column: pa.ChunkedArray, kind: pa.DataType, where: str) -> pa.ChunkedArray:
    """Cast a column to another type; raises `EdgesimError` where values would change."""
    if _named(column.type) != _named(kind) and not _widens(column.type, kind):
        raise EdgesimError(f"{where}: expected {_named(kind)} (got {column.type})")
    try:
        return column.cast(kind)
    except pa.ArrowException:
        raise EdgesimError(f"{where}: expected {_named(kind)} that fit {kind}") from None


def _check_spans(rows: pd.DataFrame, path: Path, least_s: float) -> None:
    """Refuse rows that end before they begin, or before ``least_s``; raises `EdgesimError`."""
    start_s, end_s = rows["t_start_s"].to_numpy(), rows["t_end_s"].to_numpy()
    expected = f"expected an instant{' above 0,' if least_s else ''} not before t_start_s"
    bad = (end_s < start_s) | (end_s < least_s)
    _refuse(f"{path}: column 't_end_s'", bad, lambda row: f"{expected} ({start_s[row]:g}) (got {end_s[row]:g})")


def _check_idle(metrics: pd.DataFrame, path: Path) -> None:
    """Refuse rows of ``idle_j`` with a key that is not a device, or given twice; raises `EdgesimError`."""
    idle = metrics[metrics["name"] == "idle_j"]
    strange = ~idle["key"].str.fullmatch(r"[0-9]{0,10}", na=False).astype(bool)
    all_rows = metrics.index
    _refuse_value(path, metrics["key"], strange.reindex(all_rows, fill_value=False), "a device or '' for 'idle_j'")
    twice = idle.assign(round=idle["round"].where(idle["key"] == "", 0)).duplicated(["round", "key"])
    _refuse(path, twice.reindex(all_rows, fill_value=False), lambda _: f"'idle_j' of this round and device{_TWICE}")


def _refuse_value(path: Path, column: pd.Series, strange: pd.Series | Booleans, expected: str) -> None:
    """Raise `EdgesimError` for the first strange value of a column."""
    _refuse(f"{path}: column {column.name!r}", strange, lambda row: f"expected {expected} (got {column[row]!r})")


def _refuse(where: Path | str, bad: pd.Series | Booleans, reason: Callable[[int], str]) -> None:
    """Raise `EdgesimError` for the first bad row [rows], with the reason that a function gives for its position."""
    if bad.any():
        row = int(np.argmax(bad))
        raise EdgesimError(f"{where}: row {row + 1}: {reason(row)}")


def _named(kind: pa.DataType) -> str:
    """Name of a column type in messages, without the width of its numbers."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"lists of {_named(kind.value_type)}"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "texts"
    if pa.types.is_integer(kind):
        return "integers"
    if pa.types.is_floating(kind):
        return "numbers"
    return "truth values" if pa.types.is_boolean(kind) else str(kind)


def _widens(actual: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column of type ``actual`` may be cast to ``wanted``: nulls to any type, numbers to numbers.

    Programs that rewrite a table with gaps store integers as floating-point numbers; the cast refuses fractions.
    """
    numeric = (pa.types.is_integer, pa.types.is_floating)
    numbers = any(kind(actual) for kind in numeric) and any(kind(wanted) for kind in numeric)
    return bool(pa.types.is_null(actual) or numbers)
