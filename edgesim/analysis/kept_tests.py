"""The tests of many runs as one table, which outlives their folders, and runs that are known by this table alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from typing_extensions import override

from edgesim.analysis.metrics import start_accuracy
from edgesim.analysis.runs import Fork, RunFolder, StudyFolder
from edgesim.base.errors import EdgesimError
from edgesim.base.table_file import refuse_rows, write_parquet
from edgesim.folder.records import read_run, read_table

_OF_RUN = ("study", "run", "status", "commit", "seed", "test_images")
_OF_TEST = ("round", "t_s", "accuracy", "clients", "newcomers", "energy_j")
_TEXTS = ("study", "run", "status", "commit")


def study_tests(study: StudyFolder) -> pd.DataFrame:
    """The tests of all runs of a study that have made a round, finished or not: a row each, and one of the start model.

    Columns: ``study`` and ``run`` (names of their folders), ``status``, ``commit``, ``seed``, ``test_images``, every
    knob, and of each test ``round`` (0: the start model), ``t_s``, ``accuracy``, ``clients`` (devices scheduled per
    round, mean over the rounds since the test before), ``newcomers`` (those of them with a class that is new to them in
    the frame; NaN where the data have one frame) and ``energy_j`` (of all devices since the start). Raises
    `EdgesimError`.
    """
    tables = []
    for entry in study.planned:
        run = entry.run
        begun = any((run.folder / f"rounds.{kind}").is_file() for kind in ("parquet", "arrow"))
        if not begun or read_table(run.folder, "rounds").empty:
            continue
        facts = read_run(run.folder)
        about: dict[str, Any] = {"study": study.folder.name, "run": run.folder.name, "status": entry.status}
        about |= {"commit": facts.get("git_commit"), "seed": run.seed, "test_images": run.test_images, **run.knobs}
        tables.append(_tests(run).assign(**about)[[*about, *_OF_TEST]])
    return merged(tables)


def _tests(run: RunFolder) -> pd.DataFrame:
    """Columns `_OF_TEST` of a run."""
    tests, rounds = run.tests.drop_duplicates("round"), run.rounds
    newcomers = run.scheduled_by_class["with_new"].to_numpy() if run.has_newcomers is not None else np.nan
    test = np.searchsorted(tests["round"].to_numpy(), rounds["round"].to_numpy())
    by_test = rounds.assign(newcomers=newcomers).groupby(test)
    means, spent_j = by_test[["selected", "newcomers"]].mean(), by_test["energy_j"].sum().cumsum()
    # The rounds after the last test belong to none.
    every = range(len(tests))
    rows = tests.reset_index(drop=True).assign(
        clients=means["selected"].reindex(every),
        newcomers=means["newcomers"].reindex(every),
        energy_j=spent_j.reindex(every),
    )
    start = {"round": 0.0, "t_s": 0.0, "accuracy": start_accuracy(run.metrics), "energy_j": 0.0}
    return pd.concat([pd.DataFrame([start], columns=[*_OF_TEST], dtype=np.float64), rows.astype(np.float64)])[
        [*_OF_TEST]
    ]


def merged(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables as from `study_tests` as one; of a run that several have, the rows of the last one."""
    last = {run: place for place, table in enumerate(tables) for run in _runs(table)}
    kept = [table[[last[run] == place for run in _runs(table)]] for place, table in enumerate(tables)]
    knobs = list(dict.fromkeys(name for table in tables for name in table.columns if name not in _OF_RUN + _OF_TEST))
    columns = [*_OF_RUN, *knobs, *_OF_TEST]
    kept = [table for table in kept if len(table)]
    return pd.concat(kept, ignore_index=True)[columns] if kept else pd.DataFrame(columns=columns)


def _runs(table: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(table["study"], table["run"], strict=True))


def write_tests(path: Path, tests: pd.DataFrame) -> None:
    """Write a table as from `study_tests` as Parquet, completely or not at all; raises `EdgesimError`."""
    write_parquet(path, pa.Table.from_pandas(tests, preserve_index=False), {})


def read_tests(path: Path) -> pd.DataFrame:
    """Read a table that `write_tests` wrote; raises `EdgesimError` that names file, and column, row or run."""
    if not path.is_file():
        found = "a folder" if path.is_dir() else "no such file"
        raise EdgesimError(f"{path}: {found}; expected a table of tests, as a study's script writes it")
    try:
        tests = pq.read_table(path).to_pandas()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise EdgesimError(f"{path}: not a readable Parquet file: {str(error).splitlines()[0]}") from None
    for name in _OF_RUN + _OF_TEST:
        if name not in tests:
            raise EdgesimError(f"{path}: no column {name!r}; expected {', '.join(_OF_RUN + _OF_TEST)}")
        if name not in _TEXTS and not pd.api.types.is_numeric_dtype(tests[name]):
            raise EdgesimError(f"{path}: {name}: expected numbers (got {tests[name].dtype})")
        if name in _OF_RUN and name != "commit":
            refuse_rows(path, tests, name, tests[name].isna().to_numpy(), "a value")
    for (study, run), rounds in tests.groupby(["study", "run"], sort=False)["round"]:
        if rounds.iloc[0] != 0 or not rounds.is_monotonic_increasing:
            raise EdgesimError(f"{path}: {study}/{run}: expected rows by round, from round 0, the start model, on")
    return tests


def kept_runs(tests: pd.DataFrame, study: str) -> list["KeptRun"]:
    """Runs of a study, in the order of a table as from `read_tests`."""
    runs = []
    for name, rows in tests[tests["study"] == study].groupby("run", sort=False):
        knobs = rows.drop(columns=[*_OF_RUN, *_OF_TEST]).iloc[0].dropna().to_dict()
        runs.append(KeptRun(Path(study) / str(name), knobs, int(rows["seed"].iloc[0]), rows.reset_index(drop=True)))
    return runs


@dataclass(frozen=True, eq=False)
class KeptRun(RunFolder):
    """A run of which only tests are left. What it is asked beyond them fails as for a folder that is not there."""

    rows: pd.DataFrame
    """Its rows of a table as from `study_tests`."""

    @property
    def status(self) -> str:
        """How far the run got, as `edgesim.folder.state.FolderState`."""
        return str(self.rows["status"].iloc[0])

    @cached_property
    @override
    def rounds(self) -> pd.DataFrame:
        """The rounds that were tested; ``selected`` is a mean and ``energy_j`` a sum since the test before."""
        tests = self.rows[self.rows["round"] > 0]
        return pd.DataFrame(
            {
                "round": tests["round"].astype(np.int64),
                "t_end_s": tests["t_s"],
                "test_accuracy": tests["accuracy"],
                "selected": tests["clients"],
                "energy_j": self.rows["energy_j"].diff()[tests.index],
            }
        ).reset_index(drop=True)

    @cached_property
    @override
    def metrics(self) -> pd.DataFrame:
        """The accuracy of the start model."""
        first = self.rows[self.rows["round"] == 0]
        return pd.DataFrame({"round": 0, "name": "test_accuracy", "key": "", "value": first["accuracy"]})

    @property
    @override
    def scheduled_by_class(self) -> pd.DataFrame:
        """Scheduled devices of each round until the last test, the same for all rounds between two tests."""
        tests = self.rows[self.rows["round"] > 0]
        between = np.diff(self.rows["round"]).astype(np.int64)
        with_new = np.repeat(tests["newcomers"].fillna(0.0).to_numpy(), between)
        every = np.repeat(tests["clients"].to_numpy(), between)
        return pd.DataFrame({"round": np.arange(1, len(every) + 1), "with_new": with_new, "only_old": every - with_new})

    @property
    @override
    def has_newcomers(self) -> bool | None:
        """Whether devices with a new class were scheduled; None where the data have one frame."""
        newcomers = self.rows["newcomers"]
        return bool((newcomers > 0).any()) if newcomers.notna().any() else None

    @property
    @override
    def test_images(self) -> int:
        return int(self.rows["test_images"].iloc[0])

    @property
    @override
    def digests(self) -> Mapping[str, str]:
        return {}

    @property
    @override
    def fork(self) -> Fork | None:
        return None
