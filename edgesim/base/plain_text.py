"""Names and texts of strangers, shown as text: what would steer a terminal is written out."""

import unicodedata

_TURNS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029}
"""Marks that turn the direction of writing, or break a line."""


def printable(text: str, keep: str = "\n") -> str:
    r"""The text with control characters, lone surrogates and the like as escapes (``\x1b``), but those of ``keep``."""
    if text.isprintable():
        return text
    return "".join(ascii(sign)[1:-1] if _steers(sign) and sign not in keep else sign for sign in text)


def _steers(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs") or ord(character) in _TURNS


def figure_text(text: str) -> str:
    """The text for matplotlib, which would take what stands between two dollars for mathematics."""
    return printable(text).replace("$", r"\$")
