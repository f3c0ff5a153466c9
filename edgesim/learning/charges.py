"""What coding makes of bits and computing: what a run charges devices for, without torch."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.config import RunConfig
from edgesim.learning.codecs import DOWNWARD, make_codec, make_upload_codec
from edgesim.learning.codecs.transmission import charged_bits
from edgesim.learning.sizes import make_size_rule
from edgesim.learning.sizes.size_rule import SizeRule
from edgesim.radio.grant import Grant

_NEARLY = 1 + 1e-9
"""Bits by which an upload may exceed time and rate, which are rounded: ends so near the deadline are in time."""


@dataclass
class UploadCharges:
    """Bits of uploads whose updates are coded, and the time that coding takes."""

    model_bits: float
    """Bits of a model that is not coded."""
    rule: SizeRule
    """Rule for the setting with which each update is coded."""
    vectors: int
    """Vectors of an upload that are coded: the update, and what travels beside it with as many numbers."""
    encode_samples: float
    """Samples on which a device trains in the time that coding an upload takes."""
    update_bits: int = field(init=False)
    """Bits of an update as uploads are planned."""
    _planned: int = field(init=False)
    """Setting that takes these."""
    last_bits: Floats | None = None
    """Bits of each device's last update, [N], where uploads are planned with these."""

    def __post_init__(self) -> None:
        self.plan()

    def plan(self) -> None:
        """Plan from now on with the rule's present answer; raises as `charged_bits`."""
        self._planned = self.rule.planned
        self.update_bits = charged_bits(self.rule.codec, self.rule.d, self._planned)

    def _bits(self, setting: int) -> int:
        if setting == self._planned:
            return self.update_bits
        return charged_bits(self.rule.codec, self.rule.d, setting)

    def coded(self, bits: Floats, ids: Integers | None = None) -> Floats:
        """Bits of uploads of devices [n] as they are planned, that take so many ``bits`` uncoded, [n].

        Those without a model stay.
        """
        whole = self.vectors * self.model_bits
        planned = self.update_bits if self.last_bits is None else self.last_bits[ids]
        return np.where(bits >= whole, bits - whole + self.rule.header_bits + self.vectors * planned, bits)

    def write(self, grant: Grant, device: int) -> None:
        """Set the bits of an upload by those of its message, ``written_bits``."""
        planned = self.update_bits if self.last_bits is None else float(self.last_bits[device])
        charged = float(grant.written_bits)
        if grant.bits < planned:
            # Nothing is sent, or no model.
            return
        grant.over_plan_bits = charged - planned
        grant.bits += grant.over_plan_bits
        if self.last_bits is not None:
            self.last_bits[device] = charged

    def with_settings(self, planned_bits: Floats, settings: Sequence[int]) -> Floats:
        """Bits of uploads of a model, [n], with these settings in place of the planned one."""
        bits = {setting: float(self._bits(setting) - self.update_bits) for setting in set(settings)}
        return np.asarray(planned_bits + self.vectors * np.array([bits[setting] for setting in settings]))

    def granted(self, planned_bits: Floats, settings: Sequence[int] | None) -> tuple[list[int], Floats]:
        """Settings and bits, [n] each, of uploads that are granted and planned with so many bits, [n].

        Settings are the rule's when absent. Where no model is sent the setting is 0, and the bits stay.
        """
        are_models = planned_bits - self.vectors * self.update_bits >= self.rule.header_bits
        chosen = [self.rule.granted] * len(planned_bits) if settings is None else settings
        bits = np.where(are_models, self.with_settings(planned_bits, chosen), planned_bits)
        return (np.array(chosen, dtype=np.int64) * are_models).tolist(), bits

    def sized(self, bits: float, room_bits: float, setting: int = 0) -> tuple[int, float]:
        """Setting and bits of an upload for which there are so many bits of time and rate.

        Until now it takes so many ``bits`` with a ``setting``, the planned one where that is 0. One without a model
        stays, with setting 0.
        """
        plain_bits = bits - self.vectors * self._bits(setting or self._planned)
        if plain_bits < self.rule.header_bits:
            return 0, bits
        setting, coded_bits = self.rule.of_room((room_bits * _NEARLY - plain_bits) / self.vectors)
        return setting, plain_bits + self.vectors * coded_bits

    def coded_setting(self, grant: Grant | None, size: int) -> int:
        """Setting with which ``size`` numbers are coded for an upload; as the codec's options say before it has one."""
        codec = self.rule.codec
        if grant is None or not grant.setting:
            return codec.setting(size)
        return codec.rescaled(grant.setting, self.rule.d, size)

    def settings_of_room(self, room_bits: Floats, size: int) -> list[int]:
        """Settings with which ``size`` numbers would be coded with so many bits of time and rate each, [n]."""
        codec = self.rule.codec
        rooms = ((room_bits * _NEARLY - self.rule.header_bits) / self.vectors).tolist()
        return [codec.rescaled(self.rule.of_room(bits)[0], self.rule.d, size) for bits in rooms]


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
    trains = config.learning.training == "real"
    rule = make_size_rule(upload, make_upload_codec(upload), numbers_of(model_bits), trains)
    vectors = 1 + beside * (upload.beside == "coded")
    charges = UploadCharges(model_bits, rule, vectors, (upload.encode or 0.0) * vectors)
    if upload.plan == "last" and trains:
        charges.last_bits = np.full(config.devices.count, float(charges.update_bits))
    return charges


def make_download_charges(config: RunConfig, model_bits: float) -> DownloadCharges | None:
    """Charges of a run before its first round; None without ``[download]``. Raises as `make_upload_charges`."""
    download = config.download
    if download is None:
        return None
    codec = make_codec(download.codec, download.options, DOWNWARD)
    bits = charged_bits(codec, numbers_of(model_bits), field="download.codec")
    return DownloadCharges(model_bits, bits, np.full(config.devices.count, -1, dtype=np.int64))


def numbers_of(model_bits: float) -> int:
    """D: numbers of 32 bits that a model is charged for."""
    return int(model_bits // 32)
