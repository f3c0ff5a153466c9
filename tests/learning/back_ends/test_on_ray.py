"""Jobs over actors of a real cluster of Ray, that tests share."""

import pytest

from edgesim.base.errors import Diverged, EdgesimError

EDGES = ([0, 8, 16], [0, 8, 12], [0, 8, 16], [0, 3, 8, 10], [0, 8])


@pytest.mark.slow
def test_actors_bring_the_bits_of_the_loop_from_tensors_that_travel_once(
    over_actors, ray_actors, promises, has_the_bits
):
    model, back_end = over_actors()
    put, at_once = [], []
    really_put, really_send = back_end._put, back_end._send
    back_end._put = lambda what: put.append(what) or really_put(what)

    def send(actor, task):
        really_send(actor, task)
        at_once.append(max(len(actor.tasks) for actor in back_end._actors))

    back_end._send = send
    pull = {"to_start": 0.5, "shift": [0.0, 0.1, 0.2, 0.0, 0.3], "augmented": True}
    for scale in ([1.0, 0.9, 1.1, 1.0, 0.8], 1.0):
        alone, spread = (promises(model, *EDGES, scale=scale, **pull) for _ in range(2))
        if scale == 1.0:
            for promise in spread:
                promise.job.given["start"] = spread[0].job.start
        assert back_end.run(spread) == len(EDGES)
        assert back_end.run(spread) == 0
        has_the_bits(spread, alone, model)
    # Each job of the first batch has a start of its own; that of the second was put for all, and goes with the next.
    assert [array.shape for array in put] == [tuple(model.weights.shape)]
    assert max(at_once) == 2
    back_end.run(promises(model, *EDGES, scale=[1.0, 0.9, 1.1, 1.0, 0.8]))
    assert back_end._shared == {}


@pytest.mark.slow
def test_a_diverging_job_is_the_error_of_the_loop_and_the_actors_live_on(over_actors, ray_actors, promises):
    model, back_end = over_actors()
    edges = [list(range(0, 41, 4))] * 4
    before = [*back_end._actors]
    with pytest.raises(Diverged, match=r"device 1, round 1, step [2-9]: .*lower learning.lr"):
        back_end.run(promises(model, *edges, lr=[0.01, 1e30, 0.01, 1e30]))
    assert back_end.run(promises(model, *edges)) == 4
    assert back_end._actors == before


@pytest.mark.slow
def test_an_error_of_the_program_is_one_line_with_its_job(over_actors, ray_actors, promises):
    model, back_end = over_actors()
    broken = promises(model, [0, 8])
    broken[0].job.phases[0].samples[:] = 10**6
    with pytest.raises(
        EdgesimError, match=r"^an actor .* while training device 0 in round 1: IndexError: .*'loop' shows"
    ):
        back_end.run(broken)


@pytest.mark.slow
def test_nodes_of_another_kind_are_refused_with_both_kinds(over_actors, ray_actors):
    _, back_end = over_actors()
    with pytest.raises(EdgesimError, match=r"of two kinds, torch \S+ on cpu \S+ and torch 1.0 on cpu VAX"):
        back_end._has_begun(back_end._actors[0], "torch 1.0 on cpu VAX")
