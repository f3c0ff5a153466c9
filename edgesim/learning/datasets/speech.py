"""Spoken words in a folder of wav files, one folder per word, such as Google Speech Commands (Warden, 2018).

Below the root lies ``WORD/FILE.wav``. What ``testing_list.txt`` names is for testing, where there is one, and else a
fifth of each word. Folders whose names begin with an underscore (``_background_noise_``) hold no words.
"""

import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.io import wavfile
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.base.errors import EdgesimError
from edgesim.base.text_file import read_text
from edgesim.learning.cache import code_digest
from edgesim.learning.datasets import mel
from edgesim.learning.datasets.dataset import Dataset
from edgesim.learning.datasets.decoded import DecodedFiles
from edgesim.learning.datasets.held_out import held_out
from edgesim.learning.datasets.mel import BANDS, FRAMES, log_mel

_TESTING = "testing_list.txt"
_LEAST_RATE_HZ, _MOST_RATE_HZ = 1_000, 1_000_000


def holds_words(root: Path) -> bool:
    """Whether a folder is one of spoken words: a wav file lies one folder below it."""
    return next(_recordings(root), None) is not None


def load_speech(root: Path) -> Dataset:
    """The data set of a folder of spoken words: pictures of 1x32x32 (`edgesim.learning.datasets.mel`).

    Words are numbered in the order of their names. No file is opened before pictures are asked for. Raises
    `EdgesimError` that names the file or the folder, also for a recording that is broken or empty.
    """
    files = sorted(path.relative_to(root).as_posix() for path in _recordings(root) if path.parent.name[0] not in "_.")
    words, labels = np.unique([file.partition("/")[0] for file in files], return_inverse=True)
    if len(words) < 2:
        raise EdgesimError(f"{root}: holds {len(words)} words; expected WORD/FILE.wav of at least 2")
    if (root / _TESTING).is_file():
        is_test = np.isin(np.array(files), _listed(root, set(files)))
        train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    else:
        train, test = held_out(root.resolve().name, labels)
    for half, rows in (("train", train), ("test", test)):
        if len(rows) == 0:
            raise EdgesimError(f"{root}: no recordings to {half} with; see {_TESTING}")
    recordings = Recordings(root, [files[row] for row in train], [files[row] for row in test])
    return recordings.dataset(labels[train], labels[test], len(words))


def _recordings(root: Path) -> Iterator[Path]:
    return (path for path in root.glob("*/*") if path.suffix.lower() == ".wav")


def _listed(root: Path, files: set[str]) -> list[str]:
    lines = read_text(root / _TESTING).splitlines()
    for number, line in enumerate(lines, start=1):
        if line not in files:
            raise EdgesimError(f"{root / _TESTING}: line {number}: expected WORD/FILE.wav that is there (got {line!r})")
    return lines


@dataclass(frozen=True)
class Recordings(DecodedFiles):
    """Wav files of any rate, channels and sample format."""

    kind: ClassVar[str] = "speech"
    dtype: ClassVar[str] = "f4"

    @property
    @override
    def shape(self) -> tuple[int, int, int]:
        """1 channel, mel bands, frames."""
        return 1, BANDS, FRAMES

    @property
    @override
    def _how(self) -> str:
        code = code_digest(mel, Recordings, _in_unit_range)
        return f"log-mel, SciPy {scipy.__version__}, shape {self.shape}, code {code}"

    @override
    def _pixels(self, file: str) -> NDArray[np.float32]:
        """Picture of a recording, [1, bands, frames]; several channels are averaged."""
        path = self.root / file
        try:
            with warnings.catch_warnings():
                # A chunk that SciPy does not know holds no sound; a file that is cut off is refused.
                warnings.filterwarnings("error", "Reached EOF", wavfile.WavFileWarning)
                warnings.filterwarnings("ignore", "Chunk", wavfile.WavFileWarning)
                # From memory SciPy reads no more than there is, however much a header says.
                rate_hz, samples = wavfile.read(io.BytesIO(path.read_bytes()))
        except Exception as error:
            # SciPy raises whatever a broken header leads to.
            raise EdgesimError(f"{path}: not a readable wav file: {str(error) or type(error).__name__}") from None
        if len(samples) == 0:
            raise EdgesimError(f"{path}: holds no sound")
        if not _LEAST_RATE_HZ <= rate_hz <= _MOST_RATE_HZ:
            expected = f"{_LEAST_RATE_HZ:,} to {_MOST_RATE_HZ:,} samples per second"
            raise EdgesimError(f"{path}: expected {expected} (got {rate_hz:,})")
        if not np.isfinite(samples).all():
            raise EdgesimError(f"{path}: holds samples that are no finite numbers")
        return log_mel(_in_unit_range(samples.reshape(len(samples), -1).mean(axis=1), samples.dtype), rate_hz)[None]


def _in_unit_range(samples: Floats, stored: np.dtype[Any]) -> Floats:
    """Samples in [-1, 1], by how the file stores them; 8-bit ones are unsigned."""
    if stored.kind == "f":
        return samples
    if stored.kind == "u":
        return samples / 128.0 - 1.0
    return np.asarray(samples / 2.0 ** (8 * stored.itemsize - 1))
