"""The errors that users are meant to read, where plug-ins import them from."""

from edgesim.base.errors import EdgesimError

__all__ = ["EdgesimError"]
