"""The notes that a Parquet file of the project holds beside its table: one schema for all kinds of files.

The notes are key-value metadata of the file. Every note is checked here before it is used.
"""

import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, Json, ValidationError

from edgesim.base.errors import EdgesimError
from edgesim.base.quantities import MOST_DEVICES

PREFIX = "edgesim."
"""Prefix of the keys of the notes."""

LONGEST_S = 3.2e9
"""A century: no recording is longer, and it bounds the memory of statistics that have one entry per hour."""

Unobserved = Literal["absent", "present"]

_SHORT = reprlib.Repr()
_SHORT.maxlevel = 2

_Seconds = Annotated[float, Field(gt=0, le=LONGEST_S)]
_SecondsOrNone = Annotated[float, Field(ge=0, le=LONGEST_S)]


class Facts(BaseModel):
    """The notes of a file; a note that the file lacks is None."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)

    devices: Json[Annotated[int, Field(ge=1, le=MOST_DEVICES)]] | None = Field(
        None, description=f"a whole number from 1 to {MOST_DEVICES}"
    )
    """Devices of the recording, those without rows included."""
    length_s: Json[list[_Seconds]] | None = Field(
        None, description=f"a list of seconds above 0, up to {LONGEST_S:g}, one for each device"
    )
    """Length of each device's recording, in s."""
    unobserved_s: Json[list[_SecondsOrNone]] | None = Field(
        None, description=f"a list of seconds, 0 or more, up to {LONGEST_S:g}, one for each device"
    )
    """Seconds of each device's recording in which it was not observed."""
    unobserved_as: Unobserved = Field("absent", description="absent or present")
    """Whether a device counts as absent or present in that time; older files lack the note and count it as absent."""
    keys: Json[list[str]] | None = Field(None, description="a list of texts, one for each device")
    """Key (name) of each device in the recording."""
    models: Json[list[str]] | None = Field(None, description="a list of texts, one for each device")
    """Model of each device, empty if not known."""
    guessed: Json[Annotated[int, Field(ge=0, le=MOST_DEVICES)]] | None = Field(
        None, description=f"a whole number from 0 to {MOST_DEVICES}"
    )
    """Number of devices of a profile whose speeds are guessed."""


def read_facts(path: Path) -> Facts:
    """The notes of a file, all None for a CSV or a file without notes; raises `EdgesimError` naming file and note."""
    if path.suffix != ".parquet":
        return Facts()
    try:
        metadata = pq.read_schema(path).metadata or {}
        text = {key.decode(): value.decode() for key, value in metadata.items() if key.startswith(PREFIX.encode())}
    except UnicodeDecodeError:
        raise EdgesimError(f"{path}: metadata {PREFIX}*: expected UTF-8 text") from None
    except (OSError, pa.ArrowException) as error:
        raise EdgesimError(f"{path}: not a readable parquet file: {str(error).splitlines()[0]}") from None
    return checked_facts(path, {key.removeprefix(PREFIX): value for key, value in text.items()})


def checked_facts(path: Path, text: Mapping[str, str]) -> Facts:
    """Parse and check the texts of a file's notes, most of them JSON; raises `EdgesimError` naming file and note."""
    try:
        return Facts.model_validate(text)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
    name, *place = (part for part in detail["loc"] if part in Facts.model_fields or isinstance(part, int))
    if detail["type"] == "json_invalid":
        got = f"is not JSON: {detail['ctx']['error']}"
    else:
        got = f"got {_SHORT.repr(detail['input'])}{f' for device {place[0]}' if place else ''}"
    raise EdgesimError(f"{path}: metadata {PREFIX}{name}: expected {Facts.model_fields[str(name)].description} ({got})")
