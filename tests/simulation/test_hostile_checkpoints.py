"""Checkpoints with a right hash whose content no run has written: the run goes on, or one line names what is wrong."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stopped_runs import stop_at
from whole_runs import TIMED

import edgesim
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder import checkpoints
from edgesim.folder.checkpoints import About, Packed
from edgesim.simulation import composition as simulation

ROUNDS: dict[str, dict[str, Any]] = {
    "synchronous": {"late": "keep", "delay_knowledge": "planned", "plan_quantile": 0.2, "tmax_s": 0.6},
    "buffered": {"admission": "count", "count": 5, "protocol_options": {"buffer": 3}},
    "asynchronous": {"admission": "count", "count": 5},
}
TRAINED: dict[str, Any] = {
    "learning": {"pretrain": False, "steps": 1, "back_end": "loop"},
    "data": {"samples_per_device": 8, "partition": "fedteddi"},
    "evaluation": {"samples": 20},
    "algorithm": {"name": "scaffold"},
    "rounds": 5,
}


def values(protocol: str, **sections: Any) -> dict[str, Any]:
    base = {
        "seed": 3,
        "rounds": 7,
        "devices": {"count": 8, "battery_j": 6.0, "recharge_w": 1.0, "idle_power_w": 0.2},
        "availability": {"model": "bernoulli", "probability": 0.8, "slot_s": 0.25, "interruption": "pause"},
        "radio": {"bandwidth_hz": 4e6, "sharing": "reshared"},
        "selection": {"policy": "oort"} if protocol == "synchronous" and sections else {},
        "round": {"payload_bits": 1e6, "protocol": protocol, **ROUNDS[protocol]},
    }
    return TIMED | base | sections


Stopped = Callable[..., Path]
"""Folder of a stopped run with a single checkpoint, made once."""


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    made: dict[str, Path] = {}

    def of(protocol: str, **sections: Any) -> Path:
        key = f"{protocol} {bool(sections)}"
        if key not in made:
            made[key] = tmp_path_factory.mktemp("stopped") / "run"
            assert stop_at(parse(values(protocol, **sections), "test"), made[key], 4) is None
            checkpoints.files(made[key])[1].unlink()
        return made[key]

    return of


def checkpoint(folder: Path) -> checkpoints.Checkpoint:
    """The only checkpoint of a stopped run."""
    (path,) = checkpoints.files(folder)
    found = checkpoints.read(path, print)
    assert found is not None
    return found


def changed(folder: Path, to: Path, about: dict[str, Any] | None = None, record: Any = None) -> Path:
    """A copy of a stopped run whose checkpoint says something else, with a hash that is right."""
    shutil.copytree(folder, to)
    (path,) = checkpoints.files(to)
    found = checkpoint(to)
    path.unlink()
    text = json.dumps(record).encode() if isinstance(record, dict) else record or found.record.json
    told = About(**{**vars(found.about), **(about or {})})
    return checkpoints.write(to, told, Packed(text, found.record.arrays), found.rows)


def outcome(folder: Path) -> str:
    """What `edgesim.resume` says, in a line, empty where the run goes on to its end."""
    said = ""
    try:
        edgesim.resume(folder, quiet=True)
    except EdgesimError as error:
        said = str(error)
    assert "\n" not in said
    return said


ODD: tuple[Any, ...] = (
    None, True, -1, 3, 10**30, 0.5, -2.5, "x", "record.report", [], [[]], [1, "a"], {}, {"dict": []}, {"tuple": []},
    {"float": "nan"}, {"float": "inf"}, {"same": "record.report"}, {"dict": [[1, 2]]}, {"set": [1]},
    {"scalar": 3, "dtype": "int64"}, {"deque": [], "most": 1}, {"array": "record"},
    {"record": "edgesim.engine.run_state:RunState", "fields": {}},
)  # fmt: skip


def nodes(node: Any, held: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every place in a JSON value, as its container and key."""
    for key, inner in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        held.append((node, key))
        nodes(inner, held)
    return held


def mutate(record: Any, draw: random.Random) -> None:
    """Replace, remove, repeat or swap parts of a record at random places."""
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        places = nodes(record, [])
        holder, key = draw.choice(places)
        what = draw.choice(("replace", "replace", "number", "remove", "swap", "repeat"))
        if what == "number" and isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
            was = holder[key]
            holder[key] = draw.choice((was + 1, -was - 1, was * 1e6, was + 0.5, 10**400))
        elif what == "remove":
            del holder[key]
        elif what == "repeat" and isinstance(holder, list):
            holder.append(holder[key])
        elif what == "swap":
            other, there = draw.choice(places)
            holder[key] = json.loads(json.dumps(other[there]))
        else:
            holder[key] = draw.choice(ODD)


CASES = [("synchronous", {}), ("buffered", {}), ("asynchronous", {}), ("synchronous", TRAINED), ("buffered", TRAINED)]
QUICK, SLOW = range(4), range(4, 50)


@pytest.mark.parametrize("seeds", [QUICK, pytest.param(SLOW, marks=pytest.mark.slow)], ids=["a few", "many"])
@pytest.mark.parametrize(("protocol", "sections"), CASES, ids=lambda case: case if isinstance(case, str) else "")
def test_a_changed_record_goes_on_or_is_one_line(
    protocol: str, sections: dict[str, Any], seeds: range, stopped: Stopped, tmp_path: Path
) -> None:
    folder = stopped(protocol, **sections)
    found, refused = checkpoint(folder), 0
    for seed in seeds:
        record = json.loads(found.record.json)
        mutate(record, random.Random(seed))
        path = changed(folder, tmp_path / str(seed), record=record)
        said = outcome(tmp_path / str(seed))
        assert str(path) in said or not said, said
        refused += bool(said)
    assert refused


TABLES = ("rounds", "../../elsewhere")


@pytest.mark.parametrize(
    "about",
    [
        {"config": [1]}, {"machine": {"cpu": [[]]}}, {"streams": {"rounds": 1}}, {"on_disk": {"../../elsewhere": 3}},
        {"rows": dict.fromkeys(TABLES, 1)}, {"digests": {"rounds": 7}}, {"place": 3}, {"place": [1]}, {"wall_s": None},
        {"format": "5"}, {"format": [5]}, {"format": 99},
    ],
    ids=str,
)  # fmt: skip
def test_what_a_checkpoint_hangs_on_is_checked_before_it_is_used(
    about: dict[str, Any], stopped: Stopped, tmp_path: Path
) -> None:
    changed(stopped("synchronous"), tmp_path / "run", about=about)
    said: list[str] = []
    config = parse(values("synchronous"), "test")
    result = simulation.run(config, tmp_path / "run", on_note=lambda _, note: said.append(note))
    assert (result.status, result.resumed_after) == ("finished", 0)
    assert "is damaged (" in said[0] or "has format 99" in said[0]
    assert not (tmp_path / "elsewhere.arrow").exists()


def test_a_record_in_record_without_end_is_one_line(stopped: Stopped, tmp_path: Path) -> None:
    path = changed(stopped("synchronous"), tmp_path / "run", record=b"[" * 100_000 + b"]" * 100_000)
    assert str(path) in outcome(tmp_path / "run")


def test_a_fork_of_a_changed_record_is_refused_in_one_line(stopped: Stopped, tmp_path: Path) -> None:
    folder = stopped("synchronous")
    for number, key in enumerate(("evaluations", "protocol", "t_s")):
        record = json.loads(checkpoint(folder).record.json)
        record["fields"][key] = [1, 2]
        changed(folder, tmp_path / str(number), record=record)
        with pytest.raises(EdgesimError):
            edgesim.fork(tmp_path / str(number), 3, ["round.tmax_s=0.7"], tmp_path / f"fork-{number}", quiet=True)
