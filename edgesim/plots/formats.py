"""Formats of the files of figures, known without matplotlib."""

from collections.abc import Sequence

from edgesim.base.errors import EdgesimError

Formats = Sequence[str]
"""Formats of the files of a figure, some of `FORMATS`."""
FORMATS: Formats = ("png", "svg", "pdf")
USUAL_FORMATS: Formats = ("png", "svg")
USUAL = ",".join(USUAL_FORMATS)
FORMAT_HELP = f"Formats of the figures, some of {', '.join(FORMATS)}, separated by commas."


def known_formats(formats: str | Formats, name: str = "formats") -> Formats:
    """The formats, each once, of a sequence or of a text such as ``pdf,svg``.

    Raises `EdgesimError`, which names the argument or option ``name``, for an unknown format or none.
    """
    parts = formats.split(",") if isinstance(formats, str) else formats
    texts = [str(part).strip() for part in parts]
    named = tuple(dict.fromkeys(text for text in texts if text))
    if not named or not {*named} <= {*FORMATS}:
        known = ", ".join(FORMATS)
        raise EdgesimError(f"{name}: expected one or several of {known}, separated by commas (got {','.join(texts)!r})")
    return named
