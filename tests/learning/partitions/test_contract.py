"""What every partition of the registry must keep to; what each one deals to whom is for the tests of its own law."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from edgesim.base.errors import EdgesimError
from edgesim.config import DataConfig
from edgesim.learning.partitions import PARTITIONS, make_partition
from edgesim.streams import Streams

CLASSES = 10

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "fedteddi": [{}],
    "iid": [{}],
    "dirichlet": [{}, {"alpha": 0.001}, {"alpha": 1e6}],
    "dirichlet-labels": [{}, {"alpha": 100.0, "labels_per_device": 3}, {"alpha": [[0.1, 2.0], [50.0, 100.0]]}],
    "classes": [{}, {"classes_per_device": 10}],
    "shards": [{}, {"shards_per_device": 5}],
    "quantity": [{}, {"alpha": 0.001}],
    "listed": [{"file": "listed.csv"}],
}
"""Options with which each is looked at."""

EQUAL = {"fedteddi", "iid"}
"""Partitions that give every device ``samples_per_device`` samples, 60 when absent."""

SHARED = {"fedteddi", "dirichlet-labels", "iid", "listed"}
"""Partitions in which a sample may lie on several devices."""

DEALT_OUT = {"dirichlet", "shards", "quantity"}
"""Partitions that deal the whole training set, or ``samples_per_device`` times the devices."""


def law_of(name: str, options: dict[str, Any]) -> Any:
    return make_partition(DataConfig(dataset="digits", partition=name, partition_options=options))


@pytest.fixture(autouse=True, scope="module")
def _listed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A file of ten devices with 60 of the first 600 samples each, some of them on two devices."""
    folder = tmp_path_factory.mktemp("listed")
    rows = [(k % 10, k) for k in range(600)] + [(k % 3, k + 300) for k in range(7) if k % 3 != k % 10]
    (folder / "listed.csv").write_text("\n".join(["device,sample", *(f"{device},{k}" for device, k in rows)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield


Entry = tuple[str, dict[str, Any]]
each = pytest.mark.parametrize("entry", [(name, options) for name in PARTITIONS for options in OPTIONS[name]], ids=str)

World = tuple[int, int, int | None, int]
worlds = st.tuples(
    st.integers(600, 900), st.integers(1, 8), st.none() | st.sampled_from([10, 20, 50]), st.integers(0, 2**32)
)
"""Samples, devices, samples per device and seed."""


def divided(entry: Entry, world: World) -> list[list[np.ndarray]]:
    count, devices, size, seed = world
    labels = np.arange(count) % CLASSES
    labels.flags.writeable = False
    try:
        return law_of(*entry).divide(labels, CLASSES, devices, size, Streams(seed))
    except EdgesimError as error:
        # A pool of a few dozen may lack a class.
        if entry[0] == "classes" and size is not None and "would share" in str(error):
            reject()
        if entry[0] == "listed" and size is not None and "data.samples_per_device: is not for" in str(error):
            reject()
        raise


@each
@settings(max_examples=20)
@given(worlds)
def test_every_device_of_every_frame_holds_samples_that_are_there_each_once(entry, world):
    frames = divided(entry, world)
    assert len(frames) >= 1
    for parts in frames:
        assert len(parts) == world[1]
        for part in parts:
            assert part.dtype.kind == "i"
            assert len(part) >= 1
            # Ascending, and so none of them twice.
            assert (np.diff(part) > 0).all()
            assert 0 <= part[0] <= part[-1] < world[0]


@each
@settings(max_examples=20)
@given(worlds)
def test_samples_lie_on_one_device_and_sets_have_their_sizes(entry, world):
    (name, _), (count, devices, size, _) = entry, world
    for parts in divided(entry, world):
        sizes, dealt = [len(part) for part in parts], np.concatenate(parts)
        if name not in SHARED or (name == "iid" and devices * (size or 60) <= count):
            assert len(np.unique(dealt)) == len(dealt)
        if name in EQUAL:
            assert sizes == [size or 60] * devices
        elif name in DEALT_OUT:
            assert sum(sizes) == (count if size is None else size * devices)
        elif name == "dirichlet-labels":
            assert max(sizes) <= (size or count // devices)
        else:
            assert sum(sizes) <= (count if size is None else size * devices)


@each
def test_who_holds_what_follows_the_seed_alone(entry):
    size = None if entry[0] == "listed" else 80
    first, again, other = (
        [[part.tolist() for part in parts] for parts in divided(entry, (900, 8, size, seed))] for seed in (1, 1, 2)
    )
    assert first == again
    assert (first != other) == (entry[0] != "listed")


@each
@pytest.mark.parametrize(("devices", "size"), [(4, 602), (200, 6), (602, 2), (400, 1)])
def test_samples_that_hardly_suffice_or_do_not_are_dealt_all_the_same_or_refused_in_one_line(entry, devices, size):
    """Never a device without samples, nor one with a sample twice."""
    labels = np.arange(600) % CLASSES
    try:
        (parts, *_) = law_of(*entry).divide(labels, CLASSES, devices, size, Streams(0))
    except EdgesimError as error:
        said = str(error)
    else:
        said = ""
        assert entry[0] in SHARED or len(np.unique(np.concatenate(parts))) == sum(map(len, parts))
        assert all(len(np.unique(part)) == len(part) >= 1 for part in parts)
    assert "\n" not in said
    assert not said or said.startswith(("data.samples_per_device: ", "data.partition_options.", "devices.count: "))
    assert said or entry[0] not in EQUAL or size < 602


ALL_OPTIONS = {option for kind in PARTITIONS.values() for option in kind.model_fields}


@pytest.mark.parametrize("name", PARTITIONS)
def test_an_option_that_is_wrong_unknown_or_of_another_partition_is_one_line_that_names_it(name):
    own = set(PARTITIONS[name].model_fields)
    wrong = [{option: value} for option in sorted(ALL_OPTIONS) for value in ([], {"a": 1}, -1.0, float("inf"), "no")]
    if name == "listed":
        # Any text is the name of a file, which is looked for when it is read.
        wrong.remove({"file": "no"})
    for options in [*wrong, {"no_such_option": 1}, *({f"{option}_": 1} for option in own)]:
        (option,) = options
        with pytest.raises(EdgesimError) as refusal:
            law_of(name, options)
        message = str(refusal.value)
        assert "\n" not in message
        assert option in message
        assert repr(name) in message
        assert option in own or any(words in message for words in ("unknown key", "is an option of", "no options"))
        assert option.removesuffix("_") == option or f"did you mean 'data.partition_options.{option[:-1]}'" in message
