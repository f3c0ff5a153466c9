from edgesim.engine.clock import Clock, EventKind, Instant


def test_ties_are_ordered_by_kind_and_then_device_whatever_the_insertion():
    clock = Clock()
    heard = []

    def note(*what):
        return lambda _: heard.append(what)

    for kind, device in [
        (EventKind.STOP, 0),
        (EventKind.DEADLINE, 0),
        (EventKind.ARRIVED, 9),
        (EventKind.ARRIVED, 2),
        (EventKind.COMPUTED, 5),
    ]:
        Instant(clock, 1.0, kind, device).callbacks.append(note(kind, device))
    Instant(clock, 0.5, EventKind.STOP).callbacks.append(note("earlier"))
    clock.run()
    assert heard == [
        ("earlier",),
        (EventKind.COMPUTED, 5),
        (EventKind.ARRIVED, 2),
        (EventKind.ARRIVED, 9),
        (EventKind.DEADLINE, 0),
        (EventKind.STOP, 0),
    ]


def test_a_callback_of_now_comes_before_all_other_events_of_the_instant_and_after_what_runs():
    clock, heard = Clock(), []

    def first(_):
        clock.timeout(0).callbacks.append(lambda _: heard.append("timeout"))
        clock.soon(lambda _: heard.append(("soon", clock.now)))
        heard.append("running")

    clock.call_at(1.0, EventKind.COMPUTED, lambda _: heard.append("timed"), 1)
    clock.call_at(1.0, EventKind.COMPUTED, first, 0)
    clock.run()
    assert heard == ["running", ("soon", 1.0), "timeout", "timed"]


def test_an_event_happens_at_its_instant_to_the_last_bit():
    # From now = 0.2 on, adding the delay 0.9 - 0.2 misses 0.9 by one rounding step.
    assert 0.2 + (0.9 - 0.2) != 0.9
    clock = Clock()
    seen = []

    def sleeper():
        yield Instant(clock, 0.2, EventKind.WAKE)
        yield Instant(clock, 0.9, EventKind.WAKE)
        seen.append(clock.now)

    clock.process(sleeper())
    clock.run()
    assert seen == [0.9]
