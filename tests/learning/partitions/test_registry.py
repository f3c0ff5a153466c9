import tomllib

import pytest
import tomli_w
from refusals import in_one_line
from whole_runs import play

from edgesim.config_file import parse
from edgesim.simulation import composition as simulation


def complete(**data):
    return simulation.complete(parse({"data": data, "learning": {"pretrain": True}}, "run.toml"))


def test_a_complete_config_names_the_options_of_its_partition_and_survives_its_file():
    config = complete(partition="dirichlet-labels", partition_options={"alpha": [[0.1, 2], [50, 100]]})
    assert config.data.partition_options == {"alpha": [[0.1, 2.0], [50.0, 100.0]]}
    written = simulation.as_toml(config)
    again = simulation.complete(parse(tomllib.loads(tomli_w.dumps(written)), "config.toml"))
    assert simulation.as_toml(again) == written
    assert complete(partition="shards").data.partition_options == {"shards_per_device": 2}


def test_the_equal_partitions_and_no_dataset_have_60_samples_and_the_others_what_there_is():
    assert complete().data.samples_per_device == 60
    assert complete(partition="iid").data.samples_per_device == 60
    assert complete(partition="quantity").data.samples_per_device is None
    blank = parse(
        {"data": {"dataset": "none", "partition": "shards"}, "learning": {"training": "none", "pretrain": True}},
        "run.toml",
    )
    assert simulation.complete(blank).data.samples_per_device == 60


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"partition": "dirichet"}, r"data.partition: unknown partition 'dirichet', did you mean 'dirichlet'\?"),
        ({"partition": "iid", "partition_options": {"beta": 1.0}}, "'iid' takes no options, remove 'beta'"),
        (
            {"partition": "dirichlet-labels", "partition_options": {"alpha": [[1.0]]}},
            r"alpha: expected a number .* \(got \[\[1.0\]\]\)",
        ),
    ],
)
def test_an_unknown_partition_or_a_bad_option_is_one_line(data, words):
    with in_one_line(words):
        complete(**data)


@pytest.mark.parametrize(
    "data",
    [
        {"partition": "quantity", "partition_options": {"alpha": 0.05}},
        {"partition": "dirichlet", "partition_options": {"alpha": 0.05}},
        {"partition": "dirichlet-labels"},
        {"partition": "classes", "partition_options": {"classes_per_device": 1}},
    ],
    ids=lambda data: data["partition"],
)
def test_devices_of_a_single_sample_train_by_epochs_and_are_measured_by_gradients(tmp_path, data):
    config = {
        "rounds": 2,
        "data": data,
        "learning": {"epochs": 1, "pretrain": False},
        "selection": {"policy": "fedteddi"},
        "round": {"payload_bits": 1e6},
    }
    rounds = play(tmp_path / "run", config).rounds
    assert rounds["test_accuracy"].notna().all()
    assert (rounds["arrived"] > 0).all()
