"""Inputs of all kinds, good, odd and broken: each kind writes files into a folder and answers with a command.

Every draw is hypothesis's, so that an input that fails is made smaller, and comes again.
"""

import json
import math
import shutil
import struct
import tempfile
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w
from fuzz_outcomes import GOOD, outcome
from hypothesis import strategies as st
from PIL import Image
from pydantic import BaseModel

from edgesim.config import RunConfig
from edgesim.folder.run_schema import SCHEMAS
from edgesim.joining import LAWS as JOINING_LAWS
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.drift import LAWS as DRIFT_LAWS
from edgesim.learning.partitions import PARTITIONS
from edgesim.selection import SELECTORS
from edgesim.traces.models import MODELS

ROOT = Path(__file__).parents[2]
Draw = Callable[[st.SearchStrategy[Any]], Any]
BASE: dict[str, Any] = {
    "seed": 1,
    "rounds": 3,
    "devices": {"count": 6},
    "round": {"payload_bits": 2e6, "tmax_s": 1.0},
    "data": {"dataset": "none"},  # no partition: drift laws that are drawn are refused beside one
    "learning": {"training": "none", "pretrain": True},
}
TEXTS = [
    "", " ", "x", "nan", "-1", "é", "日本", "\x1b[31mred", "[bold]x[/]", "$\\frac{$", "a" * 300, "../../x", "/", "~",
    "\x00", "\n", "true", "None", "1e400", "{}", "'", '"', "%s", "\udcff",
]  # fmt: skip
NUMBERS = [
    0, 1, -1, 2, 3, 7, 100, 0.5, -0.5, 0.1, 1e-9, 5e-324, 1e-300, 1e9, 1e15, 1e30, 1.7e308, -1e308, math.inf, -math.inf,
    math.nan, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 10**400, -(10**400),
]  # fmt: skip


def nested(depth: int, value: Any, name: str = "") -> Any:
    """A value in so many lists, or objects of a key, within each other."""
    for _ in range(depth):
        value = {name: value} if name else [value]
    return value


LONG = [
    "1" + "0" * 400,
    "9" * 5000,
    "0." + "0" * 5000 + "1",
    "[" * 3000 + "]" * 3000,
    '{"a":' * 3000 + "1" + "}" * 3000,
]
"""Numbers of too many digits and values in too many others, as they stand in texts."""
ODD = st.one_of(
    st.sampled_from(NUMBERS),
    st.sampled_from(TEXTS),
    st.booleans(),
    st.floats(),
    st.integers(-10, 10),
    st.just([]),
    st.just({}),
    st.sampled_from([nested(90, 1), nested(90, 1, "a"), nested(2, [], "device"), [10**400], {"a": 2**63}]),
    st.lists(st.sampled_from([0, 1, -1, 1e9, 0.5]), max_size=4),
)
"""Values of any kind for any knob."""


def sections() -> dict[str, type[BaseModel]]:
    """The models of the config's sections, by name."""
    found: dict[str, type[BaseModel]] = {}
    for name, field in RunConfig.model_fields.items():
        for kind in (field.annotation, *typing.get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                found[name] = kind
    return found


def plausible(kind: Any) -> st.SearchStrategy[Any]:
    """Values that a knob of this annotation may well have."""
    if kind is bool:
        return st.booleans()
    if kind is int:
        return st.sampled_from([0, 1, 2, 3, 5, 10, 30])
    if kind is float:
        return st.sampled_from([0.0, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0, 2.0, 5.0, 30.0, 1000.0, 1e6])
    if typing.get_origin(kind) is Literal:
        return st.sampled_from(typing.get_args(kind))
    if typing.get_origin(kind) is list:
        return st.lists(plausible(typing.get_args(kind)[0]), max_size=3)
    parts = [part for part in typing.get_args(kind) if part is not type(None) and not isinstance(part, type(None))]
    known = [plausible(part) for part in parts if typing.get_origin(part) or isinstance(part, type)]
    return st.one_of(known) if known else st.sampled_from(TEXTS)


NAMES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "availability": ("model", MODELS), "selection": ("policy", SELECTORS), "algorithm": ("name", ALGORITHMS),
    "data": ("partition", PARTITIONS), "joining": ("law", JOINING_LAWS), "drift": ("law", DRIFT_LAWS),
}  # fmt: skip


def named(draw: Draw, values: dict[str, Any], section: str) -> None:
    """Choose an entry of a registry, and some of its options."""
    key, registry = NAMES[section]
    name = draw(st.sampled_from(sorted(registry)))
    options = getattr(registry[name], "Options", registry[name]).model_fields
    chosen = draw(st.lists(st.sampled_from(sorted(options)), unique=True, max_size=3)) if options else []
    drawn = {one: draw(plausible(options[one].annotation)) for one in chosen}
    place = values.setdefault(section, {})
    place[key] = name
    if section == "data":
        place["partition_options"] = drawn
    else:
        place.update(drawn)


def write(folder: Path, values: dict[str, Any]) -> list[str]:
    """Write a config, and the command that runs it."""
    # A surrogate cannot be written as UTF-8: such a byte is put into the file as it is.
    text = tomli_w.dumps(values)
    (folder / "run.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    return ["run", "run.toml", "--out", "out"]


def copied(values: dict[str, Any]) -> dict[str, Any]:
    return {key: copied(value) if isinstance(value, dict) else value for key, value in values.items()}


def odd_config(draw: Draw, folder: Path) -> list[str]:
    """A config in which some knobs have values of any kind."""
    values, of = copied(BASE), sections()
    for _ in range(draw(st.integers(1, 4))):
        section = draw(st.sampled_from(sorted(of)))
        name = draw(st.sampled_from(sorted(of[section].model_fields)))
        values.setdefault(section, {})[name] = draw(ODD)
    if draw(st.booleans()):
        named(draw, values, draw(st.sampled_from(sorted(NAMES))))
    if draw(st.integers(0, 9)) == 0:
        values[draw(st.sampled_from(["seed", "rounds", "stop_at_s", "bogus", "devices"]))] = draw(ODD)
    return write(folder, values)


def combination(draw: Draw, folder: Path) -> list[str]:
    """A config in which each knob has a value that it may well have, but perhaps not beside the others."""
    values, of = copied(BASE), sections()
    for section in draw(st.lists(st.sampled_from(sorted(NAMES)), unique=True, max_size=3)):
        named(draw, values, section)
    if values["data"].get("partition") or "drift" in values:
        values["data"]["dataset"] = draw(st.sampled_from(["none", "digits"]))
    for _ in range(draw(st.integers(0, 4))):
        section = draw(
            st.sampled_from(["devices", "radio", "round", "staleness", "evaluation", "availability", "data", "privacy"])
        )
        name = draw(st.sampled_from(sorted(of[section].model_fields)))
        # A data set is a matter of its own.
        if (section, name) not in (("data", "dataset"), ("data", "folder"), ("data", "download")):
            values.setdefault(section, {})[name] = draw(plausible(of[section].model_fields[name].annotation))
    protocol = draw(st.sampled_from(["synchronous", "synchronous", "buffered", "asynchronous"]))
    if protocol != "synchronous":
        values["round"] |= {"protocol": protocol, "admission": "count", "count": draw(st.integers(1, 6))}
    if draw(st.integers(0, 3)) == 0:
        values["stop_at_s"] = draw(st.sampled_from([1.0, 5.0, 50.0]))
    return write(folder, values)


TOKENS = [
    "", "nan", "inf", "-inf", "-1", "0", "1e400", "1e308", "5e-324", "9223372036854775808", "x", "é", '"', "'", ",",
    "\n", "[", "]", "=", "true", "\x00", "\x1b[31m", "[bold]", "$x$", " ", *LONG,
]  # fmt: skip


def broken_text(draw: Draw, text: str) -> bytes:
    """A text file with some of its cells, lines or bytes changed."""
    for _ in range(draw(st.integers(1, 3))):
        lines = text.split("\n")
        at = draw(st.integers(0, len(lines) - 1))
        what = draw(st.sampled_from(["cell", "drop", "twice", "cut", "token", "empty"]))
        if what == "cell":
            separator = "=" if "=" in lines[at] else ","
            cells = lines[at].split(separator)
            cells[draw(st.integers(0, len(cells) - 1))] = draw(st.sampled_from(TOKENS))
            lines[at] = separator.join(cells)
        elif what == "drop":
            del lines[at]
        elif what == "twice":
            lines.insert(at, lines[at])
        elif what == "cut":
            lines = lines[:at]
        elif what == "token":
            place = draw(st.integers(0, len(lines[at])))
            lines[at] = lines[at][:place] + draw(st.sampled_from(TOKENS)) + lines[at][place:]
        elif draw(st.integers(0, 5)) == 0:
            lines = []
        text = "\n".join(lines)
    raw = text.encode()
    if draw(st.integers(0, 5)) == 0:
        raw = broken_bytes(draw, raw)
    return raw


def broken_bytes(draw: Draw, raw: bytes) -> bytes:
    """Bytes of which some are changed, cut off, left out or put in."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(raw) - 1)))
        what = draw(st.sampled_from(["flip", "cut", "drop", "insert", "number"]))
        if what == "flip":
            raw = raw[:at] + bytes([draw(st.integers(0, 255))]) + raw[at + 1 :]
        elif what == "cut":
            raw = raw[:at]
        elif what == "drop":
            raw = raw[:at] + raw[at + draw(st.integers(1, 20)) :]
        elif what == "insert":
            raw = raw[:at] + draw(st.binary(min_size=1, max_size=9)) + raw[at:]
        else:
            number = draw(st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63]))
            sizes = ["<I", ">I"] if number < 2**32 else ["<Q", ">Q"]
            packed = struct.pack(draw(st.sampled_from(sizes)), number)
            raw = raw[:at] + packed + raw[at + len(packed) :]
    return raw


PROFILE = "device,s_per_sample,link_bps,clock_hz\n" + "".join(
    f"{k},{0.001 * (k + 1)},{1e6 * (k + 1)},{1e9}\n" for k in range(6)
)
LINKS = "device,t_s,bps\n" + "".join(f"{k},{t}.0,{1e6 * (k + 1)}\n" for k in range(6) for t in (0, 5))
WEEK = "device,start_s,end_s\n" + "".join(f"{k},{t},{t + 40}\n" for k in range(6) for t in (k, 60 + k))
MATRIX = (
    "device,"
    + ",".join(str(r) for r in range(1, 9))
    + "\n"
    + "".join(f"{k}," + ",".join("10110111") + "\n" for k in range(6))
)
SAMPLES = "device,sample\n" + "".join(f"{k % 6},{k}\n" for k in range(60))
CONTENT: dict[str, tuple[str, dict[str, Any]]] = {
    "profile.csv": (PROFILE, {"devices": {"profile": "profile.csv"}}),
    "links.csv": (
        LINKS,
        {"devices": {"links": {"file": "links.csv", "end_s": 10.0, "after_end": "wrap"}}, "radio": {"sharing": "own"}},
    ),
    "week.csv": (WEEK, {"availability": {"model": "table", "file": "week.csv"}}),
    "matrix.csv": (MATRIX, {"availability": {"model": "table", "file": "matrix.csv", "slots": "rounds"}}),
    "samples.csv": (
        SAMPLES,
        {"data": {"dataset": "digits", "partition": "listed", "partition_options": {"file": "samples.csv"}}},
    ),
    **{
        f"{name}.toml": ((ROOT / "channels" / f"{name}.toml").read_text(), {"radio": {"channel": f"./{name}.toml"}})
        for name in ("fedteddi-macro", "free-space", "uma", "inh-office", "recorded-capacity")
    },
    **{
        f"{name}.toml": ((ROOT / "topologies" / f"{name}.toml").read_text(), {"topology": {"file": f"./{name}.toml"}})
        for name in ("three-cells", "one-cell")
    },
}
"""Text files, each with the config that reads it."""


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    both = copied(one)
    for key, value in other.items():
        both[key] = merged(both[key], value) if isinstance(value, dict) and key in both else value
    return both


def content_file(draw: Draw, folder: Path) -> list[str]:
    """A run on a channel, topology, profile, link, presence, matrix or sample file with something wrong in it."""
    name = draw(st.sampled_from(sorted(CONTENT)))
    text, config = CONTENT[name]
    if name == "recorded-capacity.toml":
        shutil.copy(ROOT / "channels" / "recorded-capacity.csv", folder)
    (folder / name).write_bytes(broken_text(draw, text))
    if name in ("profile.csv", "links.csv", "week.csv") and draw(st.integers(0, 3)) == 0:
        return ["trace", "convert", name, "out.parquet"]
    if name == "week.csv" and draw(st.integers(0, 2)) == 0:
        return ["trace", "show", name]
    return write(folder, merged(BASE, config))


JSONS = [
    "", "{", "null", "-1", "0", "1e30", "[]", "[1]", '["a"]', "{}", '"x"', "true", "[" * 200 + "]" * 200, "[null]",
    "nan", "6", "9223372036854775808", "[9223372036854775808]", *LONG,
]  # fmt: skip
NOTES = ["devices", "length_s", "unobserved_s", "unobserved_as", "keys", "models", "guessed", "kind", "unknown"]


def metadata(draw: Draw, folder: Path) -> list[str]:
    """A presence file in Parquet with notes of any kind, or with other columns."""
    columns: dict[str, Any] = {
        "device": np.repeat(np.arange(6), 2),
        "start_s": np.tile([0.0, 60.0], 6),
        "end_s": np.tile([40.0, 100.0], 6),
    }
    for _ in range(draw(st.integers(0, 1))):
        name = draw(st.sampled_from(sorted(columns)))
        change = draw(st.sampled_from(["drop", "text", "nan", "huge", "null", "bool", "one"]))
        count = len(columns[name])
        if change == "drop":
            del columns[name]
        elif change == "one":
            columns[name] = np.array(columns[name], dtype=float)
            columns[name][draw(st.integers(0, count - 1))] = draw(st.sampled_from([math.nan, math.inf, -1.0, 1e300]))
        else:
            value = {"text": "x", "nan": math.nan, "huge": 1e300, "null": None, "bool": True}[change]
            columns[name] = [value] * count
    table = pa.table(columns)
    notes = draw(st.dictionaries(st.sampled_from(NOTES), st.sampled_from(JSONS), max_size=3))
    raw = {f"edgesim.{name}": value for name, value in notes.items()}
    pq.write_table(table.replace_schema_metadata(raw), folder / "week.parquet")
    if draw(st.integers(0, 4)) == 0:
        path = folder / "week.parquet"
        path.write_bytes(broken_bytes(draw, path.read_bytes()))
    if draw(st.booleans()):
        return ["trace", "show", "week.parquet"]
    return write(folder, merged(BASE, {"availability": {"model": "table", "file": "week.parquet"}}))


def whole_data(kind: str, folder: Path) -> tuple[list[Path], dict[str, Any]]:
    """Write a data set of a kind; its files, and the config that reads it."""
    data: dict[str, Any]
    if kind == "npz":
        some = np.random.default_rng(0)
        pixels, classes = some.integers(0, 255, (40, 4, 4), dtype=np.uint8), np.arange(40) % 4
        path = folder / "own.npz"
        np.savez(path, train_images=pixels, train_labels=classes, test_images=pixels, test_labels=classes)
        files, data = [path], {"dataset": "own.npz", "partition": "iid", "samples_per_device": 4}
    elif kind == "mnist":
        raw = folder / "data" / "MNIST" / "raw"
        raw.mkdir(parents=True)
        for part, count in (("train", 60), ("t10k", 20)):
            images = struct.pack(">IIII", 2051, count, 28, 28) + bytes(count * 784)
            labels = struct.pack(">II", 2049, count) + bytes(k % 10 for k in range(count))
            (raw / f"{part}-images-idx3-ubyte").write_bytes(images)
            (raw / f"{part}-labels-idx1-ubyte").write_bytes(labels)
        files = sorted(raw.iterdir())
        data = {"dataset": "mnist", "folder": "data", "partition": "iid", "samples_per_device": 4}
    else:
        for part in ("train", "test"):
            for label in ("a", "b"):
                (folder / "pictures" / part / label).mkdir(parents=True)
                for k in range(8):
                    picture = Image.new("RGB", (6, 6), (20 * k, 0, 99))
                    picture.save(folder / "pictures" / part / label / f"{k}.png")
        files = sorted((folder / "pictures").rglob("*.png"))
        data = {"dataset": "./pictures", "partition": "iid", "samples_per_device": 2}
    return files, merged(
        BASE, {"devices": {"count": 4}, "data": data, "learning": {"training": "real", "pretrain": False}}
    )


def data_file(draw: Draw, folder: Path) -> list[str]:
    """A run on an npz, an MNIST or a folder of images with broken bytes."""
    files, config = whole_data(draw(st.sampled_from(["npz", "mnist", "images"])), folder)
    path = draw(st.sampled_from(files))
    path.write_bytes(broken_bytes(draw, path.read_bytes()))
    return write(folder, config)


def run_folder(draw: Draw, folder: Path, whole: Path) -> list[str]:
    """A finished run's folder with a broken file or another table, and a command that reads it."""
    shutil.copytree(whole, folder / "out")
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(sorted(path for path in (folder / "out").iterdir() if path.is_file())))
        what = draw(st.sampled_from(["bytes", "remove", "edit", "edit"]))
        if what == "remove":
            path.unlink()
        elif what == "edit" and path.suffix == ".parquet" and path.stem in SCHEMAS:
            _edit(draw, path)
        elif what == "edit" and path.name == "run.json" and (facts := _facts(path)):
            facts[draw(st.sampled_from(sorted(facts)))] = "ODD"
            value = draw(st.one_of(ODD.filter(lambda value: value == value).map(json.dumps), st.sampled_from(LONG)))
            path.write_text(json.dumps(facts).replace('"ODD"', value))
        elif path.suffix in (".json", ".toml"):
            path.write_bytes(broken_text(draw, path.read_text(errors="replace")))
        else:
            path.write_bytes(broken_bytes(draw, path.read_bytes()))
    shutil.copy(whole / "config.toml", folder / "run.toml")
    words: str = draw(st.sampled_from(["show out", "show out", "plot out", "run run.toml --out out"]))
    return words.split()


def _facts(path: Path) -> dict[str, Any]:
    """What a ``run.json`` holds; nothing if an earlier change has broken it."""
    try:
        facts = json.loads(path.read_text())
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _edit(draw: Draw, path: Path) -> None:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError):
        return
    if not table.num_columns:
        return
    name = draw(st.sampled_from(table.column_names))
    at = table.column_names.index(name)
    what = draw(st.sampled_from(["drop", "rename", "text", "null", "nan", "negative", "empty", "huge"]))
    count = table.num_rows
    if what == "drop":
        table = table.drop_columns([name])
    elif what == "rename":
        table = table.rename_columns([f"{one}x" if one == name else one for one in table.column_names])
    elif what == "empty":
        table = table.slice(0, 0)
    else:
        value = {"text": "x", "null": None, "nan": math.nan, "negative": -3, "huge": 2**62}[what]
        table = table.set_column(at, name, [[value] * count])
    pq.write_table(table, path)


WORDS = [
    "run", "show", "plot", "list", "trace", "convert", "fetch", "--help", "--version", "--set", "--out",
    "--fresh", "run.toml", "run.toml", "out", "seed=2", "rounds=1", "round.tmax_s=0.5", "selection.policy=random",
    "learning.model=", "x=1", "=", "[]", "week.csv", "o.parquet", "--lengths", "--model", "--observed", "bogus",
    "--bogus", "-1", *(f"seed={long}" for long in LONG), *(f"devices.{long}=1" for long in LONG[:2]), "seed=1e400",
    "a." * 2000 + "b=1", "devices.count=9223372036854775808",
]  # fmt: skip


def command_line(draw: Draw, folder: Path) -> list[str]:
    """Words of commands in any order."""
    write(folder, BASE)
    (folder / "week.csv").write_text(WEEK)
    word = st.one_of(st.sampled_from(WORDS), st.sampled_from(WORDS), st.sampled_from([*TEXTS, "1", "0.5"]))
    first: str = draw(st.sampled_from(["run", "show", "plot", "list", "trace", "trace show", ""]))
    words = [*first.split(), *draw(st.lists(word, max_size=6))]
    # Nothing outside the folder is written, and nothing is fetched.
    return [one for one in words if one not in ("fetch", "/", "~", "../../x")]


def attempt(kind: str, draw: Draw, folder: Path, whole: Path, keep: Path | None = None) -> tuple[str, str, str]:
    """Type one input of a kind in a folder, the current one: how it ended, what it said, and the input.

    ``whole`` is the folder of a finished run. An input that fails goes into a new folder in ``keep``.
    """
    reads_run = kind == "run folder"
    arguments = KINDS[kind](draw, folder, *((whole,) if reads_run else ()))
    config = (folder / "run.toml").read_bytes() if (folder / "run.toml").is_file() else b""
    given = f"{arguments}\n{config.decode(errors='replace')}"
    kept = None
    if keep is not None:
        keep.mkdir(exist_ok=True)
        kept = Path(tempfile.mkdtemp(prefix=f"{kind.replace(' ', '-')}-", dir=keep))
        shutil.copytree(folder, kept, dirs_exist_ok=True)
        (kept / COMMAND).write_text(json.dumps(arguments))
    # Only what this command itself has written is looked at.
    ended, said = outcome(arguments, folder / "out" if arguments[:1] == ["run"] and not reads_run else None)
    if kept is not None and ended in GOOD:
        shutil.rmtree(kept)
    return ended, said, given


COMMAND = "command.json"
"""The file of a kept input that has the words behind ``edgesim``."""


KINDS: dict[str, Callable[..., list[str]]] = {
    "config": odd_config,
    "combination": combination,
    "content file": content_file,
    "metadata": metadata,
    "data file": data_file,
    "run folder": run_folder,
    "command line": command_line,
}
