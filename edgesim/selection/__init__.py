"""Scheduling policies, which choose the devices of a round, and their registry."""

from collections.abc import Mapping
from typing import Any

from edgesim.base.registry import Registry
from edgesim.base.validation import options_of
from edgesim.selection.afl import AflPolicy
from edgesim.selection.availability_first import AvailabilityFirst
from edgesim.selection.best_channel import BestChannel
from edgesim.selection.best_norm import BestNorm
from edgesim.selection.fed_cbs import FedCbs
from edgesim.selection.fedcgd import FedCgd
from edgesim.selection.fedcs import FedCs
from edgesim.selection.feddance import FedDance
from edgesim.selection.fedteddi import FedTeddi
from edgesim.selection.oort import Oort
from edgesim.selection.power_of_choice import PowerOfChoice
from edgesim.selection.pure_drift import PureDrift
from edgesim.selection.random_choice import RandomChoice
from edgesim.selection.refl import Refl
from edgesim.selection.safa import SafaPolicy
from edgesim.selection.safa_lite import SafaLite
from edgesim.selection.stays_longest import StaysLongest
from edgesim.selection.view import Options, Selector

_OWN: dict[str, type[Selector]] = {
    "random": RandomChoice,
    "best-channel": BestChannel,
    "best-norm": BestNorm,
    "power-of-choice": PowerOfChoice,
    "pure-drift": PureDrift,
    "fed-cbs": FedCbs,
    "fedcgd": FedCgd,
    "fedteddi": FedTeddi,
    "feddance": FedDance,
    "oort": Oort,
    "refl": Refl,
    "safa": SafaPolicy,
    "safa-lite": SafaLite,
    "fedcs": FedCs,
    "availability-first": AvailabilityFirst,
    "afl": AflPolicy,
    "stays-longest": StaysLongest,
}
SELECTORS = Registry("selection.policy", "policies", Selector, _OWN)


def make_selector(policy: str, options: Mapping[str, Any], device_count: int, class_count: int) -> Selector:
    """A policy by its config name; raises `EdgesimError` for an unknown name or a bad option."""
    checked = _checked(policy, options)
    return SELECTORS[policy](checked, device_count, class_count)


def resolve_options(policy: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a policy, defaults included, keyed as in the config; raises as `make_selector` does."""
    return _checked(policy, options).model_dump()


def _checked(policy: str, options: Mapping[str, Any]) -> Options:
    kinds = {name: kind.Options for name, kind in SELECTORS.including(policy).items()}
    return options_of(kinds, policy, options, "selection.policy", "selection", beside=["policy"])
