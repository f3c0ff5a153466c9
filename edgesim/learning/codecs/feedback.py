"""Memories of devices against what coding loses: a residual, or the update as the server has it (EF21).

Functions of one update and of the device's memory; a memory begins at zero, which None stands for. Whoever calls them
keeps the new memory when the server has merged the update, and the old one when the upload is lost.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from edgesim.learning.torch_types import Tensor

Feedback = Literal["none", "residual", "ef21"]
Coder = Callable[[Tensor], Tensor]
"""What the server decodes of a vector, [d]."""


@dataclass(frozen=True, eq=False)
class Sent:
    """An update that was sent."""

    encoded: Tensor
    """The vector that the device wrote, [d]."""
    decoded: Tensor
    """What was read of it, [d]."""
    update: Tensor
    """The update that the server uses, [d]."""
    memory: Tensor | None
    """The device's memory once the update is merged, [d]; None without feedback."""


def send_plain(update: Tensor, memory: Tensor | None, coder: Coder) -> Sent:
    """Send an update without memory."""
    decoded = coder(update)
    return Sent(update, decoded, decoded, None)


def send_with_residual(update: Tensor, residual: Tensor | None, coder: Coder) -> Sent:
    """Send an update with all that earlier ones lost; what this one loses is the new residual.

    Seide et al., Interspeech 2014; Karimireddy et al., "Error feedback fixes SignSGD", ICML 2019.
    """
    encoded = update if residual is None else update + residual
    decoded = coder(encoded)
    return Sent(encoded, decoded, decoded, encoded - decoded)


def send_change(update: Tensor, known: Tensor | None, coder: Coder) -> Sent:
    """Send how an update differs from the last one that the server knows; the sum is what it knows from then on.

    Richtarik et al., "EF21: a new, simpler, theoretically better, and practically faster error feedback", NeurIPS 2021.
    """
    encoded = update if known is None else update - known
    decoded = coder(encoded)
    learnt = decoded if known is None else known + decoded
    return Sent(encoded, decoded, learnt, learnt)


SENDERS: Mapping[Feedback, Callable[[Tensor, Tensor | None, Coder], Sent]] = {
    "none": send_plain,
    "residual": send_with_residual,
    "ef21": send_change,
}
"""Ways to send by the value of ``upload.feedback``."""


def with_lost(residual: Tensor | None, update: Tensor) -> Tensor:
    """A device's residual after the loss of an upload with ``lost = "add"``: nothing of the update is forgotten."""
    return update.clone() if residual is None else residual + update
