"""Short runs under KPFL for several tests."""

from contract import KPFL, make_config, work

FEDAVG = ("fedavg", "own")


def config_of(kpfl=(), pair=FEDAVG, **given):
    return make_config(pair, options={"kpfl": KPFL | dict(kpfl)}, **given)


def validated():
    """With images of the server's own, by which it judges."""
    config = config_of()
    data = config.data.model_copy(update={"validation_per_class": 2})
    algorithm = config.algorithm.model_copy(update={"kpfl": config.algorithm.kpfl | {"validation_accept": True}})
    return config.model_copy(update={"data": data, "algorithm": algorithm})


def merged_rounds(learner, *rounds, first=1):
    """The states of the server after rounds in which some devices are merged."""
    states = []
    for number, ids in enumerate(rounds, first):
        work(learner, number, ids)
        states.append(learner.states[0])
    return states
