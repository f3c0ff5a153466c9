"""Formats of the files of figures, known without matplotlib."""

from collections.abc import Sequence

from edgesim.base.errors import EdgesimError

Formats = Sequence[str]
"""Formats of the files of a figure, some of `FORMATS`."""
FORMATS: Formats = ("png", "svg", "pdf")
USUAL_FORMATS: Formats = ("png", "svg")
USUAL = ",".join(USUAL_FORMATS)
FORMAT_HELP = f"Formats of the figures, some of {', '.join(FORMATS)}, separated by commas."


def known_formats(formats: Formats) -> Formats:
    """The formats, each once; raises `EdgesimError` for an unknown one or none."""
    return formats_of(",".join(formats), "formats")


def formats_of(text: str, option: str = "--format") -> Formats:
    """Formats named in a text, such as ``pdf,svg``, each once; raises `EdgesimError` for an unknown one or none."""
    named = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not named or not {*named} <= {*FORMATS}:
        known = ", ".join(FORMATS)
        raise EdgesimError(f"{option}: expected one or several of {known}, separated by commas (got {text!r})")
    return named
