"""Learning algorithms, one per file, and their registry."""

import copy
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import create_model

from edgesim.base.errors import EdgesimError
from edgesim.base.needs import GIVEN, Rule, refuse, value_at
from edgesim.base.registry import Registry, look_up
from edgesim.base.validation import options_of, validate
from edgesim.config import AlgorithmConfig, RunConfig
from edgesim.learning.algorithms import kpfl, kpfl_settings
from edgesim.learning.algorithms.afl import Afl
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions, Options, Sizes
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
from edgesim.learning.algorithms.mifa import Mifa
from edgesim.learning.algorithms.moon import Moon
from edgesim.learning.algorithms.safa import Safa
from edgesim.learning.algorithms.scaffold import Scaffold
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

LOCAL_METHODS = ("phases", "pull", "passes_over", "sent", "loss", "first_kept", "compute_factor")
"""Methods of an algorithm's local half; all others are its server half's, but for attributes that `loss` looks at."""


def make_algorithm(config: AlgorithmConfig, sizes: Sizes, streams: Streams) -> Algorithm:
    """The algorithm of a config, of one half or of two; raises `EdgesimError`."""
    options = resolve_options(config)
    # Each half has options of its own class: that of both together is made here, and no other process could import it.
    local, server = (half(_own_options(half, options), sizes, streams) for half in halves(config))
    whole = server if type(local) is type(server) else combined(local, server)
    if config.kpfl is None:
        return whole
    return kpfl.Kpfl(whole, kpfl_settings.options_of(config.kpfl), sizes, streams).around()


def combined(local: Algorithm, server: Algorithm) -> Algorithm:
    """An algorithm of the local half of ``local`` and the server half of ``server``."""
    both = copy.copy(server)
    for name in (*LOCAL_METHODS, "teachers", "features", "draws"):
        setattr(both, name, getattr(local, name))
    both.tables = local.tables + server.tables
    both.trainable_tables = local.trainable_tables + server.trainable_tables
    return both


def resolve_options(config: AlgorithmConfig) -> dict[str, Any]:
    """All options of both halves, defaults included, keyed as in the config; raises `EdgesimError`."""
    return _options(config).model_dump()


def resolve(config: RunConfig) -> AlgorithmConfig:
    """The algorithm of a run with all options, defaults included; raises `EdgesimError`."""
    own = config.algorithm
    return own.model_copy(update={"kpfl": kpfl_settings.resolve_options(config)}).with_options(resolve_options(own))


def looks_at_start(local: type[Algorithm]) -> bool:
    """Whether a local half overrides any method, so that it may depend on the start weights."""
    return any(getattr(local, method) is not getattr(Algorithm, method) for method in LOCAL_METHODS)


def check_frames(config: RunConfig, frames: int) -> None:
    """Refuse skipped rounds in runs of several frames, and best models with a server that keeps state.

    Raises `EdgesimError`.
    """
    if frames == 1:
        return
    why = f"the data have {frames} frames, and a best accuracy on one says nothing of the next"
    refuse(config, [Rule({"data.dataset": GIVEN}, {"merging": None}, why)])
    key = "algorithm.name" if config.algorithm.server == "own" else "algorithm.server"
    kind: type[Algorithm] = ALGORITHMS[value_at(config, key)]
    if config.algorithm.kpfl is not None:
        key, kind = "algorithm.kpfl", kpfl.Kpfl
    if kind.keeps_state:
        why = f"the server's state belongs to the last model, not to the best, and the data have {frames} frames"
        refuse(config, [Rule({key: GIVEN, "learning.training": "real"}, {"learning.keep_best": False}, why)])


def halves(config: AlgorithmConfig) -> tuple[type[Algorithm], type[Algorithm]]:
    """Classes of the local and of the server half of a config; raises `EdgesimError` where they do not go together."""
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
    # What an update counts is up to the server half: the other's `weights` would have no effect beside MIFA's rule.
    fields: dict[str, Any] = {
        key: (field.annotation, field)
        for half in (local, server)
        for key, field in half.model_fields.items()
        if half is server or key not in AveragingOptions.model_fields
    }
    return create_model("BothOptions", __base__=Options, **fields)
