"""Numbers that travel with a vector, or are made of its own: rounded to float32."""

from edgesim.base.errors import Diverged
from edgesim.learning.torch_types import Tensor


def as_sent(numbers: Tensor, each: str = "the scale of an update") -> Tensor:
    """Numbers as the receiver reads them, float32; raises `Diverged`, which says what ``each`` is, for one above
    float32's largest.
    """
    rounded = numbers.float()
    if not bool(rounded.isfinite().all()):
        most = float(numbers.abs().max())
        raise Diverged(f"{each} is {most:.3g}, above float32's largest, 3.4e38; lower learning.lr", "learning.lr")
    return rounded
