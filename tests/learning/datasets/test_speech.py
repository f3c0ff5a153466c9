import inspect
import os
import shutil
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from refusals import in_one_line
from scipy.io import wavfile

from edgesim.config import DataConfig
from edgesim.config_file import parse
from edgesim.learning.datasets import load_dataset
from edgesim.learning.datasets.mel import BANDS, FRAMES, RATE_HZ, filters, log_mel, mel
from edgesim.simulation.composition import run


def tone(frequency_hz, rate_hz=RATE_HZ, seconds=1.0, amplitude=0.5):
    return amplitude * np.sin(2 * np.pi * frequency_hz * np.arange(round(seconds * rate_hz)) / rate_hz)


def save(path: Path, samples, rate_hz=RATE_HZ, dtype=np.int16):
    path.parent.mkdir(parents=True, exist_ok=True)
    top = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else 1
    wavfile.write(path, rate_hz, (samples * top).astype(dtype))


@pytest.fixture
def words(tmp_path):
    """Three words of five recordings, each word a pitch of its own, and noise that is none."""
    root = tmp_path / "commands"
    for word, pitch_hz in (("down", 300), ("left", 1000), ("up", 3000)):
        for index in range(5):
            save(root / f"{word}/{index}.wav", tone(pitch_hz * (1 + index / 50), seconds=0.7 + index / 10))
    save(root / "_background_noise_/rain.wav", np.random.default_rng(0).uniform(-1, 1, 3 * RATE_HZ))
    return root


def load(root, **knobs):
    return load_dataset(DataConfig(dataset=str(root), **knobs))


@pytest.mark.parametrize("frequency_hz", [150.0, 440.0, 1000.0, 3300.0, 7000.0])
def test_a_tone_is_loudest_in_the_band_around_its_pitch(frequency_hz):
    """33 equal steps of the mel scale lie below half the rate; band k is centred on step k + 1."""
    picture = log_mel(tone(frequency_hz), RATE_HZ)
    step = float(mel(np.array([RATE_HZ / 2]))[0]) / (BANDS + 1)
    assert picture.shape == (BANDS, FRAMES)
    expected = float(mel(np.array([frequency_hz]))[0]) / step - 1
    assert abs(int(picture[:, 10].argmax()) - expected) <= 0.5 + 1e-9


def test_energies_are_those_of_the_tone():
    """A tone of amplitude a on a frequency of the transform has height a / 2 under a normed Hann window."""
    frequency_hz = 128 * RATE_HZ / 2048
    picture = log_mel(tone(frequency_hz, amplitude=0.4), RATE_HZ)
    # The two neighbours under a Hann window have half the height.
    weights = filters()[:, 127:130] @ np.array([0.1, 0.2, 0.1]) ** 2
    loudest = picture[:, 10].argmax()
    assert picture[loudest, 10] == pytest.approx(10 * np.log10(weights[loudest]), abs=0.01)


def test_ten_times_the_amplitude_is_twenty_decibels_more():
    quiet, loud = (log_mel(tone(1000.0, amplitude=a), RATE_HZ) for a in (0.05, 0.5))
    assert (loud - quiet)[quiet > -90] == pytest.approx(20.0, abs=1e-3)
    # Silence has the floor everywhere.
    assert (log_mel(np.zeros(100), RATE_HZ) == -100).all()


@pytest.mark.parametrize("rate_hz", [8_000, 22_050, 44_100])
def test_the_rate_of_a_recording_does_not_matter(rate_hz):
    there, here = log_mel(tone(1000.0, rate_hz), rate_hz), log_mel(tone(1000.0), RATE_HZ)
    loud = here > here.max() - 20
    assert there[loud][:-2] == pytest.approx(here[loud][:-2], abs=0.5)


def test_a_folder_of_wav_files_is_a_data_set_of_words(words):
    dataset = load(words)
    assert (dataset.name, dataset.class_count, dataset.image_shape) == ("commands", 3, (1, BANDS, FRAMES))
    assert np.bincount(dataset.train_labels).tolist() == [4, 4, 4]
    assert np.bincount(dataset.test_labels).tolist() == [1, 1, 1]
    train, test = dataset.images
    assert (train.dtype, train.shape, test.shape) == (np.float32, (12, 1, 32, 32), (3, 1, 32, 32))
    pitch = train[:, 0, :, 8].argmax(axis=1)
    assert all(pitch[dataset.train_labels == k].max() < pitch[dataset.train_labels == k + 1].min() for k in (0, 1))


def test_testing_list_says_what_is_for_testing(words):
    (words / "testing_list.txt").write_text("up/3.wav\ndown/0.WAV\n")
    # Suffixes in capitals count.
    (words / "down/0.wav").rename(words / "down/0.WAV")
    dataset = load(words)
    assert (len(dataset.train_labels), dataset.test_labels.tolist()) == (13, [0, 2])
    (words / "testing_list.txt").write_text("up/3.wav\nup/7.wav\n")
    with in_one_line(r"testing_list.txt: line 2: expected WORD/FILE.wav that is there"):
        load(words)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32])
def test_every_sample_format_holds_the_same_sound(tmp_path, dtype):
    for index in range(2):
        for word, pitch_hz in (("a", 500), ("b", 2000)):
            samples = tone(pitch_hz)
            save(tmp_path / "one" / word / f"{index}.wav", samples)
            other = 0.5 + samples / 2 if dtype is np.uint8 else np.column_stack([samples, samples])
            save(tmp_path / "other" / word / f"{index}.wav", other, dtype=dtype)
    one, other = (load(tmp_path / name).images[1] for name in ("one", "other"))
    loud = one > one.max() - 25
    assert other[loud] == pytest.approx(one[loud], abs=0.3)


def at_rate(rate_hz):
    """A recording whose header says so many samples per second."""

    def change(path):
        content = bytearray(path.read_bytes())
        # Bytes 24 to 31 of a plain header: samples and bytes per second.
        content[24:32] = struct.pack("<II", rate_hz, 2 * rate_hz % 2**32)
        path.write_bytes(content)

    return change


def of_samples(*samples):
    return lambda path: wavfile.write(path, RATE_HZ, np.array(samples, dtype=np.float32))


def as_pipe(path):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda path: path.write_bytes(b""), "not a readable wav file"),
        (lambda path: path.write_bytes(b"RIFF"), "not a readable wav file"),
        (lambda path: path.write_bytes(b"not a wav file at all, but long enough to be one"), "not a readable wav file"),
        (lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]), "not a readable wav file"),
        (of_samples(), "holds no sound"),
        (of_samples(0.0, np.nan), "holds samples that are no finite numbers"),
        (of_samples(0.0, np.inf), "holds samples that are no finite numbers"),
        (at_rate(0), r"expected 1,000 to 1,000,000 samples per second \(got 0\)"),
        (at_rate(999), r"expected 1,000 to 1,000,000 samples per second \(got 999\)"),
        (at_rate(2_000_000_011), r"expected 1,000 to 1,000,000 samples per second \(got 2,000,000,011\)"),
        (as_pipe, r"expected a file \(got a pipe, a device or a folder\)"),
    ],
)
@pytest.mark.whole_family
def test_a_recording_that_holds_no_sound_is_one_line_that_names_it(words, damage, expected):
    damage(words / "left/2.wav")
    with in_one_line(rf"left/2.wav: {expected}"):
        _ = load(words).images


def test_recordings_that_are_decoded_otherwise_have_a_place_of_their_own_in_the_cache(words, monkeypatch):
    source, before = inspect.getsource, load(words).digest
    assert load(words).digest == before
    monkeypatch.setattr(inspect, "getsource", lambda code: source(code) + "#")
    assert load(words).digest != before


@pytest.mark.parametrize(
    ("word", "knobs", "said"),
    [
        ("up", {"image_size": 16}, "are for pictures, not for the sounds"),
        ("up", {"augment": "flip"}, "are for pictures, not for the sounds"),
        ("", {}, r"holds 1 words; expected WORD/FILE\.wav of at least 2"),
    ],
)
def test_sounds_are_not_turned_over_and_one_word_is_none_to_tell_apart(words, word, knobs, said):
    for path in words.iterdir():
        if not word and path.name != "up":
            shutil.rmtree(path)
    with in_one_line(said):
        load(words, **knobs)


@pytest.mark.slow
def test_words_are_learnt(words, tmp_path):
    config = parse(
        {
            "rounds": 12,
            "devices": {"count": 4},
            "data": {"dataset": str(words), "partition": "iid", "samples_per_device": 6},
            "learning": {"model": "mlp", "pretrain": False, "lr": 0.05},
            "round": {"payload_bits": 1e6},
        },
        "test",
    )
    run(config, tmp_path / "run")
    assert pd.read_parquet(tmp_path / "run/rounds.parquet")["test_accuracy"].iloc[-1] == 1.0


@pytest.mark.parametrize("kind", [b"RIFF", b"RF64"])
def test_a_recording_whose_header_says_more_than_it_holds_is_read_no_further_than_it_goes(words, kind):
    path, whole = words / "up" / "3.wav", [np.array(part) for part in load(words).images]
    content = bytearray(path.read_bytes())
    at = content.index(b"data") + 4
    content[at : at + 4] = struct.pack("<I", 2**32 - 2)
    if kind == b"RF64":
        sizes = struct.pack("<QQQI", len(content) + 28, 2**62, 2**61, 0)
        content[:12] = b"RF64" + b"\xff" * 4 + b"WAVE" + b"ds64" + struct.pack("<I", len(sizes)) + sizes
    path.write_bytes(content)
    tracemalloc.start()
    try:
        read = load(words).images
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    assert all(np.array_equal(part, before) for part, before in zip(read, whole, strict=True))
