"""The array types of signatures, where plug-ins import them from."""

from edgesim.base.arrays import Booleans, Floats, Integers, Numbers, Singles

__all__ = ["Booleans", "Floats", "Integers", "Numbers", "Singles"]
