"""Does an agent that learns to schedule beat rules of one line?

Agents train on simulated time alone: the cross-entropy method on a weighted sum of five features, in the lines below,
and PPO of Stable-Baselines3 where that is installed. Then they are judged in runs that learn, on worlds that they have
not met, beside Random, Best Channel, least band first and FedTeddi. Training that was stopped resumes.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from typer import Option

from edgesim.scenario import Devices, Rounds, Runs, agents, figures, scenario, start, tables

WORLD = {
    "radio": {"channel": "fedteddi-macro", "bandwidth_hz": 20e6},
    "round": {"tmax_s": 0.8, "payload_bits": 17_881_664.0},
}
TIMING = WORLD | {
    "data": {"dataset": "none", "partition": "fedteddi"},
    "learning": {"training": "none", "pretrain": False},
}
LEARNING = WORLD | {
    "data": {"dataset": "digits", "partition": "fedteddi", "samples_per_device": 60},
    "learning": {"model": "mlp", "lr": 0.1, "pretrain": True},
}
RULES = ["random", "best-channel", "fedteddi"]
FEATURES = ("gain", "delay", "need", "samples", "age")
UNSEEN = 1_000_000
"""First seed of training; the runs that judge have the seeds from 0 on."""
ELITE, LEAST_SPREAD = 0.25, 0.05


def cross_entropy(
    config: dict[str, Any], generations: int, population: int, episodes: int, runs: Runs
) -> agents.Training:
    """Train weights of the features by the cross-entropy method (Rubinstein, 1999); returns the state of training."""
    file = runs.out / "training/cem.json"
    decisions = population * episodes * config["rounds"]
    asked = config, population, episodes, runs.set_
    training = agents.Training.at(file, generations * decisions, *asked, fresh=runs.fresh)
    while len(training.steps) < generations:
        number = len(training.steps)
        mean = np.array(training.memory.get("mean", np.zeros(len(FEATURES))))
        spread = np.array(training.memory.get("spread", np.ones(len(FEATURES))))
        drawn = mean + spread * np.random.default_rng([UNSEEN, number]).normal(size=(population, len(FEATURES)))
        worlds = range(UNSEEN + number * episodes, UNSEEN + (number + 1) * episodes)
        # All of a generation meet the same worlds, so that they differ by their weights alone.
        arrived = np.zeros(population)
        for place, weights in enumerate(drawn):
            played = [agents.arrivals(linear(weights), config, runs.set_, seed) for seed in worlds]
            arrived[place] = np.mean(played)
        elite = drawn[np.argsort(-arrived)[: max(2, round(ELITE * population))]]
        memory = {"mean": elite.mean(axis=0), "spread": np.maximum(elite.std(axis=0), LEAST_SPREAD)}
        training.save(decisions, float(arrived.mean()), **memory)
    return training


def linear(weights: Sequence[float]) -> agents.Network:
    """Agent that ranks devices by a weighted sum of `FEATURES`."""
    return agents.linear(dict(zip(FEATURES, weights, strict=True)))


QUICK = {"seeds": 2, "rounds": 6, "generations": 2, "population": 6, "episodes": 1, "ppo_steps": 0}


@scenario("runs/learned-scheduler", seeds=10, quick=QUICK)
def main(
    runs: Runs,
    devices: Devices = 30,
    rounds: Rounds = 20,
    generations: Annotated[int, Option(min=1, help="Generations of the cross-entropy method.")] = 10,
    population: Annotated[int, Option(min=4, help="Agents of a generation.")] = 16,
    episodes: Annotated[int, Option(min=1, help="Episodes that each of them plays.")] = 2,
    ppo_steps: Annotated[int, Option(min=0, help="Decisions in the training of PPO; 0 for none.")] = 16_000,
) -> None:
    """Train agents to schedule, and judge them on unseen worlds."""
    size = {"devices": {"count": devices, "radius_m": 250.0}, "rounds": rounds}
    trainings = {"cem": cross_entropy(TIMING | size, generations, population, episodes, runs)}
    networks = {"cem": linear(trainings["cem"].memory["mean"])}
    weights = zip(FEATURES, networks["cem"].layers[0][0][0].tolist(), strict=False)
    learnt = ", ".join(f"{name} {weight:.2f}" for name, weight in weights)
    print(f"cross-entropy method, {trainings['cem'].steps[-1]:,} decisions: {learnt}")
    if ppo_steps and agents.has_ppo():
        at = runs.out / "training/ppo.json"
        trainings["ppo"] = agents.Training.at(at, ppo_steps, TIMING | size, runs.set_, fresh=runs.fresh)
        networks["ppo"] = agents.train_ppo(TIMING | size, runs.set_, ppo_steps, trainings["ppo"], UNSEEN)
    elif ppo_steps:
        print("PPO is left out: Stable-Baselines3 is not installed (pip install 'edgesim[ppo]')")
    networks["least-band"] = linear([0, 0, -1, 0, 0])
    runs.add(LEARNING | size, {"selection.policy": RULES})
    for name, network in networks.items():
        file = runs.out / f"training/{name}.safetensors"
        network.save(file)
        selection = {"policy": "edgesim.rl.Agent", "file": str(file)}
        runs.add(LEARNING | size | {"selection": selection}, labels={"policy": name})
    done = runs.compare(runs.out / "judged", reference="random", against=[("policy", "least-band")])
    for reference in ("random", "least-band"):
        table = done.compare("arrived", reference=reference).table
        tables.save(table, runs.out / f"arrived-{reference}.csv")
        title = f"arrivals a round, differences to {reference} by seed; intervals corrected by Holm"
        columns = ["policy", "difference", "low_holm", "high_holm", "p_holm", "reading"]
        tables.show_texts(table[columns], title, ("policy", "reading"))
    arrived: dict[str, list[float]] = {name: [] for name in [*RULES, *networks]}
    for run in done.runs.values():
        arrived[str(run.knobs["policy"])].append(float(run.rounds["arrived"].mean()))
    curves = {name: (training.steps, training.arrivals) for name, training in trainings.items()}
    others = {name: arrived[name] for name in (*RULES, "least-band")}
    figures.save(figures.draw_learning_curve(curves, others), runs.out / "plots/learning_curve", runs.formats)
    print("arrivals a round: " + ", ".join(f"{name} {np.mean(values):.2f}" for name, values in arrived.items()))


if __name__ == "__main__":
    start(main)
