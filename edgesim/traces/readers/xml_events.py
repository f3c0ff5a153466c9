"""XML as it streams by: beginnings, texts and ends of elements, in memory that does not grow with the file.

Document types are refused: with them come entities, which make small files large or name other files.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from xml.parsers import expat

from edgesim.base.errors import EdgesimError
from edgesim.traces.readers.packed import PIECE, unpacked

_LONGEST_TAG, _DEEPEST = 1 << 20, 100


class XmlEvents(Protocol):
    """What is told of an XML file, element by element."""

    def begins(self, line: int, path: tuple[str, ...], attributes: Mapping[str, str]) -> None:
        """An element begins; ``path`` has the names of the elements that are open, this one last."""

    def holds(self, line: int, path: tuple[str, ...], text: str) -> None:
        """A piece of the text of the innermost element."""

    def ends(self, line: int, path: tuple[str, ...]) -> None:
        """The innermost element ends."""


def read_xml(path: Path, events: XmlEvents) -> None:
    """Tell ``events`` of all elements of a file, packed with gzip or not.

    Raises `EdgesimError` that names the file and the line, for XML that is broken, has a document type, or has tags or
    depths that no such file has.
    """
    parser, open_ = expat.ParserCreate(), list[str]()

    def refuse(message: str) -> EdgesimError:
        return EdgesimError(f"{path}: line {parser.CurrentLineNumber}: {message}")

    def begins(name: str, attributes: dict[str, str]) -> None:
        open_.append(name)
        if len(open_) > _DEEPEST:
            raise refuse(f"expected elements at most {_DEEPEST} deep in one another")
        events.begins(parser.CurrentLineNumber, tuple(open_), attributes)

    def ends(name: str) -> None:
        events.ends(parser.CurrentLineNumber, tuple(open_))
        open_.pop()

    def document_type(*_: object) -> None:
        raise refuse("expected no document type (<!DOCTYPE ...>)")

    parser.StartElementHandler, parser.EndElementHandler = begins, ends
    parser.CharacterDataHandler = lambda text: events.holds(parser.CurrentLineNumber, tuple(open_), text)
    parser.StartDoctypeDeclHandler = document_type
    fed = 0
    with unpacked(path) as file:
        try:
            for piece in iter(lambda: file.read(PIECE), b""):
                parser.Parse(piece)
                fed += len(piece)
                if fed - parser.CurrentByteIndex > _LONGEST_TAG:
                    raise refuse(f"expected tags of at most {_LONGEST_TAG:,} bytes")
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise EdgesimError(f"{path}: line {error.lineno}: not whole XML: {expat.ErrorString(error.code)}") from None
        except (ValueError, LookupError):
            raise EdgesimError(f"{path}: line 1: expected XML in UTF-8") from None


def is_xml(begin: bytes) -> bool:
    """Whether a file of this beginning looks like XML."""
    return begin.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<")
