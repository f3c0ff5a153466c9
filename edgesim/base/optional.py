"""Packages that are extras of edgesim."""

import importlib
from typing import Any

from edgesim.base.errors import EdgesimError


def needed(module: str, extra: str) -> Any:
    """The module of a package that is an extra of edgesim; raises `EdgesimError` that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise EdgesimError(
            f"{extra}: a package that it needs is not installed ({error}); pip install 'edgesim[{extra}]'"
        ) from None
