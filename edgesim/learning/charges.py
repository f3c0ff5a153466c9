"""What coding makes of bits and computing: what a run charges devices for, without torch."""

from dataclasses import dataclass

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.config import RunConfig
from edgesim.learning.codecs import DOWNWARD, make_codec, make_upload_codec
from edgesim.learning.codecs.transmission import charged_bits


@dataclass(frozen=True)
class UploadCharges:
    """Bits of uploads whose updates are coded, and the time that coding takes."""

    model_bits: float
    """Bits of a model that is not coded."""
    update_bits: int
    """Bits of an update as it is coded."""
    vectors: int
    """Vectors of an upload that are coded: the update, and what travels beside it with as many numbers."""
    encode_samples: float
    """Samples on which a device trains in the time that coding an upload takes."""

    def coded(self, bits: Floats) -> Floats:
        """Bits of uploads, [n], of uploads that take so many ``bits`` uncoded; those without a model stay."""
        whole = self.vectors * self.model_bits
        return np.where(bits >= whole, bits - whole + self.vectors * self.update_bits, bits)


@dataclass
class DownloadCharges:
    """Bits of models whose changes are coded, and the version that each device has.

    A device is sent the changes that it has missed, or the model where that is shorter (Sattler et al., arXiv
    1903.02891, section V-B).
    """

    model_bits: float
    change_bits: int
    """Bits of the change of one version to the next."""
    version: Integers
    """Version of the model that each device has, the number of merges behind it, [N]; -1 for none."""

    def coded(self, bits: Floats, ids: Integers, version: int) -> Floats:
        """Bits of downloads of a ``version`` to devices ``ids``, [n], that take so many ``bits`` uncoded."""
        missed = (version - self.version[ids]) * float(self.change_bits)
        shorter = np.where(self.version[ids] < 0, self.model_bits, np.minimum(missed, self.model_bits))
        return np.where(bits >= self.model_bits, bits - self.model_bits + shorter, bits)

    def received(self, device: int, version: int) -> None:
        """Note that a device has received a version."""
        self.version[device] = max(int(self.version[device]), version)


def make_upload_charges(config: RunConfig, model_bits: float, beside: int) -> UploadCharges | None:
    """Charges of a run whose uploads have so many vectors ``beside`` the update; None without ``[upload]``.

    Raises `EdgesimError` for a codec that answers anything but bits, and for coding of vectors that there are not.
    """
    upload = config.upload
    if upload is None:
        return None
    if upload.beside == "coded" and not beside:
        raise EdgesimError(
            "upload.beside: 'coded' needs an algorithm whose devices send tensors as long as a model beside their "
            f"update, such as 'scaffold' without derive_control, and algorithm.name is {config.algorithm.name!r}; "
            "use 'plain'",
            "upload.beside",
            "algorithm.name",
        )
    codec, vectors = make_upload_codec(upload), 1 + beside * (upload.beside == "coded")
    samples = (upload.encode or 0.0) * vectors
    return UploadCharges(model_bits, charged_bits(codec, numbers_of(model_bits)), vectors, samples)


def make_download_charges(config: RunConfig, model_bits: float) -> DownloadCharges | None:
    """Charges of a run before its first round; None without ``[download]``. Raises as `make_upload_charges`."""
    download = config.download
    if download is None:
        return None
    codec = make_codec(download.codec, download.options, DOWNWARD)
    bits = charged_bits(codec, numbers_of(model_bits), "download.codec")
    return DownloadCharges(model_bits, bits, np.full(config.devices.count, -1, dtype=np.int64))


def numbers_of(model_bits: float) -> int:
    """D: numbers of 32 bits that a model is charged for."""
    return int(model_bits // 32)
