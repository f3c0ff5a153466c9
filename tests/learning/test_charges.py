"""Bits and time that coding is charged, by hand."""

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.learning.accounts import Accounts
from edgesim.learning.charges import DownloadCharges, UploadCharges
from edgesim.learning.codecs import make_codec
from edgesim.learning.federation import make_federation
from edgesim.learning.payload import Network
from edgesim.learning.sizes.fit import FitAtStart
from edgesim.learning.sizes.fixed import Fixed
from edgesim.radio.grant import Grant
from edgesim.simulation.complete import complete
from edgesim.streams import Streams

P, MODEL = 2410, 77_120
EVERYONE = np.arange(4)


@pytest.fixture
def make_accounts(make_config):
    def make(**sections):
        data = {"dataset": "digits", "partition": "iid", "samples_per_device": 40}
        sections = {"devices": {"count": 4}, "data": data, "learning": {"pretrain": False, "steps": 5}} | sections
        config = complete(make_config(**sections))
        streams = Streams(0)
        return Accounts(config, make_federation(config, streams), streams, Network(P, 32, 4))

    return make


@pytest.mark.parametrize(
    ("upload", "bits"),
    [
        (None, 77_120), ({"codec": "half"}, 38_560), ({"codec": "qsgd", "bucket": 2410}, 9_672),
        ({"codec": "topk", "coding": "index"}, 1_100), ({"codec": "randk"}, 800),
    ],
)  # fmt: skip
def test_an_update_costs_the_bits_of_its_codec(make_accounts, upload, bits):
    accounts = make_accounts(upload=upload)
    assert accounts.settle(EVERYONE, 1).tolist() == [bits] * 4
    assert accounts.download_bits(EVERYONE, 1).tolist() == [MODEL] * 4
    assert accounts.facts().get("update_bits") == (None if upload is None else bits)


def test_a_payload_of_another_model_is_charged_for_its_own_numbers(make_accounts):
    """558,802 numbers, of which 1 % take 226,614 bits, whatever model is trained."""
    accounts = make_accounts(upload={"codec": "topk"}, round={"payload_bits": 17_881_664})
    assert accounts.settle(EVERYONE, 1).tolist() == [226_614] * 4
    assert accounts.facts()["update_numbers"] == 558_802
    # 100 bits are three numbers.
    assert make_accounts(upload={"codec": "sign"}, round={"payload_bits": 100}).settle(EVERYONE, 1)[0] == 35


@pytest.mark.parametrize(
    ("beside", "derive", "bits"), [("plain", False, 1_012 + MODEL), ("coded", False, 2 * 1_012), ("plain", True, 1_012)]
)
def test_what_travels_beside_is_coded_or_plain(make_accounts, beside, derive, bits):
    algorithm = {"name": "scaffold", "derive_control": derive}
    accounts = make_accounts(upload={"codec": "topk", "beside": beside}, algorithm=algorithm)
    assert accounts.settle(EVERYONE, 1).tolist() == [bits] * 4


def test_small_tensors_beside_an_update_stay_at_32_bits(make_accounts):
    """Prototypes of ten classes and 32 features."""
    algorithm, data = {"name": "fedproto", "average_weights": True}, {"dataset": "digits", "partition": "iid"}
    plain = make_accounts(algorithm=algorithm, data=data).settle(EVERYONE, 1)
    coded = make_accounts(algorithm=algorithm, data=data, upload={"codec": "sign"})
    assert (plain - coded.settle(EVERYONE, 1)).tolist() == [MODEL - 2_442] * 4


def test_a_device_that_sends_no_model_pays_for_none():
    charges = UploadCharges(100.0, Fixed(make_codec("sign", {}), 8), 2, 0.0)
    assert charges.coded(np.array([0.0, 64.0, 200.0, 232.0])).tolist() == [0, 64, 80, 112]


def test_an_upload_is_resized_within_its_room():
    """Two coded vectors of 1,000 numbers, of which half of the room behind 100 plain bits and a header decides."""
    codec = make_codec("randk", {})
    charges = UploadCharges(32_000.0, FitAtStart(codec, 1_000, 1), 2, 0.0)
    (planned_bits,) = charges.coded(np.array([64_100.0]))
    assert planned_bits == 100 + 32 + 2 * 32
    for room_bits, k in ((132 + 2 * 32 * 7, 7), (132 + 2 * 32 * 8 - 1, 7), (1e9, 1_000), (0.0, 1)):
        assert charges.sized(planned_bits, room_bits) == (k, 132 + 2 * 32 * k)
        # The same from a size that it was granted with.
        assert charges.sized(132 + 2 * 32 * 40, room_bits, 40) == (k, 132 + 2 * 32 * k)
        assert charges.coded_setting(Grant(1e6, 1e-12, 0.0, k), 10) == max(1, -(-k // 100))
    assert charges.sized(64.0, 1e9) == (0, 64.0)
    assert charges.with_settings(np.array([planned_bits, planned_bits + 5]), [3, 4]).tolist() == [324, 393]


@pytest.mark.parametrize(
    ("upload", "algorithm", "samples"),
    [
        ({"codec": "none"}, {}, 0), ({"codec": "natural"}, {}, 8 / 3), ({"codec": "qsgd"}, {}, 10 / 3),
        ({"codec": "randk"}, {}, 4), ({"codec": "half"}, {}, 14 / 3), ({"codec": "sign"}, {}, 20 / 3),
        ({"codec": "sign", "feedback": "none"}, {}, 16 / 3), ({"codec": "topk"}, {}, 20), ({"codec": "stc"}, {}, 20),
        ({"codec": "stc", "encode": 7.0}, {}, 7),
        # Where all algorithms take the time of FedAvg there is none, and two coded vectors take twice the time.
        ({"codec": "topk"}, {"compute_cost": "equal"}, 0),
        ({"codec": "half", "beside": "coded"}, {"name": "scaffold"}, 28 / 3),
    ],
)  # fmt: skip
def test_encoding_takes_the_time_of_its_passes(make_accounts, upload, algorithm, samples):
    without = make_accounts(algorithm=algorithm).charged_samples(EVERYONE, 1)
    longer = make_accounts(upload=upload, algorithm=algorithm).charged_samples(EVERYONE, 1) - without
    assert longer.tolist() == pytest.approx([samples] * 4)


@pytest.mark.parametrize("algorithm", [{"name": "fedavg"}, {"name": "scaffold", "derive_control": True}])
def test_coding_of_tensors_that_nobody_sends_is_refused(make_accounts, algorithm):
    with pytest.raises(EdgesimError, match=r"^upload\.beside: 'coded' needs an algorithm") as refused:
        make_accounts(algorithm=algorithm, upload={"codec": "sign", "beside": "coded"})
    assert refused.value.fields == ("upload.beside", "algorithm.name")


def test_a_device_is_sent_the_changes_that_it_missed_or_the_model():
    """558,802 numbers at 4 bits: 7 changes take 15,646,680 bits, 8 more than the model."""
    version = np.array([-1, 0, 3, 2, 10])
    charges = DownloadCharges(17_881_664.0, 2_235_240, version)
    bits = charges.coded(np.full(5, 17_881_664.0), np.arange(5), 10)
    assert bits.tolist() == [17_881_664, 17_881_664, 15_646_680, 17_881_664, 0]
    # What is sent beside the model is sent whole, and nothing is taken off a download without a model.
    assert charges.coded(np.array([17_881_664.0 + 640, 64.0]), np.array([2, 4]), 10).tolist() == [15_647_320, 64]


def test_a_version_once_received_stays():
    charges = DownloadCharges(320.0, 8, np.full(3, -1))
    for device, version in ((1, 4), (1, 2), (2, 0)):
        charges.received(device, version)
    assert charges.version.tolist() == [-1, 4, 0]


def test_accounts_go_by_the_merges_behind_a_model(make_accounts):
    download = {"codec": "qsgd", "rounding": "nearest", "bucket": 2410}
    accounts = make_accounts(download=download)
    assert accounts.download_bits(EVERYONE, 1).tolist() == [MODEL] * 4
    accounts.down.received(2, 0)
    accounts.models = 3
    # 2,410 levels of 4 bits and a scale, three times.
    assert accounts.download_bits(EVERYONE, 4).tolist() == [MODEL, MODEL, 3 * 9_672, MODEL]
    remembered = accounts.snapshot()
    again = make_accounts(download=download)
    again.restore(remembered)
    assert again.download_bits(EVERYONE, 4).tolist() == [MODEL, MODEL, 3 * 9_672, MODEL]
