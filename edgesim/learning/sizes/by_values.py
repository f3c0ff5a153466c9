"""Sizes that depend on the values, by Elias' code: known only once the update is trained."""

from typing import ClassVar

from typing_extensions import override

from edgesim.learning.sizes.fixed import Fixed
from edgesim.learning.sizes.size_rule import Instant, SizeRule


class ByValues(SizeRule):
    """The bits of the message itself, which are decided as the upload begins; the most that it can take is planned."""

    known: ClassVar[Instant] = "by the values"

    @override
    def facts(self) -> dict[str, str]:
        return {"update_bits_notice": "the most that an update takes; each is charged the bits of its message"}


class Most(Fixed):
    """The most that a message can take, where nothing is trained."""

    @override
    def facts(self) -> dict[str, str]:
        return {
            "update_bits_notice": "the most that an update takes: without training the bits of messages are unknown"
        }
