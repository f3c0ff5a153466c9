"""Modules that are imported when they are first used."""

from importlib import import_module
from typing import Any


class Late:
    """Stands for a module, which is imported when the first of its names is asked for."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        """The name's value, which is this object's own from then on."""
        value = vars(self)[name] = getattr(import_module(self._module), name)
        return value
