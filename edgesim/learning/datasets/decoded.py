"""Files as arrays: decoded once, and stored in a cache under the hash of their contents.

A file counts as unchanged while its path, size and times of change are the same (of what it holds, which copying and
unpacking may carry over, and of the file itself, which nothing sets back), so that a later start reads no file at all;
where these differ, the files are hashed anew, and decoded only if they hold something else.
"""

import errno
import hashlib
import math
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.paths import system_errors
from edgesim.learning.cache import cache_folder, new_entry
from edgesim.learning.datasets.dataset import Dataset, Domains

_FORMAT = 1
_FILES_AT_ONCE = 256


@dataclass(frozen=True)
class DecodedFiles:
    """Samples for training and for testing, as paths below a root; subclasses decode a file."""

    kind: ClassVar[str]
    """Name of the folder in the cache."""
    dtype: ClassVar[str] = "u1"

    root: Path
    train: list[str]
    test: list[str]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of all; raises `EdgesimError`."""
        raise NotImplementedError

    def dataset(
        self, train_labels: Integers, test_labels: Integers, class_count: int, domains: Domains | None = None
    ) -> Dataset:
        """The data set of these samples, named by the root; raises `EdgesimError` as `shape` does."""
        return Dataset(
            name=self.root.resolve().name,
            train_labels=train_labels,
            test_labels=test_labels,
            class_count=class_count,
            image_shape=self.shape,
            load_images=self.load,
            domains=domains,
            digest_images=lambda: self.digest,
        )

    def load(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Training and test samples, [n, C, H, W], mapped from the cache; decoded if they are not in it.

        Raises `EdgesimError` that names the first file that is broken or of another size, or the cache folder.
        """
        folder = cache_folder(self.kind) / self.digest
        arrays = self._read(folder)
        if arrays is None:
            shutil.rmtree(folder, ignore_errors=True)
            with new_entry(folder) as part:
                part.mkdir()
                for name, files in self._halves:
                    self._decode(files, part / f"{name}.npy")
            arrays = self._read(folder)
        if arrays is None:
            raise EdgesimError(f"{folder}: cannot be read back; remove it")
        return arrays

    @property
    def _halves(self) -> tuple[tuple[str, list[str]], ...]:
        return ("train", self.train), ("test", self.test)

    @cached_property
    def digest(self) -> str:
        """Hash of the contents of the files and of how they are decoded (SHA-256)."""
        root = str(self.root.resolve())

        def state(half: str, file: str) -> Iterator[bytes]:
            status = os.stat(f"{root}/{file}")
            if not stat.S_ISREG(status.st_mode):
                raise EdgesimError(f"{self.root / file}: expected a file (got a pipe, a device or a folder)")
            change = f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
            yield f"{half} {change} {file}\n".encode(errors="surrogateescape")

        known = cache_folder("image-listings") / self._hash(f"{self._how} {root}\n", state)
        try:
            return known.read_text()
        except OSError:
            digest = self._hash(self._how, self._contents)
        with new_entry(known) as part:
            part.write_text(digest)
        return digest

    def _contents(self, half: str, file: str) -> Iterator[bytes]:
        content = (self.root / file).read_bytes()
        yield f"{half} {len(content)}\n".encode()
        yield content

    def _hash(self, how: str, parts: Callable[[str, str], Iterator[bytes]]) -> str:
        """SHA-256 of ``how`` and of the ``parts`` of each file of each half."""
        digest = hashlib.sha256(f"format {_FORMAT}, {how}".encode())
        for name, files in self._halves:
            for file in files:
                with system_errors(f"{self.root / file}: cannot be read"):
                    for part in parts(name, file):
                        digest.update(part)
        return digest.hexdigest()

    @property
    def _how(self) -> str:
        """Text of all that the array of a file depends on beside the file."""
        raise NotImplementedError

    def _pixels(self, file: str) -> NDArray[Any]:
        """Array of a sample, of `shape`; raises `EdgesimError` that names the file."""
        raise NotImplementedError

    def _read(self, folder: Path) -> tuple[NDArray[Any], NDArray[Any]] | None:
        try:
            # Copy on write: torch warns of arrays that cannot be written to.
            train, test = (np.load(folder / f"{name}.npy", mmap_mode="c") for name, _ in self._halves)
        except (OSError, ValueError):
            return None
        return train, test

    def _decode(self, files: list[str], path: Path) -> None:
        needed = len(files) * math.prod(self.shape) * np.dtype(self.dtype).itemsize
        if shutil.disk_usage(path.parent).free < needed:
            # Writing past a full disk through a mapping would end the process without a word.
            raise OSError(errno.ENOSPC, f"{needed / 1e6:,.0f} MB needed for decoded {self.kind}")
        images = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(self.dtype), shape=(len(files), *self.shape))

        def decode(first: int) -> None:
            for row in range(first, min(first + _FILES_AT_ONCE, len(files))):
                images[row] = self._pixels(files[row])

        # Threads: decoding a file leaves the interpreter's lock alone.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(decode, range(0, len(files), _FILES_AT_ONCE)))
        images.flush()
