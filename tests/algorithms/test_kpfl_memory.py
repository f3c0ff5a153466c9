"""What KPFL's pool and its server's training take in memory: told, checked and kept to."""

import numpy as np
import pytest
from contract import many_devices, new_learner
from kpfl_plays import config_of, merged_rounds

from edgesim.base.errors import EdgesimError
from edgesim.learning.model_pool import pass_bytes
from edgesim.simulation import composition as simulation


def budgeted(mib, **kpfl):
    return many_devices(config_of(kpfl, memory_budget_mib=mib))


@pytest.mark.parametrize(
    ("mib", "kpfl", "said"),
    [
        (1, {"keep": "first"}, r"0.009193 MiB for each device \(1 x the model\), 1.057 MiB for all 115, above"),
        (2, {}, r", [23].\d+ MiB for all 115 and [12].\d+ MiB for generated images and a pass of one model"),
    ],
)
def test_the_pool_and_a_pass_of_its_models_must_have_room(mib, kpfl, said, tmp_path):
    with pytest.raises(EdgesimError, match=f"^algorithm: stores .*{said}.* learning.memory_budget_mib = {mib};"):
        simulation.run(budgeted(mib, **kpfl), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("mib", "fills"), [(4, True), (8, False)])
def test_memory_of_a_pool_that_is_distilled_is_told_before_the_first_round(mib, fills):
    """Passes of all models at once, or of as many as there is room for."""
    learner, heard = new_learner(budgeted(mib)), []
    learner.prepare(heard.append)
    memory = learner.memory
    least, most = pass_bytes(learner.model, (1, 8, 8), 16, 115)
    assert most == 115 * least
    assert memory.passes == ((mib << 20) - 115 * 9640 - memory.making if fills else most)
    assert learner._bench().room_bytes == (mib << 20) - 115 * 9640 - memory.making
    making, passes, total = (f"{count / 2**20:,.4g}" for count in (memory.making, memory.passes, memory.total))
    (told,) = heard
    assert told.endswith(
        f" 1.057 MiB; generated images and training on them {making}, passes of the pool over these {passes}; "
        f"together {total}"
    )
    assert memory.total == 115 * 9640 + memory.making + memory.passes
    assert (memory.total == mib << 20) == fills
    facts = learner.facts()
    assert (facts["bytes_of_made_images"], facts["bytes_of_passes_over_the_pool"]) == (memory.making, memory.passes)


def test_a_pool_of_prototypes_counts_them_too():
    """10 classes with 32 features each beside the model's numbers."""
    assert new_learner(config_of({"keep": "first"}, ("fpl", "own"))).memory.device == 4 * (2410 + 320)


@pytest.mark.parametrize(("model", "batch"), [("mlp", 128), ("small-cnn", 64)])
def test_the_servers_training_takes_no_more_memory_than_was_told(model, batch, peak_bytes):
    learner = new_learner(config_of({"batch": batch}, model=model))
    (state,) = merged_rounds(learner, range(8))
    nobody, ledger = learner.accounts.arrivals([], np.empty(0, dtype=np.int64)), learner.accounts.ledger
    taken = peak_bytes(lambda: learner.accounts.server.refine(state, nobody, ledger, learner._bench()))
    told = learner.memory.making + learner.memory.passes
    assert told / 4 < taken < told
