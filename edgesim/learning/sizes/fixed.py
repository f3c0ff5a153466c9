"""The size that the codec's options say."""

from edgesim.learning.sizes.size_rule import SizeRule


class Fixed(SizeRule):
    """Updates of one size."""
