"""Which policy gets more updates through a narrow band? A study of two policies over several seeds."""

from edgesim.scenario import Policies, Rounds, Runs, names, scenario, start


@scenario("runs/mine", quick={"rounds": 3, "seeds": 1})
def main(runs: Runs, policies: Policies = "random,best-channel", rounds: Rounds = 30) -> None:
    """Compare policies on a band of 2 MHz."""
    base = {
        "rounds": rounds,
        "radio": {"bandwidth_hz": 2e6},
        "data": {"dataset": "none", "partition": "fedteddi"},
        "learning": {"training": "none", "pretrain": True},
        "round": {"payload_bits": 1e6},
    }
    runs.add(base, {"selection.policy": names(policies)})
    runs.compare()


if __name__ == "__main__":
    start(main)
