"""Learning algorithms, one per file, wrappers of their servers, and their registries."""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from pydantic import create_model

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.registry import Registry, look_up
from edgesim.base.validation import options_of, validate
from edgesim.config import AlgorithmConfig, RunConfig
from edgesim.learning.algorithms.afl import Afl
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions, Options, Wrapper
from edgesim.learning.algorithms.cfed import Cfed
from edgesim.learning.algorithms.fedadam import FedAdam
from edgesim.learning.algorithms.fedavg import FedAvg
from edgesim.learning.algorithms.fedavgm import FedAvgM
from edgesim.learning.algorithms.fedcl import FedCl
from edgesim.learning.algorithms.feddf import FedDf
from edgesim.learning.algorithms.feddyn import FedDyn
from edgesim.learning.algorithms.fedgen import FedGen
from edgesim.learning.algorithms.fedmd import FedMd
from edgesim.learning.algorithms.fedproto import FedProto
from edgesim.learning.algorithms.fedprox import FedProx
from edgesim.learning.algorithms.fedstg import FedStg
from edgesim.learning.algorithms.fedyogi import FedYogi
from edgesim.learning.algorithms.flwf import Flwf
from edgesim.learning.algorithms.fpl import Fpl
from edgesim.learning.algorithms.kpfl import KPFL
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.mifa import Mifa
from edgesim.learning.algorithms.moon import Moon
from edgesim.learning.algorithms.records import Sizes
from edgesim.learning.algorithms.safa import Safa
from edgesim.learning.algorithms.scaffold import Scaffold
from edgesim.learning.algorithms.server_half import ServerHalf
from edgesim.streams import Streams

_OWN: dict[str, type[Algorithm]] = {
    "afl": Afl,
    "cfed": Cfed,
    "fedadam": FedAdam,
    "fedavg": FedAvg,
    "fedavgm": FedAvgM,
    "fedcl": FedCl,
    "feddf": FedDf,
    "feddyn": FedDyn,
    "fedgen": FedGen,
    "fedmd": FedMd,
    "fedproto": FedProto,
    "fedprox": FedProx,
    "fedstg": FedStg,
    "fedyogi": FedYogi,
    "flwf": Flwf,
    "fpl": Fpl,
    "mifa": Mifa,
    "moon": Moon,
    "safa": Safa,
    "scaffold": Scaffold,
}
ALGORITHMS = Registry("algorithm.name", "algorithms", Algorithm, _OWN)

WRAPPERS: dict[str, Wrapper] = {"kpfl": KPFL}
"""Server halves around those of algorithms, by the keys of their options in ``[algorithm]``."""


class Halves(NamedTuple):
    """The two halves of a run's algorithm."""

    local: LocalHalf
    server: ServerHalf


def make_halves(config: AlgorithmConfig, sizes: Sizes, streams: Streams) -> Halves:
    """The halves of a config's algorithm; raises `EdgesimError`, also where data or fleet do not fit it."""
    options = resolve_options(config)
    # Each half has options of its own class: that of both together is made here, and no other process could import it.
    local, server = ((kind, _own_options(kind, options)) for kind in halves(config))
    for kind, own in (local, server):
        kind.check(own, sizes)
    half = server[0].Server(server[1], sizes, streams)
    for key, wrapper in wrappers(config).items():
        half = wrapper.around(half, wrapper.Options(**getattr(config, key)), sizes, streams)
    return Halves(local[0].Local(local[1], sizes, streams), half)


def wrappers(config: AlgorithmConfig) -> dict[str, Wrapper]:
    """Wrappers of a config, by their keys."""
    return {key: wrapper for key, wrapper in WRAPPERS.items() if getattr(config, key) is not None}


def epochs_over(config: AlgorithmConfig, sizes: Sizes, held: Integers) -> list[tuple[int, int | None]]:
    """`Algorithm.epochs_over` of both halves."""
    options = resolve_options(config)
    return [pair for kind in halves(config) for pair in kind.epochs_over(_own_options(kind, options), sizes, held)]


def sends_models(config: AlgorithmConfig) -> bool:
    """Whether models and updates travel, as the local half of a config has it; raises `EdgesimError`."""
    return _own_options(halves(config)[0], resolve_options(config)).sends_models


def start_note(config: RunConfig, rounds: float) -> str:
    """Messages of the wrappers of a complete config before the first of so many rounds; empty where there are none."""
    around = wrappers(config.algorithm).items()
    notes = [kind.note(kind.Options(**getattr(config.algorithm, key)), config, rounds) for key, kind in around]
    return "; ".join(note for note in notes if note)


def resolve_options(config: AlgorithmConfig) -> dict[str, Any]:
    """All options of both halves, defaults included, keyed as in the config; raises `EdgesimError`."""
    return _options(config).model_dump()


def resolve(config: RunConfig) -> AlgorithmConfig:
    """The algorithm of a run with all options, defaults included; raises `EdgesimError`."""
    own = config.algorithm
    around = {key: kind.resolved(config, getattr(own, key)).model_dump() for key, kind in wrappers(own).items()}
    return own.model_copy(update=around).with_options(resolve_options(own))


def halves(config: AlgorithmConfig) -> tuple[type[Algorithm], type[Algorithm]]:
    """Algorithms of both halves of a config; raises `EdgesimError` where they do not go together."""
    local = look_up(ALGORITHMS, config.name, "algorithm.name")
    if config.server in ("own", config.name):
        return local, local
    halves = {name: kind for name, kind in ALGORITHMS.items() if "server" in kind.halves}
    try:
        if config.server in ALGORITHMS:
            halves[config.server] = ALGORITHMS[config.server]
    except EdgesimError as error:
        reason = str(error).removeprefix("algorithm.name: ")
        raise EdgesimError(f"algorithm.server: {reason}", "algorithm.server") from None
    server = look_up({"own": local} | halves, config.server, "algorithm.server")
    for half, key, name in (("local", "name", config.name), ("server", "server", config.server)):
        if half not in ALGORITHMS[name].halves:
            others = ", ".join(other for other, kind in ALGORITHMS.items() if half in kind.halves)
            raise EdgesimError(
                f"algorithm.{key}: the {half} half of {name!r} cannot be combined with another algorithm; "
                f"those that can: {others}"
            )
    return local, server


def _own_options(half: type[Algorithm], options: Mapping[str, Any]) -> Options:
    """Options of one half, selected from the options of both."""
    own = {name: options[name] for name in half.Options.model_fields if name in options}
    return validate(half.Options, own, "algorithm", "algorithm")


def _options(config: AlgorithmConfig) -> Options:
    local, server = (half.Options for half in halves(config))
    both = local if local is server else _both_options(local, server)
    name = config.name if local is server else f"{config.name} with server {config.server}"
    kinds: dict[str, type[Options]] = {known: kind.Options for known, kind in ALGORITHMS.items()}
    return options_of(kinds | {name: both}, name, config.options, "algorithm.name", "algorithm")


@cache
def _both_options(local: type[Options], server: type[Options]) -> type[Options]:
    """The options of two halves together, of which those of one name are the server half's."""
    # What an update counts is up to the server half: the other's `weights` would have no effect.
    fields: dict[str, Any] = {
        key: (field.annotation, field)
        for half in (local, server)
        for key, field in half.model_fields.items()
        if half is server or key not in AveragingOptions.model_fields
    }
    return create_model("BothOptions", __base__=Options, **fields)
