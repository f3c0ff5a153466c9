"""Dry runs: the complete config, payload, first round and memory of a run, and why it would be refused."""

import copy
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import tomli_w

from edgesim.api.configs import Config, Overrides, completed, configured, folder_for
from edgesim.api.run import tell_user_code
from edgesim.base.errors import refusals
from edgesim.base.registry import plug_ins_named
from edgesim.config import RunConfig
from edgesim.devices.battery import make_batteries
from edgesim.engine.check_in import next_time_with
from edgesim.engine.decision import Planner
from edgesim.engine.estimates import PlannedEstimates
from edgesim.engine.idle_devices import are_there
from edgesim.learning.charges import numbers_of
from edgesim.learning.datasets import is_downloaded_first
from edgesim.screen.console import PlainConsole
from edgesim.simulation import composition as simulation
from edgesim.simulation.complete import as_toml
from edgesim.simulation.feasibility import timeline_of_round
from edgesim.simulation.simulation import Simulation


@dataclass(frozen=True)
class Outlook:
    """The result of `dry_run`."""

    config: RunConfig
    """The complete config, as in the run's folder."""
    folder: Path
    """The run's folder."""
    facts: dict[str, str] = field(default_factory=dict)
    """Facts about the run as text, by subject; empty if the run would be refused."""
    refused: list[str] = field(default_factory=list)
    """Reasons for which the run would be refused; empty if it would not."""

    def toml(self) -> str:
        """The complete config as a config file."""
        text: str = tomli_w.dumps(as_toml(self.config))
        return text


def dry_run(
    config: Config, out: str | Path | None = None, set: Overrides | None = None, *, user_code: bool = True
) -> Outlook:
    """Work out what `edgesim.run` would do with the same arguments, and write nothing.

    Data are read and the model is made, but nothing is trained; images are decoded into the cache, as for a run. Data
    that the run would download first are not fetched: the result then says no more than that. Raises `EdgesimError` for
    a config that is not valid in itself; other reasons to refuse it are in the result.
    """
    settings = configured(config, set)
    is_file = isinstance(config, str | Path)
    tell_user_code(settings, str(config) if is_file else "config", not user_code, PlainConsole() if is_file else None)
    settings = completed(settings, set)
    folder = folder_for(out, config, "run", [settings])
    if is_downloaded_first(settings.data):
        text = "files are missing that the run would download; the rest is known once they are there"
        return Outlook(settings, folder, {"data": f"{settings.data.dataset} in {settings.data.folder}: {text}"})
    facts: dict[str, str] = {}
    refused = refusals(lambda: facts.update(_folder(folder, settings)))

    def look() -> None:
        with plug_ins_named(), Simulation(settings) as ready:
            facts.update(_payload(ready) | _coding(ready) | _first_round(ready) | _memory(ready))
            facts.update({f"note on {about}": note for about, note in ready.notes.items()})

    refused += refusals(look)
    return Outlook(settings, folder, {} if refused else facts, refused)


def _folder(folder: Path, config: RunConfig) -> dict[str, str]:
    why = simulation.why_run(folder, config)
    there = "finished, would be reused" if why is None else f"{why}, would be resumed or restarted" if why else "new"
    return {"folder": f"{folder} ({there})"}


def _payload(ready: Simulation) -> dict[str, str]:
    """Bits of one device in the first round, each way."""
    download_bits, upload_bits = ready.learner.accounts.plan(np.arange(ready.world.config.devices.count), 1)
    return {
        "payload": f"{_span(np.asarray(upload_bits))} bits up and {_span(np.asarray(download_bits))} down, per device"
    }


def _coding(ready: Simulation) -> dict[str, str]:
    """Bits of a coded update and change, and the least bandwidths of the first round with coding and without."""
    accounts, planner = ready.learner.accounts, ready.planner
    numbers, texts = f"{numbers_of(accounts.model_bits):,} numbers", []
    if accounts.up is not None:
        more = ", and more where the channel carries more" * (accounts.up.rule.known != "before the run")
        size = _of_a_model(accounts.up.update_bits, "", accounts.model_bits)
        texts.append(f"an update of {numbers} takes {size}{more}")
    if accounts.down is not None:
        change = _of_a_model(accounts.down.change_bits, " on the way down", accounts.model_bits)
        texts.append(f"a change of {numbers} takes {change}")
    if not texts:
        return {}
    text = "; ".join(texts)
    if planner.world.own_links is None:
        plain = copy.copy(accounts)
        plain.up = plain.down = None
        needs = {"with coding": _least_hz(planner), "without": _least_hz(replace(planner, accounts=plain))}
        text += "; least bandwidths in the first round " + ", ".join(f"{how} {hz}" for how, hz in needs.items())
    return {"coding": text}


def _of_a_model(bits: int, where: str, model_bits: float) -> str:
    return f"{bits:,} bits{where}, {bits / model_bits:.3%} of a model's"


def _least_hz(planner: Planner) -> str:
    """The smallest, the median and the largest least bandwidth of the first round among devices that have one."""
    everyone = np.arange(planner.world.config.devices.count, dtype=np.int64)
    samples = planner.accounts.charged_samples(everyone, 1)
    needs_hz = np.asarray(timeline_of_round(planner, everyone, samples, 1, planner.world.config.round).need_hz)
    needs_hz = needs_hz[np.isfinite(needs_hz)]
    if not len(needs_hz):
        return "none"
    low, middle, high = (f"{hz / 1e6:.3g}" for hz in (needs_hz.min(), np.median(needs_hz), needs_hz.max()))
    return f"{low} to {high} MHz, median {middle}"


def _first_round(ready: Simulation) -> dict[str, str]:
    """Devices present when the first round begins, those that could be in time, and how many fit the band at once."""
    world, config = ready.world, ready.world.config
    everyone = np.arange(config.devices.count, dtype=np.int64)
    batteries, at_s = make_batteries(config.devices, world.streams), 0.0
    if world.availability.by_rounds:
        world.availability.begin_slot(at_s)
    else:
        at_s = next_time_with(config.round.min_candidates, world.availability, batteries, everyone, at_s, world.search)
        if at_s >= world.search.limit_s:
            return {"first round": "never, since too few devices come"}
    there = everyone[are_there(world.availability, batteries, everyone, at_s)]
    if not len(there):
        return {"first round": "nobody is there in the first slot"}
    timeline = timeline_of_round(ready.planner, there, ready.charged[there], 1, config.round)
    needs_hz = np.asarray(timeline.need_hz)
    in_time = int(np.count_nonzero(needs_hz <= world.bands_hz[timeline.station]))
    text = f"{len(there)} of {len(everyone)} devices are there at {at_s:,.6g} s, {in_time} can meet the deadline"
    if world.own_links is None:
        at_once = PlannedEstimates(timeline, world.bands_hz, None).places()
        text += f", {at_once} of these fit the band at once by their least bandwidths"
        if in_time:
            usable = needs_hz[needs_hz <= world.bands_hz[timeline.station]]
            text += f" ({usable.min() / 1e6:.3g} to {usable.max() / 1e6:.3g} MHz of {world.bands_hz.sum() / 1e6:g})"
    return {"first round": text + (f"; {config.round.count} are taken at most" if config.round.count else "")}


def _memory(ready: Simulation) -> dict[str, str]:
    """Memory of one round's updates, and of the state kept for each device, in MB."""
    config, facts = ready.world.config, ready.learner.facts()
    if config.learning.training == "none":
        return {"memory": "no training: tables of events only"}
    devices = config.round.count or config.devices.count
    update_mb = (8e-6 if config.learning.precision == "float64" else 4e-6) * facts["parameters"]
    text = f"{devices} updates of {update_mb:,.3g} MB in a round, {devices * update_mb:,.3g} MB, at most"
    if (upload := config.upload) is not None:
        # The updates as they were, as they were decoded, and the memories that they leave.
        remembers = upload.feedback != "none"
        held_mb = (2 + remembers) * devices * update_mb
        text += f", and {held_mb:,.3g} MB with what is decoded{' and remembered' * remembers} of them in a merge"
    if per_device := facts.get("bytes_per_merged_device"):
        text += f"; {per_device / 1e6:,.3g} MB remembered of each device that was merged"
    text += (
        f"; models and devices' state take up to {ready.learner.most_remembered_bytes / 1e6:,.3g} MB of a checkpoint"
    )
    return {"memory": f"{text}; training on {facts['device_kind']} by {facts['back_end']}"}


def _span(values: np.ndarray) -> str:
    low, high = values.min(), values.max()
    return f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
