"""FLASH logs: the rule by hand, and random logs against a second-by-second replay."""

import json
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interval_rows import rows

from edgesim.base.errors import EdgesimError
from edgesim.traces.readers.flash import PARTS, read_flash

MIDNIGHT = datetime(2020, 1, 29)


def log(*events: tuple[int, str]) -> str:
    return "\n".join(f"{MIDNIGHT + timedelta(seconds=t)}\t{event}" for t, event in events)


def written(folder: Path, *messages: object, name: str = "state_traces.json") -> Path:
    path = folder / name
    devices = {str(k): {"guid": f"g{k}", "model": "P20", "messages": text} for k, text in enumerate(messages)}
    path.write_text(json.dumps(devices))
    return path


NIGHT = log(
    (751, "screen_off"),
    (751, "battery_charged_on"),
    (782, "wifi"),
    (2455, "87.0%"),
    (3000, "screen_on"),
    (3100, "screen_lock"),
    (5000, "4G"),
    (5200, "wifi"),
    (25270, "battery_charged_off"),
    (26000, "screen_unlock"),
)


def test_the_default_rule_needs_rest_charger_and_wifi(tmp_path):
    found = read_flash(written(tmp_path, NIGHT))
    # By hand: charging and idle from 751 on, Wi-Fi from 782; awake from 3000 to 3100; cellular from 5000 to 5200.
    assert rows(found.available) == [(0, 782, 3000), (0, 3100, 5000), (0, 5200, 25270)]
    assert rows(found.observed) == [(0, 782, 26000)]
    assert found.available.length_s.tolist() == [86400.0]


@pytest.mark.parametrize("wrong", [["asleep"], []])
def test_a_rule_of_other_parts_or_of_none_is_refused(tmp_path, wrong):
    got = wrong[0] if wrong else "nothing"
    with pytest.raises(EdgesimError, match=rf"require: expected some of idle, charging, wifi \(got {got}\)"):
        read_flash(written(tmp_path, NIGHT), wrong)


def test_messages_may_be_a_list_and_devices_come_by_number_with_one_zero_and_whole_days(tmp_path):
    later = log((90_000, "battery_charged_on"), (180_000, "battery_charged_off")).split("\n")
    path = tmp_path / "log.json"
    devices = {"10": later, "2": log((40, "battery_charged_on"), (50, "phone_off")), "3": ""}
    path.write_text(json.dumps({key: {"messages": value} for key, value in devices.items()}))
    found = read_flash(path, ["charging"])
    assert rows(found.available) == [(0, 40, 50), (2, 90_000, 180_000)]
    assert found.available.length_s.tolist() == [3 * 86400.0] * 3
    assert found.available.keys.tolist() == ["2", "3", "10"]
    assert found.available.models is None
    assert (
        read_flash(written(tmp_path, "", log((0, "wifi"), (9, "2G"))), ["wifi"]).available.models.tolist()
        == ["P20"] * 2
    )


KINDS = "screen_on screen_off screen_lock screen_unlock battery_charged_on battery_charged_off wifi 4G"
events = st.sampled_from([*KINDS.split(), "Unknown", "2G", "battery_low", "phone_on", "55.5%"])


@given(
    st.lists(st.tuples(st.integers(0, 60), events), min_size=1, max_size=40),
    st.sets(st.sampled_from(PARTS), min_size=1),
)
def test_a_log_equals_its_replay_second_by_second(entries, parts):
    import tempfile

    entries = sorted(entries, key=lambda entry: entry[0])
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), log(*entries))
        found = None
        # Refused where nothing is known at any second, which is held against the replay below.
        with suppress(EdgesimError):
            found = read_flash(path, sorted(parts))
    observed, available = (rows(found.observed), rows(found.available)) if found else ([], [])
    screen = lock = charging = wifi = None
    for second in range(-1, entries[-1][0] + 2):
        for t, event in entries:
            if t == second:
                screen = {"screen_on": True, "screen_off": False}.get(event, screen)
                lock = {"screen_lock": True, "screen_unlock": False}.get(event, lock)
                charging = {"battery_charged_on": True, "battery_charged_off": False}.get(event, charging)
                wifi = {"wifi": True, "4G": False, "2G": False, "Unknown": False}.get(event, wifi)
        known = {"idle": (screen, lock) != (None, None), "charging": charging is not None, "wifi": wifi is not None}
        holds = {"idle": screen is False or lock is True, "charging": charging is True, "wifi": wifi is True}
        # Outside of the log nothing is known.
        seen = second < entries[-1][0] and all(known[part] for part in parts)
        assert any(s <= second < e for _, s, e in observed) == seen
        assert any(s <= second < e for _, s, e in available) == (seen and all(holds[p] for p in parts))
