"""Scales that travel with a vector: sums in float64, rounded to float32."""

from edgesim.base.errors import EdgesimError
from edgesim.learning.torch_types import Tensor


def as_sent(scales: Tensor) -> Tensor:
    """Scales as the receiver reads them, float32; raises `EdgesimError` for one above float32's largest."""
    rounded = scales.float()
    if not bool(rounded.isfinite().all()):
        raise EdgesimError(
            f"upload.codec: the scale of an update is {float(scales.max()):.3g}, above float32's largest, 3.4e38; "
            "lower learning.lr",
            "upload.codec",
            "learning.lr",
        )
    return rounded
