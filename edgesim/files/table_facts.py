"""What a Parquet file of the project notes beside its table: one schema for every note of every kind of file.

The notes are key-value metadata of the file. Each is checked here, before anything is made of it.
"""

import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, Json, ValidationError, field_validator

from edgesim.errors import EdgesimError

PREFIX = "edgesim."
"""How the keys of the notes begin."""

MOST_DEVICES = 10_000_000
LONGEST_S = 3.2e9
"""A century: no recording is longer, and the memory of what looks at every hour is bounded by it."""

Unobserved = Literal["absent", "present"]

_SHORT = reprlib.Repr()
_SHORT.maxlevel = 2

_Seconds = Annotated[float, Field(gt=0, le=LONGEST_S)]
_SecondsOrNone = Annotated[float, Field(ge=0, le=LONGEST_S)]


class Facts(BaseModel):
    """The notes of a file; None for those that it does not have."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)

    devices: Json[Annotated[int, Field(ge=1, le=MOST_DEVICES)] | None] = Field(
        None, description=f"a whole number from 1 to {MOST_DEVICES}"
    )
    """Devices of the recording, those without rows included."""
    length_s: Json[list[_Seconds] | None] = Field(
        None, description=f"a list of seconds above 0, up to {LONGEST_S:g}, one for each device"
    )
    """Where the recording of each device ends."""
    unobserved_s: Json[list[_SecondsOrNone] | None] = Field(
        None, description=f"a list of seconds, 0 or more, up to {LONGEST_S:g}, one for each device"
    )
    """For how long nobody looked at each device."""
    unobserved_as: Unobserved = Field("absent", description="absent or present")
    """What that time counts as; files of before the note count it as absent."""
    keys: Json[list[str] | None] = Field(None, description="a list of texts, one for each device")
    """What the recording calls each device."""
    models: Json[list[str] | None] = Field(None, description="a list of texts, one for each device")
    """Model of each device, empty for one that is not known."""
    guessed: Json[Annotated[int, Field(ge=0, le=MOST_DEVICES)] | None] = Field(
        None, description=f"a whole number from 0 to {MOST_DEVICES}"
    )
    """Devices of a profile whose speeds are guessed."""

    @field_validator("*")
    @classmethod
    def _is_no_null(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("null")
        return value


def read_facts(path: Path) -> Facts:
    """The notes of a file, none for a CSV or a file of another make; raises `EdgesimError` that names file and note."""
    if path.suffix != ".parquet":
        return Facts()
    try:
        found = pq.read_schema(path).metadata or {}
        text = {key.decode(): value.decode() for key, value in found.items() if key.startswith(PREFIX.encode())}
    except UnicodeDecodeError:
        raise EdgesimError(f"{path}: metadata {PREFIX}*: expected UTF-8 text") from None
    except (OSError, pa.ArrowException) as error:
        raise EdgesimError(f"{path}: not a readable parquet file: {str(error).splitlines()[0]}") from None
    return checked_facts(path, {key.removeprefix(PREFIX): value for key, value in text.items()})


def checked_facts(path: Path, text: Mapping[str, str]) -> Facts:
    """Notes as they stand in a file, JSON most of them, as values; raises `EdgesimError` that names file and note."""
    try:
        return Facts.model_validate(text)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
    name, *place = detail["loc"]
    if detail["type"] == "json_invalid":
        got = f"is not JSON: {detail['ctx']['error']}"
    elif detail["type"] == "value_error":
        got = "got null"
    else:
        got = f"got {_SHORT.repr(detail['input'])}{f' for device {place[0]}' if place else ''}"
    raise EdgesimError(f"{path}: metadata {PREFIX}{name}: expected {Facts.model_fields[str(name)].description} ({got})")
