"""Rounds or no rounds? Five protocols on one world of slow and fast phones, at equal simulated time.

Synchronous rounds that drop latecomers, rounds that invite 30 % too many (FedScale), REFL, FedBuff's buffer and
FedAsync: accuracy against simulated time, wasted work, staleness. REFL invites 30 % too many, takes first those that
are about to leave, as it asks over a window that follows the rounds' lengths, lets nobody take part again for five
rounds, and merges what comes late by its own weights; the others choose at random.
"""

from typing import Annotated, Any

from typer import Option

from edgesim.scenario import Model, Runs, Target, names, refuse_unknown, scenario, start

PHONE_UPDATE_BITS = 17_881_664.0


def protocols(count: int, tmax_s: float) -> dict[str, dict[str, Any]]:
    """Config sections of each protocol, with ``count`` devices per round or at work."""
    rounds = {"computes": "selected", "allocator": "equal_share", "delay_knowledge": "planned", "tmax_s": tmax_s}
    over = rounds | {"over_commitment": 1.3}
    return {
        "synchronous": {"round": rounds},
        "over-committed": {"round": over},
        "refl": {
            "round": over | {"late": "keep"},
            "staleness": {"weight": "refl"},
            "selection": {"policy": "refl", "window": "rounds"},
        },
        "fedbuff": {
            "round": {"protocol": "buffered", "protocol_options": {"buffer": max(1, count // 2)}, "tmax_s": tmax_s}
        },
        "fedasync": {"round": {"protocol": "asynchronous", "tmax_s": tmax_s}},
    }


@scenario("runs/async-vs-sync", seeds=3, quick={"devices": 40, "count": 5, "hours": 0.5, "target": 0.5, "seeds": 1})
def main(
    runs: Runs,
    chosen: Annotated[str, Option("--protocols", help="Protocols to compare, with the first one.")] = (
        "synchronous,over-committed,refl,fedbuff,fedasync"
    ),
    devices: Annotated[int, Option(min=1, help="Number of phones.")] = 200,
    count: Annotated[int, Option(min=1, help="Phones per round, or at work.")] = 10,
    tmax: Annotated[float, Option(min=0.1, help="Deadline in seconds.")] = 60.0,
    hours: Annotated[float, Option(min=0.01, help="Simulated hours.")] = 2.0,
    dataset: Annotated[str, Option(help="Data set.")] = "digits",
    model: Model = "mlp",
    target: Target = 0.8,
) -> None:
    """Compare synchronous, over-committed, late-tolerant, buffered and asynchronous training."""
    compared, known = names(chosen), protocols(count, tmax)
    refuse_unknown("--protocols", compared, known)
    base = {
        "stop_at_s": 3600 * hours,
        "devices": {"count": devices, "a_s_per_sample": 0.02, "mu_samples_per_s": 10.0},
        "radio": {"bandwidth_hz": 5e6},
        "availability": {"model": "renewal"},
        "data": {"dataset": dataset, "partition": "dirichlet", "partition_options": {"alpha": 0.3}},
        "learning": {"model": model, "pretrain": False, "lr": 0.05, "lr_decay": 1.0},
        # Who is tested more often is above the target sooner, by chance: all are looked at once a minute.
        "evaluation": {"every_s": 60.0},
        "selection": {"policy": "random"},
    }
    for name in compared:
        common = {"payload_bits": PHONE_UPDATE_BITS, "admission": "count", "count": count}
        own = base | known[name] | {"round": common | known[name]["round"]}
        runs.add(own, labels={"protocol": name})
    runs.compare(target=target, reference="random", against=[("protocol", compared[0])])


if __name__ == "__main__":
    start(main)
