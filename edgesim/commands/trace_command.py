"""The `edgesim trace` commands: convert, show and fetch recordings."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from edgesim.base.content import find
from edgesim.base.device_keys import models_in_short
from edgesim.base.errors import EdgesimError
from edgesim.base.table_facts import Unobserved
from edgesim.devices.profile import Profile
from edgesim.mobility.position_file import PositionRows
from edgesim.plots.formats import FORMAT_HELP, USUAL, known_formats
from edgesim.screen.command_line import Group
from edgesim.screen.console import PlainConsole
from edgesim.screen.plain import plain_errors, say
from edgesim.tables.table_text import print_whole
from edgesim.tables.trace_tables import (
    anatomy_table,
    capacity_table,
    links_table,
    not_observed,
    positions_table,
    profile_table,
)
from edgesim.traces.convert import convert, need_availability, settle
from edgesim.traces.convert_links import convert_links
from edgesim.traces.fetch import ORIGINALS, fetch
from edgesim.traces.intervals import Intervals
from edgesim.traces.readers import FORMATS, Capacity, LinkRows, Recorded, RecordedAvailability, detect, read_recording
from edgesim.traces.session_statistics import anatomy

app = typer.Typer(cls=Group, no_args_is_help=True, help="Recordings of devices: availability, speed, links.")

FormatOption = Annotated[
    str | None, typer.Option("--format", help=f"{', '.join(FORMATS)}; detected from the content when absent.")
]
RequireOption = Annotated[
    str | None, typer.Option(help="Conditions that a FLASH phone must fulfil; idle,charging,wifi when absent.")
]
LengthOption = Annotated[
    float | None, typer.Option(help="End of a recording that does not state one; its last instant when absent.")
]
LengthsOption = Annotated[
    Path | None, typer.Option(help="CSV or Parquet of device and length_s: when the recording of each device ends.")
]
ObservedOption = Annotated[Path | None, typer.Option(help="Interval file of when devices were observed.")]
UnobservedOption = Annotated[Unobserved, typer.Option(help="What unobserved time counts as: absent or present.")]
MedianOption = Annotated[
    float | None, typer.Option(help="Seconds per sample of AI-Benchmark's median phone; 0.05 when absent.")
]


@app.command(name="convert")
@plain_errors
def convert_(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN",
            help="A recording; several of capacity, or a folder of them, become links, several GPX files one.",
        ),
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT.parquet", help="The file to write.")],
    format_: FormatOption = None,
    require: RequireOption = None,
    length_s: LengthOption = None,
    median_s: MedianOption = None,
    lengths: LengthsOption = None,
    observed: ObservedOption = None,
    unobserved: UnobservedOption = "absent",
    links: Annotated[
        str | None, typer.Option(help="Names of the traces of capacity that become links: '*-up', or '*' for all.")
    ] = None,
    stays: Annotated[
        Path | None, typer.Option(help="Interval file to write beside positions: when devices are on their way.")
    ] = None,
    gap_s: Annotated[
        float | None, typer.Option(help="Longest time between two rows of a device within one stay; 60 when absent.")
    ] = None,
    phones: Annotated[
        Path | None, typer.Option(help="Recording whose phones get AI-Benchmark's scores, by their models.")
    ] = None,
    model_map: Annotated[
        Path | None, typer.Option(help="CSV of android_model and benchmark_model, the models' names in AI-Benchmark.")
    ] = None,
) -> None:
    """Turn a recording into the Parquet file that a run reads."""
    are_tracks = links is None and not sources[0].is_dir() and (format_ or detect(sources[0])) == "gpx"
    if not are_tracks and (links is not None or len(sources) > 1 or sources[0].is_dir()):
        others = (lengths, observed, require, median_s, stays, gap_s, phones, model_map)
        if any(option is not None for option in others):
            raise EdgesimError(
                "--lengths, --observed, --require, --median-s, --stays, --gap-s, --phones and --model-map: are not for "
                "recordings of capacity"
            )
        link_rows = convert_links(sources, target, format_, links or "*", length_s)
        say(f"{target}: {_in_short(link_rows)}\n{_links_keys(target, link_rows)}")
        return
    recorded = convert(
        sources[0],
        target,
        format_,
        observed,
        unobserved,
        stays,
        gap_s,
        require=_parts(require),
        length_s=length_s,
        lengths=lengths,
        median_s=median_s,
        more=sources[1:] or None,
        phones=None if phones is None else _with_models(phones),
        model_map=model_map,
    )
    say(f"{target}: {_in_short(recorded)}")
    if isinstance(recorded, Capacity):
        say(_environment_keys(target, recorded))
    elif isinstance(recorded, LinkRows):
        say(_links_keys(target, recorded))
    elif isinstance(recorded, Profile):
        say(f'In a config: devices.profile = "{target}"')
    elif isinstance(recorded, PositionRows):
        say(f'In a config:\n[mobility]\nmodel = "recorded"\nfile = "{target}"\nafter_end = "wrap"')
        if stays is not None:
            say(_availability_keys(stays))
    else:
        say(f"In a config:\n{_availability_keys(target)}")


@app.command()
@plain_errors
def show(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A recording of any format, or the name of a file under traces/.")
    ],
    format_: FormatOption = None,
    require: RequireOption = None,
    length_s: LengthOption = None,
    lengths: LengthsOption = None,
    median_s: MedianOption = None,
    observed: ObservedOption = None,
    unobserved: UnobservedOption = "absent",
    out: Annotated[Path | None, typer.Option(help="Folder of the figure; runs/trace-NAME when absent.")] = None,
    figure_format: Annotated[str, typer.Option(help=FORMAT_HELP)] = USUAL,
) -> None:
    """Print statistics of a recording and draw them."""
    # Imported here: matplotlib takes long to load, and the other commands do not need it.
    from edgesim.plots import style
    from edgesim.plots.trace import MOST_TABLES, draw_anatomy, draw_capacity, draw_positions, draw_profile

    formats = known_formats(figure_format, "--figure-format")
    path = find("traces", file, ".parquet")
    options = {"require": _parts(require), "length_s": length_s, "lengths": lengths, "median_s": median_s}
    recorded = read_recording(path, format_, **options)
    need_availability(path, recorded, observed)
    console = PlainConsole()
    folder = out or Path("runs") / f"trace-{path.stem}"
    if isinstance(recorded, RecordedAvailability):
        statistics = anatomy(settle(recorded, observed, unobserved))
        print_whole(console, anatomy_table({path.stem: statistics}))
        if statistics.intervals.models is not None:
            say(models_in_short(statistics.intervals.models))
        figure, name = draw_anatomy({path.stem: statistics}), "anatomy"
    elif isinstance(recorded, Profile):
        print_whole(console, profile_table(path.stem, recorded))
        for note in _notes(recorded):
            say(note)
        figure, name = draw_profile(recorded.s_per_sample, recorded.link_bps), "profile"
    elif isinstance(recorded, LinkRows):
        print_whole(console, links_table(path.stem, recorded))
        shown = range(min(recorded.device_count, MOST_TABLES))
        figure, name = draw_capacity({f"device {device}": recorded.of(device) for device in shown}), "links"
    elif isinstance(recorded, PositionRows):
        print_whole(console, positions_table(path.stem, recorded))
        figure, name = draw_positions(recorded.device, recorded.x_m, recorded.y_m), "positions"
    else:
        print_whole(console, capacity_table(recorded))
        figure, name = draw_capacity(recorded.tables), "capacity"
    for drawn in style.save(figure, folder / name, formats):
        say(drawn)


@app.command(name="fetch")
@plain_errors
def fetch_(
    name: Annotated[str, typer.Argument(help=f"{', '.join(ORIGINALS)}.")],
    out: Annotated[Path, typer.Option(help="Folder to put it into.")] = Path("."),
) -> None:
    """Download a public recording, checked against its checksum."""
    path = fetch(name, out)
    original = ORIGINALS[name]
    say(f"{path}: {original.size:,} bytes of {original.repository} ({original.licence}); checksum right")


def _availability_keys(target: Path) -> str:
    return f'[availability]\nmodel = "table"\nfile = "{target}"\nafter_end = "wrap"'


def _environment_keys(target: Path, capacity: Capacity) -> str:
    first = next(iter(capacity.tables))
    end_s = f"{capacity.ends_s[first]:.10g}" if first in capacity.ends_s else "SECONDS"
    trace = f'trace = "{first}"\n' if len(capacity.tables) > 1 else ""
    # A path in an environment file is relative to that file's folder, which is not known here.
    file = target.resolve().as_posix()
    return f'In an environment file:\n[capacity]\nfile = "{file}"\n{trace}end_s = {end_s}\nafter_end = "wrap"'


def _links_keys(target: Path, links: LinkRows) -> str:
    end_s = "" if links.end_s is not None else "end_s = SECONDS\n"
    return f'In a config: radio.sharing = "own" and\n[devices.links]\nfile = "{target}"\n{end_s}after_end = "wrap"'


def _in_short(recorded: Recorded) -> str:
    if isinstance(recorded, RecordedAvailability):
        stats = anatomy(recorded.available)
        return (
            f"{len(stats.sessions):,} devices, {len(stats.duration_s):,} periods, {stats.length_s / 86400:.2f} days; "
            f"online {stats.pooled_share:.2%} of the time, not observed {not_observed(stats)}"
            + (f"; {recorded.cut:,} periods cut at finish_time" if recorded.cut else "")
            + (f"; {models_in_short(stats.intervals.models)}" if stats.intervals.models is not None else "")
        )
    if isinstance(recorded, Profile):
        speed = f"median {1e3 * np.median(recorded.s_per_sample):.4g} ms a sample"
        return "; ".join([f"{len(recorded.s_per_sample):,} devices, {speed}", *_notes(recorded)])
    if isinstance(recorded, LinkRows):
        return f"links of {recorded.device_count:,} devices, {len(recorded.device):,} rows"
    if isinstance(recorded, PositionRows):
        width_m, height_m = float(np.ptp(recorded.x_m)), float(np.ptp(recorded.y_m))
        return (
            f"positions of {recorded.device_count:,} devices, {len(recorded.device):,} rows, "
            f"{recorded.t_s.max():,.10g} s; {width_m:,.0f} x {height_m:,.0f} m around "
            f"({recorded.x_m.min() + width_m / 2:,.0f}, {recorded.y_m.min() + height_m / 2:,.0f})"
        )
    return f"{len(recorded.tables)} capacity trace(s), {sum(len(t_s) for t_s, _ in recorded.tables.values()):,} rows"


def _notes(profile: Profile) -> list[str]:
    """Notes about a profile."""
    notes = [] if profile.models is None else [models_in_short(profile.models)]
    if profile.guessed:
        notes.append(f"{profile.guessed:,} have models without a score and get the median score of the others")
    return notes


def _with_models(path: Path) -> Intervals | Profile:
    """A recording of phones with their models; raises `EdgesimError` if it has no models."""
    recorded = read_recording(path)
    phones = recorded.available if isinstance(recorded, RecordedAvailability) else recorded
    if not isinstance(phones, Intervals | Profile) or phones.models is None:
        raise EdgesimError(f"--phones: expected a recording with the models of its phones (got {path})")
    return phones


def _parts(require: str | None) -> list[str] | None:
    return None if require is None else [part.strip() for part in require.split(",") if part.strip()]
