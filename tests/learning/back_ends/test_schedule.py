import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgesim.learning.algorithms.records import Phase
from edgesim.learning.back_ends.schedule import make_schedule
from edgesim.learning.jobs import Job, Optimiser

sizes_of_steps = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=5), min_size=1, max_size=6)


def _jobs(sizes):
    sizes = sorted(sizes, key=len, reverse=True)
    edges = [np.cumsum([0, *parts]) for parts in sizes]
    phases = [(Phase(1000 * n + np.arange(part[-1]), part),) for n, part in enumerate(edges)]
    return [Job(n, 1, n, own, {}, Optimiser(0.1, 0.0)) for n, own in enumerate(phases)]


@given(sizes_of_steps)
def test_every_sample_is_used_once_in_its_own_step_and_client_with_the_share_of_a_mean(sizes):
    jobs = _jobs(sizes)
    schedule = make_schedule([job.edges for job in jobs])
    samples = np.concatenate([job.samples for job in jobs])[schedule.places]
    seen = {n: [] for n in range(len(jobs))}
    for step, clients in enumerate(schedule.clients):
        part = slice(schedule.edges[step], schedule.edges[step + 1])
        grid, share = samples[part].reshape(-1, clients), schedule.share[part].reshape(-1, clients)
        for n in range(clients):
            real = share[:, n] > 0
            own = jobs[n].samples[jobs[n].edges[step] : jobs[n].edges[step + 1]]
            assert grid[real, n].tolist() == own.tolist()
            assert set(grid[:, n]) == set(own), "what fills up is the client's own"
            np.testing.assert_allclose(share[real, n], 1 / len(own))
            seen[n] += own.tolist()
    assert all(seen[n] == job.samples.tolist() for n, job in enumerate(jobs))


@given(sizes_of_steps)
def test_means_are_those_over_each_clients_own_samples(sizes):
    jobs = _jobs(sizes)
    schedule = make_schedule([job.edges for job in jobs])
    samples = np.concatenate([job.samples for job in jobs])[schedule.places]
    # What fills up must not count, not even when it is no number.
    values = np.where(schedule.share > 0, samples.astype(float), np.nan)
    means = schedule.per_step(values)
    for n, job in enumerate(jobs):
        parts = np.split(job.samples, job.edges[1:-1])
        np.testing.assert_allclose(means[n, : len(parts)], [part.mean() for part in parts])
        np.testing.assert_allclose(schedule.overall(means)[n], job.samples.mean())


@given(st.integers(1, 200), st.integers(1, 32))
def test_a_client_whose_samples_are_all_hit_has_a_share_of_one_and_not_more(size, batch):
    schedule = make_schedule([np.append(np.arange(0, size, batch), size)])
    (share,) = schedule.hit_share(np.ones(len(schedule.places), dtype=bool))
    assert 1 - 1e-12 < share <= 1
